#include "kernels/machine.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

#include "kernels/simd.h"
#include "kernels/thread_pool.h"

namespace pellucid {
namespace {

// Enough independent sums to hide the latency of a multiply-add, few enough for 16 registers.
constexpr int kSums = 12;

void multiply_add(int64_t times) {
  Vector<float> sum[kSums], x = Vector<float>{} + 0.999f, y = Vector<float>{} + 0.001f;
  // The compiler must neither know the numbers nor leave the sums out.
  asm volatile("" : "+m"(x), "+m"(y));
  for (int i = 0; i < kSums; ++i) sum[i] = y * float(i);
  for (int64_t t = 0; t < times; ++t)
#pragma GCC unroll 16
    for (int i = 0; i < kSums; ++i) sum[i] = sum[i] * x + y;
  for (int i = 0; i < kSums; ++i) asm volatile("" : : "m"(sum[i]));
}

// Seconds of the fastest of some runs within about 0.2 s: others disturb a run, nothing speeds one.
template <class F>
double least_seconds(const F& run) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  double least = 1e30;
  do {
    const auto start = Clock::now();
    run();
    least = std::min(least, std::chrono::duration<double>(Clock::now() - start).count());
  } while (std::chrono::duration<double>(Clock::now() - begin).count() < 0.2);
  return least;
}

}  // namespace

double measure_fma_peak() {
  // Blocks of some 50 us, many for each thread, so that none waits long for another at the end.
  constexpr int64_t kTimes = 20000;
  const int64_t blocks = 200 * num_threads();
  const auto run = [&] { parallel_for(blocks, 1, [](int64_t, int64_t) { multiply_add(kTimes); }); };
  return 2.0 * double(blocks * kTimes) * kSums * kLanes<float> / least_seconds(run);
}

double measure_copy_bandwidth() {
  // Each thread copies one long piece, as the C library copies best; both arrays are 64 MiB.
  constexpr int64_t kBytes = int64_t{64} << 20;
  const auto from = std::make_unique<char[]>(kBytes), to = std::make_unique<char[]>(kBytes);
  const int64_t piece = kBytes / num_threads() + 1;
  const auto run = [&] {
    parallel_for(kBytes, piece, [&](int64_t i0, int64_t i1) {
      std::memcpy(to.get() + i0, from.get() + i0, std::size_t(i1 - i0));
    });
  };
  return 2.0 * double(kBytes) / least_seconds(run);
}

}  // namespace pellucid
