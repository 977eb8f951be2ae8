// For cpu_check_test.cpp: linked with a check for instructions that only Xeon Phi has.
#include <unistd.h>

#include <string>

namespace {

struct Early {
  Early() {
    const std::string text = "an initialiser ran before the check\n";
    if (write(1, text.data(), text.size()) < 0) _exit(3);
  }
} early;

}  // namespace

int main() { return 0; }
