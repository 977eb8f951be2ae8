#include "kernels/thread_pool.h"

#include <pthread.h>
#ifdef __linux__
#include <sched.h>
#endif

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace pellucid {
namespace {

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// About 50 us: longer than the serial code between two kernels, shorter than anybody's patience. A
// sleeping worker costs its caller a system call and joins some 50 us late.
constexpr int kSpins = 4000;
constexpr uint32_t kClosed = 1u << 31;

thread_local bool inside_block = false;
std::atomic<int> forks{0};  // between this process and the first one

class Pool {
 public:
  explicit Pool(int threads) : asked(threads) {
    // The system may refuse threads: then there are fewer.
    try {
      for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
    } catch (const std::system_error&) {
    }
    shares_ = std::vector<Share>(workers_.size() + 1);
  }
  ~Pool() {
    stop_ = true;
    announce();
    for (std::thread& w : workers_) w.join();
  }
  const int asked;

  // Offer the blocks, take part, close the door, wait for those who came in. A worker that wakes
  // too late finds the door closed, so nobody waits for it.
  void run(int64_t n, int64_t grain, detail::BlockFunction call, const void* fn) {
    n_ = n, grain_ = grain, call_ = call, fn_ = fn;
    const int64_t blocks = (n - 1) / grain + 1, threads = int64_t(shares_.size());
    for (int64_t t = 0; t < threads; ++t) {
      shares_[t].next.store(blocks * t / threads, std::memory_order_relaxed);
      shares_[t].end = blocks * (t + 1) / threads;
    }
    const int forks_before = forks;
    door_.fetch_and(~kClosed, std::memory_order_release);
    announce();
    take_blocks(0);
    door_.fetch_or(kClosed, std::memory_order_acq_rel);
    for (int spin = 0; door_.load(std::memory_order_acquire) != kClosed; ++spin) {
      spin < kSpins ? pause() : std::this_thread::yield();
      if (forks != forks_before)
        throw std::runtime_error("parallel_for: this child was forked inside a block");
    }
    if (failed_.exchange(false)) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  void announce() {
    round_.fetch_add(1, std::memory_order_seq_cst);
    round_.notify_all();
  }

  // Take the blocks of one's own share, then what is left of the others': the same thread meets the
  // same rows in every call, which keeps them in its cache, and nobody waits for a slow thread.
  void take_blocks(std::size_t self) {
    inside_block = true;
    try {
      for (std::size_t t = 0; t < shares_.size(); ++t) {
        Share& share = shares_[(self + t) % shares_.size()];
        while (share.next.load(std::memory_order_relaxed) < share.end) {
          const int64_t i = share.next.fetch_add(1, std::memory_order_relaxed);
          if (i < share.end) call_(fn_, i * grain_, std::min((i + 1) * grain_, n_));
        }
      }
    } catch (...) {
      if (!failed_.exchange(true)) error_ = std::current_exception();
    }
    inside_block = false;
  }

  void work(int self) {
    for (uint32_t seen = 0;;) {
      for (int spin = 0; round_.load(std::memory_order_acquire) == seen && spin < kSpins; ++spin)
        pause();
      round_.wait(seen, std::memory_order_acquire);
      seen = round_.load(std::memory_order_acquire);
      if (stop_) return;
      if (!(door_.fetch_add(1, std::memory_order_acq_rel) & kClosed)) take_blocks(self);
      door_.fetch_sub(1, std::memory_order_acq_rel);
    }
  }

  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  int64_t n_ = 0, grain_ = 1;
  detail::BlockFunction call_ = nullptr;
  const void* fn_ = nullptr;
  std::vector<Share> shares_;
  alignas(64) std::atomic<uint32_t> door_{kClosed};  // how many workers are inside, and kClosed
  alignas(64) std::atomic<uint32_t> round_{0};
  std::atomic<bool> stop_{false}, failed_{false};
  std::exception_ptr error_;  // of the first block that failed
  std::vector<std::thread> workers_;
};

// CPU time that the container may use, in CPUs; 0 without a limit.
double cpu_quota() {
  std::string quota;
  double period = 0;
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  if (v2 >> quota >> period && quota != "max") return std::atof(quota.c_str()) / period;
  std::ifstream v1("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream v1_period("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double microseconds = 0;
  if (v1 >> microseconds && v1_period >> period && microseconds > 0) return microseconds / period;
  return 0;
}

int usable_cpus() {
  int cpus = std::max(1, int(std::thread::hardware_concurrency()));
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) cpus = std::max(1, CPU_COUNT(&set));
#endif
  const double quota = cpu_quota();
  return quota > 0 ? std::min(cpus, int(std::ceil(quota))) : cpus;
}

int wanted_by_default() {
  const char* text = std::getenv("PELLUCID_NUM_THREADS");
  if (!text || !*text) return usable_cpus();
  char* end = nullptr;
  const long n = std::strtol(text, &end, 10);
  if (*end || n < 1 || n > 1024)
    throw std::invalid_argument("PELLUCID_NUM_THREADS: wanted a number from 1 to 1024; got \"" +
                                std::string(text) + "\"");
  return int(n);
}

// Ready before every static object and there after every one, since any may call parallel_for.
constinit std::atomic<int> wanted{0};  // 0: not decided yet
constinit std::atomic<bool> ended{false};
constinit std::mutex pool_mutex;
constinit Pool* pool = nullptr;  // under pool_mutex

// At the end of the program the workers go home, unless somebody still needs them.
struct EndOfProgram {
  ~EndOfProgram() {
    ended = true;
    if (inside_block) return;
    std::unique_lock lock(pool_mutex, std::try_to_lock);
    if (lock) delete std::exchange(pool, nullptr);
  }
};

// A child has its parent's memory but none of its workers: it forgets the pool, and perhaps a lock
// that no thread of its own holds.
void forget_pool() {
  ++forks;
  new (&pool_mutex) std::mutex;
  pool = nullptr;
}

Pool& current_pool() {
  static EndOfProgram at_end;
  [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, forget_pool);
  const int threads = num_threads();
  if (!pool || pool->asked != threads) {
    delete std::exchange(pool, nullptr);
    pool = new Pool(threads);
  }
  return *pool;
}

}  // namespace

int num_threads() {
  int n = wanted;
  if (n == 0) {
    const int by_default = wanted_by_default();
    n = wanted.compare_exchange_strong(n, by_default) ? by_default : n;
  }
  return n;
}

void set_num_threads(int n) {
  if (n < 1 || n > 1024)
    throw std::invalid_argument("set_num_threads: wanted 1 to 1024; got " + std::to_string(n));
  wanted = n;
}

bool inside_parallel_for() { return inside_block; }

void detail::run_blocks(int64_t n, int64_t grain, BlockFunction call, const void* fn) {
  if (!inside_block && !ended && num_threads() > 1) {
    std::unique_lock lock(pool_mutex, std::try_to_lock);
    if (lock) return current_pool().run(n, grain, call, fn);
  }
  for (int64_t i = 0; i < n; i += grain) call(fn, i, std::min(i + grain, n));
}

}  // namespace pellucid
