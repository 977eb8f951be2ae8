// What the tests of the row kernels share: buffers between NaN borders, random numbers, a judge of
// rounding errors, and runs on several numbers of threads.
//
// Bounds are in units of u, half the distance of 1 and the next number of T. A sum of n terms is
// folded in 64 lanes, at most 32 terms deep, then as a tree of 6 levels, and rounded once on
// leaving: |error| <= sum_bound(n) u sum |terms| for any data.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "kernels/thread_pool.h"

namespace pellucid {

constexpr int64_t kOddSizes[] = {1, 2, 3, 17, 31, 33, 63, 65, 127, 129, 2049, 5000};

template <class T>
constexpr double kUnit = std::numeric_limits<T>::epsilon() / 2;

inline double sum_bound(int64_t n) { return double(std::min<int64_t>(32, (n + 63) / 64)) + 7; }

// n numbers with NaN before and behind: what reads there shows it, what writes there is found.
template <class T>
class Bordered {
 public:
  explicit Bordered(int64_t n, double fill = std::numeric_limits<double>::quiet_NaN())
      : all_(size_t(n) + 2 * kBorder, std::numeric_limits<T>::quiet_NaN()), n_(n) {
    std::fill_n(data(), n, T(fill));
  }
  T* data() { return all_.data() + kBorder; }
  T& operator[](int64_t i) { return data()[i]; }
  int64_t size() const { return n_; }
  bool borders_intact() const {
    for (size_t i = 0; i < kBorder; ++i)
      if (!std::isnan(all_[i]) || !std::isnan(all_[all_.size() - 1 - i])) return false;
    return true;
  }

 private:
  static constexpr size_t kBorder = 80;
  std::vector<T> all_;
  int64_t n_;
};

template <class T>
Bordered<T> normal(int64_t n, uint32_t seed, double mean = 0, double deviation = 1) {
  Bordered<T> x(n);
  std::mt19937 rng(seed);
  std::normal_distribution<double> distribution;
  for (int64_t i = 0; i < n; ++i) x[i] = T(mean + deviation * distribution(rng));
  return x;
}

// Keeps the worst |error| / bound; above 1, or NaN where none is due, the test fails.
struct Judge {
  double worst = 0;
  void operator()(double got, long double want, double bound) {
    const double error = double(std::abs((long double)got - want));
    worst = std::max(worst, error <= bound ? (bound > 0 ? error / bound : 0) : HUGE_VAL);
  }
  ~Judge() { CHECK(worst <= 1); }
};

// Runs fn on 1, 2, 3 and 7 threads: each must leave the same bytes in out.
template <class T>
void same_bytes_on_any_threads(std::vector<Bordered<T>*> out, const std::function<void()>& fn) {
  const int before = num_threads();
  std::vector<std::vector<T>> first;
  for (int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    for (Bordered<T>* y : out) std::fill_n(y->data(), y->size(), T(-77));
    fn();
    for (size_t i = 0; i < out.size(); ++i) {
      std::vector<T> bytes(out[i]->data(), out[i]->data() + out[i]->size());
      if (threads == 1) first.push_back(bytes);
      CHECK(std::memcmp(bytes.data(), first[i].data(), bytes.size() * sizeof(T)) == 0);
      CHECK(out[i]->borders_intact());
    }
  }
  set_num_threads(before);
}

}  // namespace pellucid
