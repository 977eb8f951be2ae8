// scatter_add_rows against a plain loop in double, over sizes, skewed ids and threads.
#include "kernels/embedding.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/thread_pool.h"

using namespace pellucid;

template <class T>
static void check(int64_t N, int64_t V, int64_t C, int64_t skew) {
  INFO("N ", N, ", V ", V, ", C ", C, ", skew ", skew);
  std::vector<T> x(N * C), y(V * C + 8, T(-7)), gathered(N * C + 8, T(-7));
  std::vector<int64_t> ids(N);
  uint64_t state = 12345;
  const auto next = [&] {
    return state = state * 6364136223846793005u + 1442695040888963407u, state >> 33;
  };
  for (T& value : x) value = static_cast<T>(next() % 2001) / 1000 - 1;
  for (int64_t& id : ids) id = next() % 10 < static_cast<uint64_t>(skew) ? V / 2 : next() % V;

  std::vector<double> total(V * C), magnitude(V * C);
  for (int64_t n = 0; n < N; ++n)
    for (int64_t c = 0; c < C; ++c) {
      total[ids[n] * C + c] += x[n * C + c];
      magnitude[ids[n] * C + c] += std::abs(x[n * C + c]);
    }
  cpu::scatter_add_rows<T>(y.data(), x.data(), ids.data(), N, C, V);
  const double u = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53;
  double worst =
      0;  // sums in double, rounded once; for double, N roundings of sums up to magnitude
  for (int64_t i = 0; i < V * C; ++i) {
    const double allowed = sizeof(T) == 4 ? u * std::abs(total[i]) + 1e-3 * u * magnitude[i]
                                          : 2 * static_cast<double>(N) * u * magnitude[i];
    if (y[i] != static_cast<T>(total[i]))
      worst = std::max(worst, std::abs(y[i] - total[i]) / allowed);
  }
  CHECK(worst <= 1);
  for (int64_t i = 0; i < 8; ++i) CHECK(y[V * C + i] == T(-7));  // not past the end

  for (int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    std::vector<T> again(V * C, T(-7));
    cpu::scatter_add_rows<T>(again.data(), x.data(), ids.data(), N, C, V);
    CHECK((again.empty() || std::memcmp(again.data(), y.data(), V * C * sizeof(T)) == 0));
    cpu::embedding<T>(gathered.data(), y.data(), ids.data(), N, C);
    bool same = true;
    for (int64_t n = 0; n < N; ++n)
      for (int64_t c = 0; c < C; ++c) same = same && gathered[n * C + c] == y[ids[n] * C + c];
    CHECK(same);
    CHECK(gathered[N * C] == T(-7));
  }
}

TEST_CASE("scatter_add_rows and embedding") {
  const int before = num_threads();
  for (int64_t C : {0, 1, 2, 3, 17, 31, 33, 63, 64, 65, 127, 129, 384})
    for (int64_t N : {0, 1, 33, 257})
      for (int64_t skew : {0, 8}) check<float>(N, 5, C, skew), check<double>(N, 5, C, skew);
  check<float>(2048, 96, 384, 2);
  check<float>(300, 1, 65, 0);
  check<float>(7, 5000, 33, 0);
  set_num_threads(before);
}

TEST_CASE("a row summed 2^24 + 1000 times does not stick (R18)") {
  const int64_t N = (1 << 24) + 1000;
  const std::vector<float> x(N, 1.0f);
  const std::vector<int64_t> ids(N, 1);
  std::vector<float> y(2);
  cpu::scatter_add_rows<float>(y.data(), x.data(), ids.data(), N, 1, 2);
  CHECK(y[0] == 0);
  CHECK(y[1] == static_cast<float>(N));
}
