// Chains of 1,000,000 nodes: built, walked and freed. CTest runs this program with a stack of 256
// KiB, which a recursion of even some thousand nodes would overflow.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <cstdio>

#include "autograd/ops.h"
#include "tensor/allocator.h"

using namespace pellucid;

constexpr int kLength = 1000000;

TEST_CASE("the stack is small, or these cases show little") {
  rlimit stack{};
  getrlimit(RLIMIT_STACK, &stack);
  if (stack.rlim_cur > 256 * 1024) MESSAGE("run by hand: sh -c 'ulimit -s 256 && exec PROGRAM'");
}

TEST_CASE("a chain of 1,000,000 nodes runs forward and backward, and is freed") {
  const int64_t nodes = Node::alive, blocks = memory_stats().blocks_in_use;
  {
    const Tensor x = full({1}, 0.5, kFloat64).set_requires_grad(true), c = full({1}, 1, kFloat64);
    Tensor y = x;
    for (int i = 0; i < kLength; ++i) y = y * c;
    CHECK(Node::alive == nodes + kLength + 1);
    y.backward();
    CHECK(x.grad().item() == 1);
  }
  CHECK(Node::alive == nodes);
  CHECK(memory_stats().blocks_in_use == blocks);
  std::printf("FIGURE | chain, forward, backward and freed with a stack of 256 KiB | %d nodes\n",
              kLength);
}

TEST_CASE("a chain that never ran is freed: through edges and through saved outputs") {
  const int64_t nodes = Node::alive, blocks = memory_stats().blocks_in_use;
  {
    const Tensor x = full({1}, 0.5, kFloat64).set_requires_grad(true), c = full({1}, 0.1, kFloat64);
    Tensor y = x;
    for (int i = 0; i < kLength / 2; ++i) y = exp(y * c);
  }
  CHECK(Node::alive == nodes);
  CHECK(memory_stats().blocks_in_use == blocks);
}

// A lambda may capture a handle instead of a SavedTensor; its history is then freed in the same
// way.
TEST_CASE("a chain held by captured handles alone is freed") {
  const int64_t nodes = Node::alive;
  {
    const Tensor x = full({1}, 0.5, kFloat64).set_requires_grad(true);
    Tensor y = x;
    for (int i = 0; i < kLength / 2; ++i) {
      const Tensor next = alias(x.detach());
      y = record("link", next, {x}, [before = y](const Tensor& dy) { return TensorList{dy}; });
    }
  }
  CHECK(Node::alive == nodes);
}

TEST_CASE("in place, one tensor, many nodes") {
  const int64_t nodes = Node::alive;
  {
    const Tensor x = full({1}, 0.5, kFloat64).set_requires_grad(true);
    Tensor y = x * 1.0;
    for (int i = 0; i < kLength / 2; ++i) mul_(y, 1);
    y.backward();
    CHECK(x.grad().item() == 1);
  }
  CHECK(Node::alive == nodes);
}

TEST_CASE("create_graph of a long chain, differentiated again") {
  const int64_t nodes = Node::alive;
  {
    const Tensor x = full({1}, 1, kFloat64).set_requires_grad(true);
    Tensor y = x * x;
    for (int i = 0; i < kLength / 10; ++i) y = y * 1.0;
    const Tensor dx = grad(y, {x}, {}, {.create_graph = true})[0];
    dx.backward();
    CHECK(dx.item() == 2);
    CHECK(x.grad().item() == 2);
  }
  CHECK(Node::alive == nodes);
}
