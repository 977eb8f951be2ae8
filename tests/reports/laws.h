// What the laws share: random shapes, layouts and values, and the loop over the cases. Values are
// small whole numbers wherever a law is exact, so that sums in any order are equal to the last bit.
#pragma once
#include <algorithm>

#include "reports.h"

namespace pellucid {

constexpr int kCases = 200;

inline std::vector<int> inverse(const std::vector<int>& p) {
  std::vector<int> back(p.size());
  for (std::size_t d = 0; d < p.size(); ++d) back[std::size_t(p[d])] = int(d);
  return back;
}

struct Draw {
  Generator rng;

  int64_t below(int64_t n) { return rng.below(n); }
  bool coin() { return below(2) == 1; }
  // Sizes 1 .. largest, seldom 0.
  int64_t size(int64_t largest) { return below(20) == 0 ? 0 : 1 + below(largest); }
  Shape shape(int min_dim, int max_dim, int64_t largest = 6) {
    Shape s;
    for (int64_t d = min_dim + below(max_dim - min_dim + 1); d > 0; --d) s.push_back(size(largest));
    return s;
  }
  int axis(const Tensor& x) { return int(below(x.dim())); }
  std::vector<int> order(int dim) {
    std::vector<int> p;
    for (const int64_t d : permutation(dim, rng)) p.push_back(int(d));
    return p;
  }
  // Whole numbers in [-8, 8], float32 or float64, in some layout.
  Tensor whole(const Shape& s, DType dtype) {
    Values v;
    for (int64_t i = 0; i < s.numel(); ++i) v.push_back(double(below(17) - 8));
    return layout(from_vector(v, s, dtype));
  }
  Tensor whole(const Shape& s) { return whole(s, coin() ? kFloat32 : kFloat64); }
  // The same elements as another tensor of the same shape, laid out otherwise in memory.
  Tensor layout(const Tensor& x) {
    Tensor y = x;
    for (int64_t steps = below(4); steps > 0 && x.dim() > 0; --steps) {
      if (coin()) {  // other strides
        const std::vector<int> p = order(x.dim());
        y = permute(contiguous(permute(y, p)), inverse(p));
      } else {  // a part of something larger
        const int at = axis(x);
        const int64_t step = 1 + below(3), start = below(4), n = y.size(at);
        const int64_t end = start + (n > 0 ? (n - 1) * step + 1 : 0);
        y = slice(unslice(y, at, end + below(3), start, step), at, start, end, step);
      }
    }
    return y;
  }
  // A shape that broadcasts to s.
  Shape broadcasting_to(const Shape& s) {
    Shape b;
    for (int d = int(below(s.dim() + 1)); d < s.dim(); ++d) b.push_back(coin() ? s[d] : 1);
    return b;
  }
};

// FNV-1a, so that each law has numbers of its own.
inline uint64_t seed_of(const std::string& name) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : name) hash = (hash ^ uint8_t(c)) * 1099511628211u;
  return hash;
}

inline double dot(const Tensor& a, const Tensor& b) { return sum(a * b).item(); }

// Tries the law on each of the cases; it says whether it holds.
template <class Law>
void holds(const std::string& name, Law law) {
  int failures = 0, first = -1;
  for (int n = 0; n < kCases; ++n) {
    Draw draw{{.seed = seed_of(name), .stream = uint64_t(n)}};
    if (!law(draw) && failures++ == 0) first = n;
  }
  CHECK_MESSAGE(failures == 0, name, ": fails in ", failures, " of ", kCases, ", first ", first);
}

}  // namespace pellucid
