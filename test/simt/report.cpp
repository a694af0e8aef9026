#include "report.h"

#include <dlfcn.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "block.h"

namespace simt {

std::string form(const char* format, ...) {
  va_list values, again;
  va_start(values, format);
  va_copy(again, values);
  std::string result(size_t(std::vsnprintf(nullptr, 0, format, again)), '\0');
  va_end(again);
  std::vsnprintf(result.data(), result.size() + 1, format, values);
  va_end(values);
  return result;
}

bool same_text(const Place& a, const Place& b) {
  return a.line() == b.line() && a.column() == b.column() && !std::strcmp(a.file_name(), b.file_name()) &&
         !std::strcmp(a.function_name(), b.function_name());
}

std::string show(const Place& where) { return form("%s:%u", where.file_name(), unsigned(where.line())); }
std::string show(dim3 size) { return form("(%u, %u, %u)", size.x, size.y, size.z); }
std::string show(uint3 index) { return form("(%u, %u, %u)", index.x, index.y, index.z); }

namespace {

// The lines that addr2line prints for a code address: a function and a place in turns, from the innermost inlined
// function outwards.
std::vector<std::string> symbolize(const void* address, const char* flags) {
  Dl_info module;
  if (!dladdr(address, &module) || !module.dli_fname) return {};
  auto offset = static_cast<const char*>(address) - static_cast<const char*>(module.dli_fbase);
  char self[4096] = {};  // dli_fname is what the program was called, from wherever that was
  const char* file = std::strchr(module.dli_fname, '/') ? module.dli_fname : realpath("/proc/self/exe", self);
  if (!file) return {};
  FILE* pipe = popen(form("addr2line %s -e '%s' 0x%zx 2>/dev/null", flags, file, size_t(offset)).c_str(), "r");
  if (!pipe) return {};
  std::vector<std::string> lines;
  char line[4096];
  while (std::fgets(line, sizeof line, pipe)) {
    line[std::strcspn(line, "\n")] = 0;
    if (char* detail = std::strstr(line, " (discriminator")) *detail = 0;
    lines.push_back(line);
  }
  pclose(pipe);
  return lines;
}

std::string show_function(const void* function) {
  auto lines = symbolize(function, "-Cf");
  return lines.empty() || lines[0] == "??" ? "of unknown name" : lines[0];
}

}  // namespace

std::string show_code(const void* address) {
  // A return address is behind its call. The emulator's own inlined accessors say nothing; who called them does.
  std::string chain;
  for (const std::string& place : symbolize(static_cast<const char*>(address) - 1, "-i"))
    if (place.find("simt/shared.h") == std::string::npos && place.find("??") == std::string::npos)
      chain += (chain.empty() ? "" : ", called from ") + place;
  return chain.empty() ? form("code %p", address) : chain;
}

void die_as(int thread, const std::string& what, const std::string& where) {
  std::string report = "simt: " + what + "\n";
  if (!where.empty()) report += "  at " + where + "\n";
  if (const Launch* l = launch_running()) {
    report += form("  kernel %s\n", show_function(l->kernel).c_str());
    report += form("  launched at %s, in %s\n", show(l->grid.where).c_str(), l->grid.where.function_name());
    report += form("  block %s of %s", show(blockIdx).c_str(), show(gridDim).c_str());
    if (thread >= 0)
      report += form(", thread %s of %s", show(block.threads[thread].index).c_str(), show(blockDim).c_str());
    report += "\n";
  }
  std::fprintf(stderr, "%s  seed %llu\n", report.c_str(), static_cast<unsigned long long>(seed()));
  std::fflush(stderr);
  std::abort();
}

void die(const std::string& what, const std::string& where) { die_as(block.current, what, where); }
void die(const std::string& what, const Place& where) { die(what, show(where)); }

}  // namespace simt
