#include "tutorials/demos/interrupt.h"

#include <csignal>

namespace pellucid::demos {

static volatile std::sig_atomic_t caught = 0;

static void note(int signal) { caught = signal; }

InterruptGuard::InterruptGuard() {
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second one has its usual effect
  caught = 0;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

bool interrupted() { return caught != 0; }
int interrupted_exit_code() { return 128 + static_cast<int>(caught); }

}  // namespace pellucid::demos
