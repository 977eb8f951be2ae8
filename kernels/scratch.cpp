#include "kernels/scratch.h"

#include <new>
#include <utility>

namespace pellucid {
namespace {

constexpr std::align_val_t kPage{4096};

struct Memory {
  void* at = nullptr;
  std::size_t bytes = 0;
};

// Only `owner` has a destructor, so a kernel that runs at the end of the program finds empty slots,
// not freed ones.
thread_local Memory slots[int(Slot::kCount)];
struct Owner {
  ~Owner() {
    for (Memory& m : slots) ::operator delete(std::exchange(m, {}).at, kPage);
  }
};

}  // namespace

void* scratch_bytes(Slot slot, std::size_t bytes) {
  [[maybe_unused]] thread_local Owner owner;
  Memory& m = slots[int(slot)];
  if (bytes > m.bytes) {
    ::operator delete(std::exchange(m, {}).at, kPage);
    m.at = ::operator new(bytes, kPage);
    m.bytes = bytes;
  }
  return m.at;
}

}  // namespace pellucid
