#include "kernels/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
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

class Pool {
 public:
  explicit Pool(int threads) : shares_(threads) {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
  }
  ~Pool() {
    stop_ = true;
    announce();
    for (std::thread& w : workers_) w.join();
  }
  int threads() const { return int(shares_.size()); }

  // Offer the blocks, take part, close the door, wait for those who came in. A worker that wakes
  // too late finds the door closed, so nobody waits for it.
  void run(int64_t n, int64_t grain, detail::BlockFunction call, const void* fn) {
    n_ = n, grain_ = grain, call_ = call, fn_ = fn;
    const int64_t blocks = (n + grain - 1) / grain;
    for (int t = 0; t < threads(); ++t) {
      shares_[t].next.store(blocks * t / threads(), std::memory_order_relaxed);
      shares_[t].end = blocks * (t + 1) / threads();
    }
    door_.fetch_and(~kClosed, std::memory_order_release);
    announce();
    take_blocks(0);
    door_.fetch_or(kClosed, std::memory_order_acq_rel);
    for (int spin = 0; door_.load(std::memory_order_acquire) != kClosed; ++spin)
      spin < kSpins ? pause() : std::this_thread::yield();
  }

 private:
  void announce() {
    round_.fetch_add(1, std::memory_order_seq_cst);
    round_.notify_all();
  }

  // Take the blocks of one's own share, then what is left of the others': the same thread meets the
  // same rows in every call, which keeps them in its cache, and nobody waits for a slow thread.
  void take_blocks(int self) {
    inside_block = true;
    for (int t = 0; t < threads(); ++t) {
      Share& share = shares_[(self + t) % threads()];
      while (share.next.load(std::memory_order_relaxed) < share.end) {
        const int64_t i = share.next.fetch_add(1, std::memory_order_relaxed);
        if (i < share.end) call_(fn_, i * grain_, std::min((i + 1) * grain_, n_));
      }
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
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

std::mutex pool_mutex;

std::unique_ptr<Pool>& pool() {
  static auto p = std::make_unique<Pool>(std::max(1, int(std::thread::hardware_concurrency())));
  return p;
}

}  // namespace

int num_threads() { return pool()->threads(); }

void set_num_threads(int n) {
  std::lock_guard lock(pool_mutex);
  pool() = std::make_unique<Pool>(std::max(1, n));
}

void detail::run_blocks(int64_t n, int64_t grain, BlockFunction call, const void* fn) {
  if (!inside_block) {
    std::unique_lock lock(pool_mutex, std::try_to_lock);
    if (lock && pool()->threads() > 1) return pool()->run(n, grain, call, fn);
  }
  for (int64_t i = 0; i < n; i += grain) call(fn, i, std::min(i + grain, n));
}

}  // namespace pellucid
