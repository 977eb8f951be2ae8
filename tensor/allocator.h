// The caching allocator behind Storage: a released block waits in the free list of its size class
// for the next tensor of that size, so a training loop asks the system for memory in its first step
// only. (glibc's free hands blocks above 32 MiB back at once; each page then faults in anew.)
#pragma once
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

namespace pellucid {

enum class Device { kCPU, kCUDA };
using enum Device;

// Multiples of 64 bytes up to 512, then eight classes a power of two: at most 1/8 of a block above
// 512 bytes is wasted.
std::size_t block_size(std::size_t bytes);

struct MemoryStats {
  int64_t bytes_in_use = 0;        // in blocks that tensors hold
  int64_t peak_bytes_in_use = 0;   // since the last reset_peak
  int64_t bytes_cached = 0;        // in blocks that wait in the free lists
  int64_t blocks_in_use = 0;       // one for each Storage alive
  int64_t system_allocations = 0;  // how often the system was asked, ever
};
MemoryStats memory_stats(Device device = kCPU);
void reset_peak(Device device = kCPU);
void release_cached(Device device = kCPU);  // gives what no tensor holds back to the system

// New memory on the CPU is filled with a NaN of float32 that is one of float64 too (0x7fc0dead
// twice is a finite double), so that a test finds what was read before it was written.
// PELLUCID_POISON=1 in the environment turns it on from the start.
constexpr uint32_t kPoison = 0x7ff8dead;
void set_poison(bool on);

struct OutOfMemory : std::bad_alloc {
  std::string message;
  explicit OutOfMemory(std::string text) : message(std::move(text)) {}
  const char* what() const noexcept override { return message.c_str(); }
};

// Uninitialised memory for Storage, aligned to 64 bytes (4096 from 4096 bytes on). Any thread.
void* allocate_block(Device device, std::size_t bytes);
void release_block(Device device, void* data, std::size_t bytes) noexcept;

}  // namespace pellucid
