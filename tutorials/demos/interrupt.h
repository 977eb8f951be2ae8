// Ctrl-C and SIGTERM ask for a halt at the next safe place; a second one ends the process at once.
#pragma once

namespace pellucid::demos {

class InterruptGuard {
 public:
  InterruptGuard();  // from here on signals are only noted
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

bool interrupted();
int interrupted_exit_code();  // 128 + the signal, as shells expect

}  // namespace pellucid::demos
