// A program on a CPU without the instructions it was built for: one line and exit code 1, before
// anything else runs.
#include <doctest/doctest.h>

#include "program.h"

namespace {

// qemu's Nehalem knows SSE 4.2 but no AVX.
const char* kEmulator = "/usr/bin/qemu-x86_64";

bool built_for_avx() {
#if defined(__AVX__)
  return true;
#else
  return false;
#endif
}

void check_refused(const Ended& ended, const std::string& feature) {
  INFO(ended.err);
  CHECK(ended.code == 1);
  CHECK(ended.out == "");
  CHECK(ended.err == "pellucid: this program was built for a CPU with " + feature +
                         ", which this one lacks. Build it here: delete the folder build and run "
                         "./pellucid again, or set PELLUCID_MARCH=x86-64 for a program that runs "
                         "everywhere.\n");
}

// The emulator has no room for a sanitizer's shadow memory.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

}  // namespace

#if defined(__x86_64__)
TEST_CASE("a program built for instructions that this CPU lacks" *
          doctest::skip(__builtin_cpu_supports("xop") != 0) *
          doctest::description("this CPU is the rare one that has xop")) {
  // The program's own initialiser would print, had it its turn.
  check_refused(run({}, {.program = PELLUCID_OTHER_CPU}), "xop");
}

TEST_CASE("the program itself on an older CPU" *
          doctest::skip(access(kEmulator, X_OK) != 0 || !built_for_avx() || kSanitized) *
          doctest::description("needs qemu-user, and a build for AVX without a sanitizer")) {
  check_refused(run({"-cpu", "Nehalem", PELLUCID_PROGRAM, "doctor"}, {.program = kEmulator}),
                "avx");
  // Tests are programs too.
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  check_refused(run({"-cpu", "Nehalem", self}, {.program = kEmulator}), "avx");
}
#endif
