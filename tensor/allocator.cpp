// One list of free blocks for each size class and device, behind one mutex.
#include "tensor/allocator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "kernels/device.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#endif
#endif
#ifndef ASAN_POISON_MEMORY_REGION
#define ASAN_POISON_MEMORY_REGION(data, bytes) ((void)(data), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(data, bytes) ((void)(data), (void)(bytes))
#endif

namespace pellucid {

namespace {

constexpr std::size_t kStep = 64;          // of the small classes: a cache line
constexpr std::size_t kSmall = 8 * kStep;  // from here on eight classes a power of two
constexpr std::size_t kLargest = std::size_t{1} << 62;

struct SizeClass {
  std::size_t index, bytes;
};

SizeClass size_class(std::size_t bytes) {
  if (bytes <= kSmall) {
    const std::size_t steps = std::max<std::size_t>((bytes + kStep - 1) / kStep, 1);
    return {steps - 1, steps * kStep};
  }
  // 2^k < bytes <= 2^(k + 1); the step is 2^(k - 3).
  const auto k = static_cast<std::size_t>(std::bit_width(bytes - 1)) - 1;
  const std::size_t step = std::size_t{1} << (k - 3), steps = (bytes + step - 1) / step;
  return {8 * (k - 8) + steps - 9, steps * step};
}

struct Cache {
  std::mutex mutex;
  MemoryStats stats;
  struct List {
    std::vector<void*> free;
    std::size_t blocks = 0;  // free or in use
  };
  std::array<List, 8 * 56> lists;
};

// Never destroyed: a tensor with static lifetime may be released after everything else.
Cache& cache_of(Device device) {
  static auto& caches = *new std::array<Cache, 2>;
  return caches[static_cast<std::size_t>(device)];
}

bool poison_from_environment() {
  const char* value = std::getenv("PELLUCID_POISON");
  return value && value[0] == '1';
}
bool poison = poison_from_environment();

void fill_poison(void* data, std::size_t bytes) {
  auto* words = static_cast<uint32_t*>(data);  // a block is a multiple of 64 bytes
  std::fill(words, words + bytes / sizeof(uint32_t), kPoison);
}

void give_back(Cache& cache, Device device) {
  for (auto& list : cache.lists) {
    for (void* data : list.free) device::release(static_cast<int>(device), data);
    list.blocks -= list.free.size();
    list.free.clear();
  }
  cache.stats.bytes_cached = 0;
}

[[noreturn]] void out_of_memory(const MemoryStats& stats, Device device, std::size_t bytes) {
  throw OutOfMemory(std::string(device == kCPU ? "out of memory" : "out of CUDA memory") +
                    ": a tensor wants " + std::to_string(bytes) + " bytes; tensors hold " +
                    std::to_string(stats.bytes_in_use) +
                    "; use a smaller batch or model, or NoGradGuard where no gradient is needed");
}

// A block that no list has. The list learns its size first, so that release never allocates.
void* take_from_system(Cache& cache, Cache::List& list, Device device, std::size_t bytes) {
  if (list.free.capacity() <= list.blocks) list.free.reserve(2 * list.blocks + 4);
  void* data = device::allocate(static_cast<int>(device), bytes);
  if (!data) {
    give_back(cache, device);
    data = device::allocate(static_cast<int>(device), bytes);
  }
  if (!data) out_of_memory(cache.stats, device, bytes);
  ++list.blocks;
  ++cache.stats.system_allocations;
  return data;
}

}  // namespace

std::size_t block_size(std::size_t bytes) { return size_class(bytes).bytes; }

void* allocate_block(Device device, std::size_t bytes) {
  Cache& cache = cache_of(device);
  void* data = nullptr;
  {
    const std::lock_guard lock(cache.mutex);
    if (bytes > kLargest) out_of_memory(cache.stats, device, bytes);
    const SizeClass size = size_class(bytes);
    Cache::List& list = cache.lists[size.index];
    const auto block = static_cast<int64_t>(size.bytes);
    if (list.free.empty()) {
      data = take_from_system(cache, list, device, size.bytes);
    } else {
      data = list.free.back();
      list.free.pop_back();
      cache.stats.bytes_cached -= block;
    }
    MemoryStats& stats = cache.stats;
    stats.bytes_in_use += block;
    stats.peak_bytes_in_use = std::max(stats.peak_bytes_in_use, stats.bytes_in_use);
    ++stats.blocks_in_use;
  }
  if (device == kCPU) {
    ASAN_UNPOISON_MEMORY_REGION(data, block_size(bytes));
    if (poison) fill_poison(data, block_size(bytes));
    ASAN_POISON_MEMORY_REGION(static_cast<char*>(data) + bytes, block_size(bytes) - bytes);
  }
  return data;
}

void release_block(Device device, void* data, std::size_t bytes) noexcept {
  Cache& cache = cache_of(device);
  const SizeClass size = size_class(bytes);
  if (device == kCPU) ASAN_POISON_MEMORY_REGION(data, size.bytes);
  const std::lock_guard lock(cache.mutex);
  cache.lists[size.index].free.push_back(data);  // take_from_system has made room
  const auto block = static_cast<int64_t>(size.bytes);
  cache.stats.bytes_in_use -= block;
  cache.stats.bytes_cached += block;
  --cache.stats.blocks_in_use;
}

MemoryStats memory_stats(Device device) {
  Cache& cache = cache_of(device);
  const std::lock_guard lock(cache.mutex);
  return cache.stats;
}

void reset_peak(Device device) {
  Cache& cache = cache_of(device);
  const std::lock_guard lock(cache.mutex);
  cache.stats.peak_bytes_in_use = cache.stats.bytes_in_use;
}

void release_cached(Device device) {
  Cache& cache = cache_of(device);
  const std::lock_guard lock(cache.mutex);
  give_back(cache, device);
}

void set_poison(bool on) { poison = on; }

}  // namespace pellucid
