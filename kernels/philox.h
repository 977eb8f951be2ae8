// Philox 4x32-10: four 32-bit random numbers from a counter and a key, for both devices.
// Ten rounds of c <- (hi(M1 c2) ^ c1 ^ k0, lo(M1 c2), hi(M0 c0) ^ c3 ^ k1, lo(M0 c0)), k <- k + W.
// Number i of stream s of a seed is word i % 4 of the block with counter (i / 4, s), key = seed.
// Salmon, Moraes, Dror and Shaw: Parallel random numbers: as easy as 1, 2, 3. SC 2011.
#pragma once
#include "kernels/kernel.h"

namespace pellucid {

struct Philox {
  static constexpr uint32_t kM0 = 0xD2511F53, kM1 = 0xCD9E8D57;  // multipliers
  static constexpr uint32_t kW0 = 0x9E3779B9, kW1 = 0xBB67AE85;  // steps of the key

  uint32_t c[4];

  HOST_DEVICE Philox(const uint32_t (&counter)[4], const uint32_t (&key)[2])
      : c{counter[0], counter[1], counter[2], counter[3]} {
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; ++round, k0 += kW0, k1 += kW1) {
      const uint64_t p0 = uint64_t{kM0} * c[0], p1 = uint64_t{kM1} * c[2];
      c[0] = uint32_t(p1 >> 32) ^ c[1] ^ k0;
      c[1] = uint32_t(p1);
      c[2] = uint32_t(p0 >> 32) ^ c[3] ^ k1;
      c[3] = uint32_t(p0);
    }
  }
};

// One number of a stream.
HOST_DEVICE inline uint32_t philox_number(uint64_t seed, uint64_t stream, uint64_t i) {
  const uint64_t block = i / 4;
  return Philox({uint32_t(block), uint32_t(block >> 32), uint32_t(stream), uint32_t(stream >> 32)},
                {uint32_t(seed), uint32_t(seed >> 32)})
      .c[i % 4];
}

// Both conversions of a 32-bit number are exact: [0, 1), and (0, 1] of which a logarithm is finite.
HOST_DEVICE inline double unit_from_zero(uint32_t number) { return number * 0x1p-32; }
HOST_DEVICE inline double unit_above_zero(uint32_t number) { return (number + 1.0) * 0x1p-32; }
// [0, 1) with all the bits that a float or a double has there.
template <class T>
HOST_DEVICE inline T uniform_from(uint32_t high, uint32_t low);
template <>
HOST_DEVICE inline float uniform_from<float>(uint32_t high, uint32_t) {
  return float(high >> 8) * 0x1p-24f;
}
template <>
HOST_DEVICE inline double uniform_from<double>(uint32_t high, uint32_t low) {
  return double((uint64_t{high} << 21) | (low >> 11)) * 0x1p-53;
}

namespace cpu {
// Numbers first, first + 1, ... first + n - 1 of a stream (kernels/random.cpp).
void philox_numbers(uint32_t* numbers, int64_t n, uint64_t seed, uint64_t stream, uint64_t first);
}  // namespace cpu

}  // namespace pellucid
