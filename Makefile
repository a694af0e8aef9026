# make            ./train, ./sample, ./eval
# make test       all tests (installs GoogleTest where it is missing and it may); ends with "N passed, N failed"
# make test-long  the longer checks too, and the NEON kernels under qemu where they can be
# make sanitize   the tests under AddressSanitizer and UndefinedBehaviorSanitizer
# make bench      ./bench, which measures the kernels beside the machine's peak
# make clean
CXX ?= g++
BUILD ?= build
OPTIMIZE ?= -O3
# The law of the kernels: no fast-math, no contraction but the fma that is written.
CXXFLAGS := -std=c++20 $(OPTIMIZE) -g1 -ffp-contract=off -fno-math-errno -pthread -Wall -Wextra -Wno-psabi -Iinclude $(EXTRA)
LDFLAGS := -pthread $(EXTRA)

PROGRAMS := train sample eval
ENGINE := $(filter-out $(PROGRAMS:%=src/%.cpp) src/bench.cpp,$(wildcard src/*.cpp))
TESTS := $(wildcard test/*.cpp test/cuda/*.cpp test/simt/*_test.cpp)
EMULATOR := $(filter-out %_test.cpp,$(wildcard test/simt/*.cpp))
EMULATED = $(patsubst cuda/%.cu,$(BUILD)/emulated/%.o,$(wildcard cuda/*.cu)) \
  $(EMULATOR:test/simt/%.cpp=$(BUILD)/emulated/simt/%.o)

# The CPU kernels are built once for each instruction set, in a namespace of its own, and chosen when the program starts.
MACHINE := $(shell $(CXX) -dumpmachine)
ifneq ($(filter x86_64%,$(MACHINE)),)
ISAS := avx512 avx2 plain
else ifneq ($(filter aarch64%,$(MACHINE)),)
ISAS := neon
else
ISAS := plain
endif
FLAGS_avx512 := -march=x86-64-v4 -mprefer-vector-width=512
FLAGS_avx2 := -march=x86-64-v3
KERNELS := $(wildcard src/cpu/*.cpp)
KERNEL_OBJECTS := $(foreach isa,$(ISAS),$(KERNELS:src/cpu/%.cpp=$(BUILD)/cpu/$(isa)/%.o))

OBJECTS := $(ENGINE:src/%.cpp=$(BUILD)/%.o) $(KERNEL_OBJECTS)
LIBRARY := $(BUILD)/libfullband.a

all: $(PROGRAMS)

ifeq ($(BUILD),build)
PLACE :=
else
PLACE := $(BUILD)/
all: $(PROGRAMS:%=$(PLACE)%)
bench: $(PLACE)bench
endif

$(PROGRAMS:%=$(PLACE)%) $(PLACE)bench: $(PLACE)%: $(BUILD)/%.o $(LIBRARY)
	$(CXX) -o $@ $^ $(LDFLAGS)

$(LIBRARY): $(OBJECTS)
	@rm -f $@
	@ar rcs $@ $^

$(BUILD)/%.o: src/%.cpp
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) $(ISAS:%=-DHAVE_ISA_%) -MMD -MP -c -o $@ $<

define kernel_rule
$(BUILD)/cpu/$(1)/%.o: src/cpu/%.cpp
	@mkdir -p $$(@D)
	$(CXX) $(CXXFLAGS) $$(FLAGS_$(1)) -DISA=$(1) -MMD -MP -c -o $$@ $$<
endef
$(foreach isa,$(ISAS),$(eval $(call kernel_rule,$(isa))))

TEST_OBJECTS := $(TESTS:test/%.cpp=$(BUILD)/test/%.o)
$(BUILD)/test/%.o: test/%.cpp | gtest
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) -Isrc/cpu -Itest -Itest/simt -Icuda -MMD -MP -c -o $@ $<
$(BUILD)/tests: $(TEST_OBJECTS) $(EMULATED) $(LIBRARY)
	@$(CXX) -o $@ $^ $(LDFLAGS) -lgtest -lgtest_main

# The CUDA kernels on the CPU, for the tests: test/simt/ stands in for CUDA's headers.
EMULATED_FLAGS := -Itest/simt -Icuda -fno-strict-aliasing
$(BUILD)/emulated/%.o: cuda/%.cu
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) $(EMULATED_FLAGS) -MMD -MP -x c++ -c -o $@ $<
$(BUILD)/emulated/simt/%.o: test/simt/%.cpp
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) $(EMULATED_FLAGS) -MMD -MP -c -o $@ $<

gtest:
	@sh test/find_gtest.sh $(CXX)

test: $(PROGRAMS:%=$(PLACE)%) $(PLACE)bench $(BUILD)/tests
	@sh test/run.sh $(BUILD)/tests $(if $(PLACE),$(BUILD),.)

test-long: export FULLBAND_TEST_LONG = 1
test-long:
	@MAKE='$(MAKE)' sh test/neon.sh
	@$(MAKE) test

sanitize:
	$(MAKE) test BUILD=build/sanitize OPTIMIZE=-O1 EXTRA="-fsanitize=address,undefined -fno-sanitize-recover=all"

clean:
	rm -rf build $(PROGRAMS) bench

-include $(wildcard $(addprefix $(BUILD)/,*.d test/*.d test/*/*.d cpu/*/*.d emulated/*.d emulated/simt/*.d))
.PHONY: all test test-long sanitize clean gtest
.SECONDARY:
