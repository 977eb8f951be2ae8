// Says in one line, at start, when a binary meets a CPU without the instructions it was built for;
// without this it would die of an illegal instruction. Linked as an object into every program (a
// member of a static library would be dropped), compiled for the plain x86-64, run before every
// other initialiser, and calling nothing but write and _exit: the C++ library's templates might be
// the copies that were compiled for the newer CPU.
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <unistd.h>

namespace {

// The features of the target that the compiler can ask about by name; written by CMake.
struct Feature {
  const char* name;
  bool here;
};

void say(const char* text) {
  unsigned long length = 0;
  while (text[length]) ++length;
  if (write(2, text, length) < 0) _exit(1);
}

__attribute__((constructor(101))) void check_cpu() {
  __builtin_cpu_init();
  const Feature features[] = {
#define FEATURE(name) {name, __builtin_cpu_supports(name) != 0},
#include "cpu_features.inc"
#undef FEATURE
      {"", true}};
  for (const Feature& feature : features) {
    if (feature.here) continue;
    say("pellucid: this program was built for a CPU with ");
    say(feature.name);
    say(", which this one lacks. Build it here: delete the folder build and run ./pellucid again, "
        "or "
        "set PELLUCID_MARCH=x86-64 for a program that runs everywhere.\n");
    _exit(1);
  }
}

}  // namespace
#endif
