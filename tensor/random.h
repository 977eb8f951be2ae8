// Random numbers by (seed, stream, offset): Philox 4x32-10. The same numbers for any number of
// threads and on any device; there is no global generator.
#pragma once
#include "tensor/tensor.h"

namespace pellucid {

// A place in one stream of 32-bit random numbers; each draw moves offset on by what it took. The
// three numbers are the whole state: save them to go on from here.
struct Generator {
  uint64_t seed = 0, stream = 0, offset = 0;

  uint32_t next();           // one 32-bit number
  double uniform();          // [0, 1), 53 bits; takes two numbers
  int64_t below(int64_t n);  // 0 .. n - 1, each equally often; n >= 1
};

Tensor rand(const Shape& shape, Generator& rng, DType dtype = kFloat32);   // uniform in [0, 1)
Tensor randn(const Shape& shape, Generator& rng, DType dtype = kFloat32);  // mean 0, variance 1
// 0 .. n - 1 in random order; int64 (n)
std::vector<int64_t> permutation(int64_t n, Generator& rng);

}  // namespace pellucid
