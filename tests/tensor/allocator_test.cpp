// The caching allocator: what it wastes, what it counts, and that it gives everything back.
#include "tensor/allocator.h"

#include <doctest/doctest.h>

#include <cstring>
#include <optional>
#include <thread>

#include "tensor/tensor.h"

using namespace pellucid;

TEST_CASE("a size class holds what it is asked for, and wastes at most an eighth") {
  std::size_t before = 0;
  for (std::size_t bytes = 0; bytes < 100'000; ++bytes) {
    const std::size_t block = block_size(bytes);
    REQUIRE(block >= std::max<std::size_t>(bytes, 1));
    REQUIRE(block % 64 == 0);
    REQUIRE(block_size(block) == block);
    REQUIRE(block >= before);
    if (bytes > 512) REQUIRE(block - bytes < bytes / 8 + 1);
    before = block;
  }
  for (int k = 10; k < 62; ++k) {
    const std::size_t power = std::size_t{1} << k;
    CHECK(block_size(power) == power);
    CHECK(block_size(power + 1) == power + power / 8);
    CHECK(block_size(power - 1) == power);
  }
}

TEST_CASE("memory is aligned: 64 bytes, and whole pages from 4096 bytes on") {
  for (int64_t n : {0, 1, 15, 16, 17, 1000, 1024, 4097, 1'000'000}) {
    const Tensor x = empty({n});
    CHECK(reinterpret_cast<std::uintptr_t>(x.data()) % (n >= 1024 ? 4096 : 64) == 0);
  }
}

TEST_CASE("a released block serves the next tensor of its class; the counters tell") {
  release_cached();
  const MemoryStats start = memory_stats();
  CHECK(start.bytes_cached == 0);
  void* first = nullptr;
  {
    const Tensor x = empty({1000});  // 4000 bytes: the class of 4096
    first = x.data();
    const Tensor view = alias(x, {10}, {1}, 5);
    const MemoryStats now = memory_stats();
    CHECK(now.bytes_in_use == start.bytes_in_use + 4096);
    CHECK(now.blocks_in_use == start.blocks_in_use + 1);  // the view shares it
    CHECK(now.system_allocations == start.system_allocations + 1);
    CHECK(now.peak_bytes_in_use >= now.bytes_in_use);
  }
  CHECK(memory_stats().bytes_in_use == start.bytes_in_use);
  CHECK(memory_stats().bytes_cached == 4096);
  {
    const Tensor y = empty({1024});
    CHECK(y.data() == first);
    CHECK(memory_stats().bytes_cached == 0);
    CHECK(memory_stats().system_allocations == start.system_allocations + 1);
  }
  reset_peak();
  CHECK(memory_stats().peak_bytes_in_use == start.bytes_in_use);
  { const Tensor z = empty({1 << 20}); }
  CHECK(memory_stats().peak_bytes_in_use == start.bytes_in_use + (4 << 20));
  release_cached();
  CHECK(memory_stats().bytes_cached == 0);
  CHECK(memory_stats().blocks_in_use == start.blocks_in_use);
}

TEST_CASE("from its second step on, a loop takes no memory from the system") {
  const auto step = [] {
    TensorList kept;
    for (int64_t n : {1, 63, 65, 1000, 70'000, 12'000'000}) {
      kept.push_back(zeros({n}));
      kept.push_back(astype(kept.back(), kFloat64));
    }
  };
  step();
  const int64_t after_first = memory_stats().system_allocations;
  for (int i = 0; i < 5; ++i) step();
  CHECK(memory_stats().system_allocations == after_first);
}

TEST_CASE("poisoned memory is NaN everywhere until it is written") {
  set_poison(true);
  const Tensor x = empty({129}), y = empty({65}, kFloat64);
  set_poison(false);
  uint32_t word = 0;
  for (int i = 0; i < 129; ++i) {
    std::memcpy(&word, static_cast<char*>(x.data()) + 4 * i, 4);
    REQUIRE(word == kPoison);
  }
  for (double value : y.to_vector()) REQUIRE(value != value);
}

#ifdef __SANITIZE_ADDRESS__
extern "C" int __asan_address_is_poisoned(const volatile void* address);
TEST_CASE("AddressSanitizer sees a tensor's end, and memory that waits in the cache") {
  Tensor x = empty({17});
  const char* start = static_cast<const char*>(x.data());
  CHECK_FALSE(__asan_address_is_poisoned(start + 67));
  CHECK(__asan_address_is_poisoned(start + 68));
  x = Tensor();
  CHECK(__asan_address_is_poisoned(start));
}
#endif

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they abort instead
TEST_CASE("what cannot be had is a clear error, and nothing is lost") {
  const Tensor held = empty({16});
  const MemoryStats before = memory_stats();
  std::string text;
  try {
    empty({int64_t{1} << 50});
  } catch (const std::bad_alloc& error) {
    text = error.what();
  }
  CHECK(text == "out of memory: a tensor wants 4503599627370496 bytes; tensors hold " +
                    std::to_string(before.bytes_in_use) +
                    "; use a smaller batch or model, or NoGradGuard where no gradient is needed");
  CHECK_THROWS_AS(empty({(int64_t{1} << 60) - 1}, kFloat64), OutOfMemory);
  CHECK(memory_stats().bytes_in_use == before.bytes_in_use);
  CHECK(memory_stats().blocks_in_use == before.blocks_in_use);
  CHECK(zeros({1000}).at({999}) == 0);
}
#endif

TEST_CASE("threads share it: no block is handed out twice, and all come back") {
  const MemoryStats before = memory_stats();
  std::vector<std::thread> threads;
  std::atomic<int> spoilt = 0;
  for (int t = 0; t < 7; ++t) {
    threads.emplace_back([t, &spoilt] {
      std::vector<std::optional<Tensor>> held(31);
      for (std::size_t i = 0; i < 20'000; ++i) {
        std::optional<Tensor>& slot = held[i * 17 % held.size()];
        if (slot && *slot->data<int64_t>() != t) ++spoilt;
        slot = empty({static_cast<int64_t>(1 + i % 100)}, kInt64);
        *slot->data<int64_t>() = t;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(spoilt == 0);
  CHECK(memory_stats().bytes_in_use == before.bytes_in_use);
  CHECK(memory_stats().blocks_in_use == before.blocks_in_use);
}
