# make            ./train, ./sample, ./eval, ./tokenize; with CUDA kernels where nvcc and a GPU are there (CUDA=1: also without a GPU; CUDA=0: without)
# make test       all tests (installs GoogleTest where it is missing and it may); ends with "N passed, N failed"
# make test-long  the longer checks too, and the NEON kernels under qemu where they can be
# make sanitize   the tests under AddressSanitizer and UndefinedBehaviorSanitizer
# make bench      ./bench, which measures the kernels beside the machine's peak
# make fuzz       build/fuzz/NAME, libFuzzer on the parser of that name (test/fuzz/; needs clang)
# make install    the programs as fullband-train …, the library, its headers and fullband.pc (docs/library.md), below PREFIX
#                 (/usr/local), and that below DESTDIR where one is given; make uninstall takes them away
# make cuda       compiles the CUDA kernels for all architectures that are meant, and warns of nothing
# make clean
# Every core is used (-jN: N at once); V=1 shows whole commands.
CXX ?= g++
BUILD ?= build
OPTIMIZE ?= -O3
# All but the kernels, which take the time when a program runs and not when it is built.
OPTIMIZE_REST ?= -O1
# The law of the kernels: no fast-math, no contraction but the fma that is written. (-Wno-restrict: g++ 12 warns of overlaps
# in std::string that are not there.)
CXXFLAGS := -std=c++20 $(OPTIMIZE) -g1 -ffp-contract=off -fno-math-errno -pthread -Wall -Wextra -Wno-psabi \
  -Wno-unknown-warning-option -Wno-restrict -Iinclude $(EXTRA)
LDFLAGS := -pthread $(EXTRA)

# As many at once as there are cores, unless the user said how many: make tells that to its children alone (MAKEFLAGS), so
# its own command line is looked at too. `make clean all` is done in order.
JOBS_ASKED := $(shell { echo " $$MAKEFLAGS"; ps -o args= -p $$PPID || tr '\0' ' ' </proc/$$PPID/cmdline; } 2>/dev/null | \
  grep -E ' (-[A-Za-z]*j|--jobs)')
ifeq ($(JOBS_ASKED)$(filter clean,$(MAKECMDGOALS)),)
MAKEFLAGS += --no-print-directory -j$(shell nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
endif

PROGRAMS := train sample eval tokenize
ENGINE := $(filter-out $(PROGRAMS:%=src/%.cpp) src/bench.cpp,$(wildcard src/*.cpp))
TESTS_OF_EMULATOR := $(wildcard test/simt/*_test.cpp) test/simt/seed_listener.cpp
FUZZED := $(filter-out test/fuzz/main.cpp,$(wildcard test/fuzz/*.cpp))
TESTS := $(wildcard test/*.cpp test/cuda/*.cpp) $(TESTS_OF_EMULATOR) $(FUZZED)
EMULATOR := $(filter-out $(TESTS_OF_EMULATOR),$(wildcard test/simt/*.cpp))
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

# CUDA: both tables, for this machine's GPU, where it has one and nvcc is in PATH, in CUDA_HOME or in the usual folder.
NVCC := $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard $(CUDA_HOME)/bin/nvcc /usr/local/cuda/bin/nvcc))
GPU := $(shell nvidia-smi -L >/dev/null 2>&1 && nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)
# make install takes what was built, also as a user who has no nvcc in PATH, or after make CUDA=1.
ifneq ($(and $(filter install,$(MAKECMDGOALS)),$(wildcard $(BUILD)/objects)),)
CUDA ?= $(shell grep -c '$(BUILD)/cuda/' $(BUILD)/objects)
endif
CUDA ?= $(if $(and $(NVCC),$(GPU)),1,0)
ARCHITECTURES := 80 90a 100
# As the CPU's kernels: no contraction but the fma that is written.
NVCCFLAGS := -std=c++20 -O3 -fmad=false -lineinfo -Iinclude -Xcompiler -Wall,-Wextra,-Wno-psabi
KERNELS_CU := $(wildcard cuda/*.cu)

ifeq ($(CUDA),1)
ifeq ($(NVCC),)
$(error CUDA=1 needs nvcc, which is not in PATH, not in CUDA_HOME and not in /usr/local/cuda)
endif
CUDA_LIB := $(patsubst %/bin/nvcc,%/lib64,$(realpath $(NVCC)))
CUDA_OBJECTS := $(KERNELS_CU:cuda/%.cu=$(BUILD)/cuda/%.o)
CUDA_LDFLAGS := -L$(CUDA_LIB) -Wl,-rpath,$(CUDA_LIB) -lcublasLt -lcudart_static -ldl -lrt
ENGINE := $(filter-out src/no_cuda.cpp,$(ENGINE))
BUILT_FOR := the CPU and $(if $(GPU),$(GPU),GPUs of architecture $(ARCHITECTURES))
else
BUILT_FOR := the CPU alone: $(if $(NVCC),there is nvcc but no GPU (make CUDA=1 builds the CUDA kernels all the same),there is no nvcc)
endif

OBJECTS := $(CUDA_OBJECTS) $(KERNEL_OBJECTS) $(ENGINE:src/%.cpp=$(BUILD)/%.o)
LIBRARY := $(BUILD)/libfullband.a

# A command that takes long is told in one short line, $(call say,WHAT); of those that make files which were missing when
# make began, with a number: [12/98]. COMPILED_goal are the files that a goal compiles; MISSING is found at the end.
ifeq ($(V),)
say = @echo '$(if $(filter $@,$(MISSING)),$(eval STARTED += $@)[$(words $(STARTED))/$(words $(MISSING))] )$(1)' &&
endif

PLACE := $(if $(filter-out build,$(BUILD)),$(BUILD)/)
COMPILED_all := $(OBJECTS) $(PROGRAMS:%=$(BUILD)/%.o)
COMPILED_bench := $(OBJECTS) $(BUILD)/bench.o
all: $(PROGRAMS:%=$(PLACE)%)
	@echo "built for $(BUILT_FOR)"
ifneq ($(PLACE),)
bench: $(PLACE)bench
endif

$(PROGRAMS:%=$(PLACE)%) $(PLACE)bench: $(PLACE)%: $(BUILD)/%.o $(LIBRARY)
	$(call say,$@) $(CXX) -o $@ $^ $(LDFLAGS) $(CUDA_LDFLAGS)

$(LIBRARY): $(OBJECTS) $(BUILD)/objects
	@rm -f $@
	@ar rcs $@ $(OBJECTS)
# Changes where the library is made of other objects than the last time.
$(BUILD)/objects: FORCE
	@mkdir -p $(@D)
	@echo '$(OBJECTS)' | cmp -s - $@ || echo '$(OBJECTS)' >$@

# For this machine's GPU; or for all that are meant, and as PTX for later ones.
CODE := $(if $(GPU),-arch=native,$(foreach a,$(ARCHITECTURES),-gencode arch=compute_$(a),code=sm_$(a)) \
  -gencode arch=compute_80,code=compute_80)
$(BUILD)/cuda/%.o: cuda/%.cu $(BUILD)/cuda/code
	@mkdir -p $(@D)
	$(call say,$<) $(NVCC) $(NVCCFLAGS) $(CODE) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<
$(BUILD)/cuda/code: FORCE
	@mkdir -p $(@D)
	@echo '$(GPU) $(CODE)' | cmp -s - $@ || echo '$(GPU) $(CODE)' >$@

# A target that needs a compiler, or a library that comes with one, which is not there says so and fails.
comma := ,
without = { echo "$(1)" >&2; exit 1; }

cuda-compiler:
	@$(if $(NVCC),:,$(call without,there is no nvcc in PATH$(comma) in CUDA_HOME or in /usr/local/cuda; it comes with the CUDA Toolkit))

COMPILED_cuda := $(foreach a,$(ARCHITECTURES),$(KERNELS_CU:cuda/%.cu=$(BUILD)/cuda/sm_$(a)/%.o))
cuda: $(COMPILED_cuda)
	@echo "compiled $(words $(KERNELS_CU)) files each for sm_80, sm_90a and sm_100, without a warning"
define cuda_rule
$(BUILD)/cuda/sm_$(1)/%.o: cuda/%.cu | cuda-compiler
	@mkdir -p $$(@D)
	$$(call say,$$< for sm_$(1)) $(NVCC) $$(NVCCFLAGS) -Werror all-warnings -arch=sm_$(1) -MMD -MP -MF $$(@:.o=.d) -c -o $$@ $$<
endef
$(foreach a,$(ARCHITECTURES),$(eval $(call cuda_rule,$(a))))

$(BUILD)/%.o: src/%.cpp
	@mkdir -p $(@D)
	$(call say,$<) $(CXX) $(CXXFLAGS) $(OPTIMIZE_REST) $(ISAS:%=-DHAVE_ISA_%) -MMD -MP -c -o $@ $<

define kernel_rule
$(BUILD)/cpu/$(1)/%.o: src/cpu/%.cpp
	@mkdir -p $$(@D)
	$$(call say,$$< for $(1)) $(CXX) $(CXXFLAGS) $$(FLAGS_$(1)) -DISA=$(1) -MMD -MP -c -o $$@ $$<
endef
$(foreach isa,$(ISAS),$(eval $(call kernel_rule,$(isa))))

TEST_OBJECTS := $(TESTS:test/%.cpp=$(BUILD)/test/%.o)
$(filter-out $(BUILD)/test/fuzz/%,$(TEST_OBJECTS)): | gtest
$(BUILD)/test/%.o: test/%.cpp
	@mkdir -p $(@D)
	$(call say,$<) $(CXX) $(CXXFLAGS) $(OPTIMIZE_REST) -Isrc/cpu -Itest -Itest/simt -Icuda -MMD -MP -c -o $@ $<
$(BUILD)/tests: $(TEST_OBJECTS) $(EMULATED) $(LIBRARY)
	$(call say,$@) $(CXX) -o $@ $^ $(LDFLAGS) -lgtest -lgtest_main

# The CUDA kernels on the CPU, for the tests: test/simt/ stands in for CUDA's headers.
EMULATED_FLAGS := -Itest/simt -Icuda -fno-strict-aliasing
$(BUILD)/emulated/%.o: cuda/%.cu
	@mkdir -p $(@D)
	$(call say,$< for the emulator) $(CXX) $(CXXFLAGS) $(EMULATED_FLAGS) -MMD -MP -x c++ -c -o $@ $<
$(BUILD)/emulated/simt/%.o: test/simt/%.cpp
	@mkdir -p $(@D)
	$(call say,$<) $(CXX) $(CXXFLAGS) $(EMULATED_FLAGS) -MMD -MP -c -o $@ $<

# The programs with the emulated device, for the tests of --device cuda.
EMULATED_PROGRAMS := $(patsubst %,$(BUILD)/emulated/%,$(filter-out tokenize,$(PROGRAMS)))
$(EMULATED_PROGRAMS): $(BUILD)/emulated/%: $(BUILD)/%.o $(EMULATED) $(LIBRARY)
	$(call say,$@) $(CXX) -o $@ $^ $(LDFLAGS)

# The same tests of the CUDA operations on a real device: CUDA=1, scripts/gpu_check.sh.
GPU_TEST_OBJECTS := $(patsubst test/%.cpp,$(BUILD)/test/%.o,$(wildcard test/cuda/*.cpp))
$(BUILD)/gpu_tests: $(GPU_TEST_OBJECTS) $(LIBRARY)
	$(call say,$@) $(CXX) -o $@ $^ $(LDFLAGS) $(CUDA_LDFLAGS) -lgtest -lgtest_main

gtest:
	@sh test/find_gtest.sh $(CXX)

COMPILED_test := $(COMPILED_all) $(COMPILED_bench) $(TEST_OBJECTS) $(EMULATED)
test: $(PROGRAMS:%=$(PLACE)%) $(PLACE)bench $(EMULATED_PROGRAMS) $(BUILD)/tests
	@sh test/run.sh $(BUILD)/tests $(if $(PLACE),$(BUILD),.) $(BUILD)/emulated

test-long: export FULLBAND_TEST_LONG = 1
test-long:
	@MAKE='$(MAKE)' sh test/neon.sh
	@$(MAKE) test

sanitize:
	@echo 'int main() {}' | $(CXX) -fsanitize=address,undefined -x c++ - -o /dev/null 2>/dev/null || \
	  $(call without,$(CXX) links no program with AddressSanitizer and UndefinedBehaviorSanitizer: install its libasan and libubsan)
	$(MAKE) test BUILD=build/sanitize OPTIMIZE=-O1 EXTRA="-fsanitize=address,undefined -fno-sanitize-recover=all"

# One program, whose name is the target that it runs; the table in test/fuzz/fuzz.cpp has them all. Parsers need no kernels.
FUZZERS = $(shell sed -n 's/^ *{"\([a-z0-9_]*\)", fuzz_.*/\1/p' test/fuzz/fuzz.cpp)
CLANG ?= clang++
fuzz:
	@command -v $(CLANG) >/dev/null || $(call without,there is no $(CLANG) in PATH; libFuzzer comes with clang (CLANG=NAME: under another name))
	@echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' | \
	  $(CLANG) -fsanitize=fuzzer,address,undefined -x c++ - -o /dev/null 2>/dev/null || \
	  $(call without,$(CLANG) links no program with libFuzzer: install compiler-rt$(comma) on Debian libclang-rt-dev)
	$(MAKE) fuzzers BUILD=build/fuzz CUDA=0 CXX=$(CLANG) OPTIMIZE=-O1 \
	  EXTRA="-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all"
	@echo "look with one of them: build/fuzz/json -max_total_time=180 FOLDER_OF_FINDS test/fuzz/corpus/json"
PARSERS := $(patsubst src/%.cpp,$(BUILD)/%.o,$(filter-out src/cpu_kernels.cpp,$(ENGINE)))
COMPILED_fuzzers := $(FUZZED:test/%.cpp=$(BUILD)/test/%.o) $(BUILD)/test/fuzz/main.o $(PARSERS)
fuzzers: $(BUILD)/fuzzer
	@for name in $(FUZZERS); do ln -sf fuzzer $(BUILD)/$$name; done
$(BUILD)/fuzzer: $(FUZZED:test/%.cpp=$(BUILD)/test/%.o) $(BUILD)/test/fuzz/main.o $(BUILD)/parsers.a
	$(call say,$@) $(CXX) -o $@ $^ $(LDFLAGS) -fsanitize=fuzzer
$(BUILD)/parsers.a: $(PARSERS)
	@rm -f $@
	@ar rcs $@ $^

PREFIX ?= /usr/local
WHERE = $(if $(filter-out /%,$(PREFIX)),$(CURDIR)/)$(PREFIX)
ROOT = $(DESTDIR)$(WHERE)
COMPILED_install := $(COMPILED_all)
install: all
	@$(if $(word 2,$(PREFIX)),$(call without,PREFIX is one folder without a space in its name$(comma) not $(PREFIX)),:)
	@mkdir -p '$(ROOT)/bin' '$(ROOT)/lib/pkgconfig'
	@rm -rf '$(ROOT)/include/fullband' && mkdir -p '$(ROOT)/include/fullband'
	@for name in $(PROGRAMS); do install -m 755 $(PLACE)$$name '$(ROOT)/bin/fullband-'$$name || exit 1; done
	@install -m 644 $(LIBRARY) '$(ROOT)/lib'
	@install -m 644 include/*.h '$(ROOT)/include/fullband'
	@printf '%s\n' 'prefix=$(WHERE)' 'libdir=$${prefix}/lib' 'includedir=$${prefix}/include' '' 'Name: fullband' \
	  'Description: Trains and decodes full-bandwidth transformers' \
	  "Version: $$(sed -n 's/.*kVersion = "\(.*\)".*/\1/p' include/program.h)" \
	  'Cflags: -std=c++20 -pthread -I$${includedir}' \
	  'Libs: -L$${libdir} -lfullband -pthread $(CUDA_LDFLAGS)' >'$(ROOT)/lib/pkgconfig/fullband.pc'
	@echo 'installed $(PROGRAMS:%=fullband-%), the library and its headers in $(ROOT)'
uninstall:
	@rm -rf $(PROGRAMS:%='$(ROOT)/bin/fullband-%') '$(ROOT)/lib/libfullband.a' '$(ROOT)/lib/pkgconfig/fullband.pc' \
	  '$(ROOT)/include/fullband'
	@echo 'nothing of Fullband is left in $(ROOT)'

clean:
	rm -rf build $(PROGRAMS) bench

MISSING := $(foreach goal,$(or $(MAKECMDGOALS),all),$(COMPILED_$(goal)))
MISSING := $(filter-out $(wildcard $(MISSING)),$(sort $(MISSING)))
-include $(wildcard $(addprefix $(BUILD)/,*.d test/*.d test/*/*.d cpu/*/*.d emulated/*.d emulated/simt/*.d cuda/*.d cuda/*/*.d))
FORCE:
.PHONY: all install uninstall test test-long sanitize fuzz fuzzers clean gtest cuda cuda-compiler FORCE
.SECONDARY:
