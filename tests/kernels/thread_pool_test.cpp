// parallel_for: the blocks, nested and concurrent callers, what fn throws, forked children, and the
// end of the program.
#include "kernels/thread_pool.h"

#include <doctest/doctest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "in_child.h"

using namespace pellucid;

namespace {

struct Threads {
  int before = num_threads();
  explicit Threads(int n) { set_num_threads(n); }
  ~Threads() { set_num_threads(before); }
};

int64_t parallel_sum(int64_t n) {
  std::atomic<int64_t> sum{0};
  parallel_for(n, 1, [&](int64_t i, int64_t) { sum += i; });
  return sum;
}

// Each block waits for the others: this ends only if so many threads run at once.
void meet(int threads) {
  std::atomic<int> arrived{0};
  parallel_for(threads, 1, [&](int64_t, int64_t) {
    ++arrived;
    while (arrived < threads) std::this_thread::yield();
  });
}

// A static object, so before main() and after it. It ends this process at once if the test of the
// environment has started it; armed, it calls the pool when the workers have gone home.
struct StaticObject {
  bool armed = false;
  StaticObject() {
    if (!std::getenv("PELLUCID_TEST_COUNTS_THREADS")) return;
    try {
      _exit(parallel_sum(100) == 4950 ? num_threads() : 101);
    } catch (const std::invalid_argument&) {
      _exit(102);
    }
  }
  ~StaticObject() {
    if (!armed) return;
    std::atomic<int> of_the_pool{0};
    parallel_for(100, 1, [&](int64_t, int64_t) { of_the_pool += inside_parallel_for(); });
    _exit(parallel_sum(100) == 4950 && of_the_pool == 0 ? 7 : 8);
  }
} static_object;

}  // namespace

TEST_CASE("every element is in one block, and the blocks do not depend on the threads") {
  for (int threads : {1, 2, 3, 7}) {
    const Threads of(threads);
    CHECK(num_threads() == threads);
    for (int64_t n : {0, 1, 7, 1000})
      for (int64_t grain : {1, 3, 2000}) {
        std::vector<int> count(size_t(n), 0);
        std::atomic<int> wrong{0};
        parallel_for(n, grain, [&](int64_t begin, int64_t end) {
          if (begin % grain == 0 && end == std::min(n, begin + grain)) {
            for (int64_t i = begin; i < end; ++i) ++count[size_t(i)];
          } else {
            ++wrong;
          }
        });
        for (int hits : count) wrong += hits != 1;
        INFO(threads, " threads, n ", n, ", grain ", grain);
        CHECK(wrong == 0);
      }
  }
}

TEST_CASE("blocks run on several threads") {
  const Threads of(3);
  parallel_for(3, 1, [&](int64_t, int64_t) { CHECK(inside_parallel_for()); });
  meet(3);
  CHECK(!inside_parallel_for());
}

TEST_CASE("nested and concurrent callers do their own work") {
  const Threads of(3);
  std::atomic<int64_t> sum{0};
  parallel_for(10, 1, [&](int64_t, int64_t) { sum += parallel_sum(100); });
  CHECK(sum == 10 * 4950);

  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 200; ++repeat) wrong += parallel_sum(50) != 1225;
    });
  for (std::thread& c : callers) c.join();
  CHECK(wrong == 0);
}

TEST_CASE("the number of threads changes between two calls from anywhere") {
  const Threads of(2);
  std::atomic<int> wrong{0};
  std::thread other([&] {
    for (int repeat = 0; repeat < 100; ++repeat) wrong += parallel_sum(50) != 1225;
  });
  for (int repeat = 0; repeat < 50; ++repeat) {
    set_num_threads(1 + repeat % 4);
    wrong += parallel_sum(50) != 1225;
  }
  other.join();
  CHECK(wrong == 0);
  CHECK_THROWS_WITH(set_num_threads(0), "set_num_threads: wanted 1 to 1024; got 0");
}

TEST_CASE("the caller gets what a block throws, and the pool goes on") {
  for (int threads : {1, 3}) {
    const Threads of(threads);
    for (int64_t bad : {0, 49, 99}) {
      CHECK_THROWS_WITH(parallel_for(100, 1,
                                     [&](int64_t i, int64_t) {
                                       if (i == bad) throw std::runtime_error("block");
                                     }),
                        "block");
      CHECK(!inside_parallel_for());
      CHECK(parallel_sum(100) == 4950);
    }
  }
}

// TSan refuses threads in the child of a process that has some.
#if !defined(__SANITIZE_THREAD__)
TEST_CASE("a forked child has threads of its own") {
  const Threads of(3);
  CHECK(parallel_sum(100) == 4950);
  CHECK(in_child([] {
          meet(3);
          std::exit(parallel_sum(100) == 4950 ? 7 : 8);  // not _exit: its workers must be joined
          return 9;
        }) == 7);

  // While another thread of the parent runs blocks, and holds the pool.
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) parallel_sum(1000);
  });
  for (int repeat = 0; repeat < 10; ++repeat)
    CHECK(in_child([] { return parallel_sum(100) == 4950 ? 7 : 8; }) == 7);
  stop = true;
  busy.join();
  CHECK(parallel_sum(100) == 4950);
}

TEST_CASE("a child forked inside a block fails or finishes, and never hangs") {
  const Threads of(2);
  std::atomic<int> result{-2};
  parallel_for(2, 1, [&](int64_t i, int64_t) {
    if (i == 1) return std::this_thread::sleep_for(std::chrono::milliseconds(50));
    result = in_child([] { return parallel_sum(100) == 4950 ? 7 : 8; });
  });
  CHECK(result == 7);
}

TEST_CASE("a child forked inside a block that goes on misses the others' blocks, and throws") {
  const Threads of(2);
  const pthread_t caller = pthread_self();
  std::atomic<int> inside{0};
  std::atomic<bool> forked{false};
  pid_t child = -1;
  bool thrown = false;
  try {
    parallel_for(2, 1, [&](int64_t, int64_t) {
      for (++inside; inside < 2;) std::this_thread::yield();
      if (!pthread_equal(pthread_self(), caller)) {
        while (!forked) std::this_thread::yield();
        return;
      }
      child = fork();
      if (child == 0) alarm(10);  // ends it if it waits for the worker that it does not have
      forked = true;
    });
  } catch (const std::runtime_error&) {
    thrown = true;
  }
  if (child == 0) _exit(thrown ? 7 : 8);
  CHECK(!thrown);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);
}

TEST_CASE("parallel_for works while static objects are destroyed") {
  const Threads of(3);
  CHECK(parallel_sum(100) == 4950);
  CHECK(in_child([] {
          parallel_sum(100);
          static_object.armed = true;
          std::exit(9);
          return 9;
        }) == 7);
}
#endif

TEST_CASE("PELLUCID_NUM_THREADS") {
  // In a fresh program, since the first call decides.
  const auto threads_with = [](const char* value) {
    return in_child([&] {
      setenv("PELLUCID_TEST_COUNTS_THREADS", "1", 1);
      value ? setenv("PELLUCID_NUM_THREADS", value, 1) : unsetenv("PELLUCID_NUM_THREADS");
      execl("/proc/self/exe", "test", static_cast<char*>(nullptr));
      return 103;
    });
  };
  CHECK(threads_with("5") == 5);
  CHECK(threads_with("") >= 1);
  CHECK(threads_with(nullptr) == threads_with(""));
  for (const char* bad : {"five", "0", "-2", "3.5", "2000"}) CHECK(threads_with(bad) == 102);
}
