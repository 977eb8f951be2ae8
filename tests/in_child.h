// A part of a test in a process of its own, made by fork.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

// What a child of this process returns from body(), or -1 if it does not end within ten seconds.
template <class F>
int in_child(const F& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  for (int wait = 0; wait < 1000; ++wait) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child)
      return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return -1;
}
