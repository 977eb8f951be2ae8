// Working memory of a thread, kept between calls so that a kernel takes none from the system twice.
#pragma once
#include <cstddef>
#include <cstdint>

namespace pellucid {

// One slot for each use, as kernels nest: the epilogue of a product runs while its panels are held.
enum class Slot { kGemmA, kGemmB, kGemmSums, kAttentionTask, kAttentionCall, kSums, kCount };

// At least so many bytes, at a page's start; the content is lost when the slot grows.
void* scratch_bytes(Slot slot, std::size_t bytes);

template <class T>
T* scratch(Slot slot, int64_t count) {
  return static_cast<T*>(scratch_bytes(slot, std::size_t(count) * sizeof(T)));
}

}  // namespace pellucid
