// Hooks: when they run, what they may return, how long they live; is_leaf, retain_grad.
#include <doctest/doctest.h>

#include "autograd/gradcheck.h"
#include "error_of.h"
#include "tensor/allocator.h"

using namespace pellucid;

using Values = std::vector<double>;

static Tensor leaf(const Values& x) {
  return from_vector(x, {static_cast<int64_t>(x.size())}, kFloat64).set_requires_grad(true);
}
static Values values(const Tensor& x) { return x.to_vector(); }

// A hook that notes what it got, and leaves it.
static Hook note(std::vector<Values>& seen) {
  return [&seen](const Tensor& dy) {
    seen.push_back(dy.to_vector());
    return Tensor();
  };
}

TEST_CASE("a hook runs once a backward, on the complete gradient, leaf and result alike") {
  const Tensor x = leaf({1, 2}), h = x * 3.0;
  std::vector<Values> of_leaf, of_result;
  register_hook(x, note(of_leaf));
  register_hook(h, note(of_result));
  sum(h * h + h + x).backward();
  CHECK(of_result == std::vector<Values>{{7, 13}});  // 2h + 1
  CHECK(of_leaf == std::vector<Values>{{22, 40}});   // 3 (2h + 1) + 1
  CHECK(values(x.grad()) == Values{22, 40});
  sum(x).backward();  // h is not passed; the leaf's hook sees this call's share, not the sum
  CHECK(of_result.size() == 1);
  CHECK(of_leaf.back() == Values{1, 1});
}

TEST_CASE("what a hook returns is handed on, summed into .grad and returned by grad()") {
  const Tensor x = leaf({1, 2}), h = x * 3.0;
  const auto times = [](double s) { return [s](const Tensor& dy) { return dy * s; }; };
  register_hook(h, times(10));
  register_hook(x, times(2));
  const TensorList g = grad(sum(h), {h, x}, {}, {.retain_graph = true});
  CHECK(values(g[0]) == Values{10, 10});
  CHECK(values(g[1]) == Values{60, 60});
  sum(h).backward();
  CHECK(values(x.grad()) == Values{60, 60});
}

TEST_CASE("hooks run in the order of registration, each on what the one before has left") {
  const Tensor x = leaf({1});
  register_hook(x, [](const Tensor& dy) { return dy + 1.0; });
  HookHandle second = register_hook(x, [](const Tensor& dy) { return dy * 10.0; });
  register_hook(x, [](const Tensor& dy) { return dy + 5.0; });
  CHECK(grad(x * 1.0, {x})[0].item() == 25);
  second.remove();
  second.remove();
  CHECK(grad(x * 1.0, {x})[0].item() == 7);
}

TEST_CASE("a leaf's hook lives as long as the leaf, with or without a graph or a handle") {
  const Tensor x = leaf({1});
  std::vector<Values> seen;
  HookHandle handle;
  {
    const Tensor before = x * 2.0;  // an accumulator that exists already
    handle = register_hook(x, note(seen));
    before.backward();
  }
  CHECK(seen.size() == 1);
  (x * 2.0).backward();  // a new one
  CHECK(seen.size() == 2);
  handle.remove();
  (x * 2.0).backward();
  CHECK(seen.size() == 2);
}

TEST_CASE("a hook may remove itself, or add another that runs from the next backward on") {
  const Tensor x = leaf({1});
  std::vector<Values> seen;
  HookHandle once;
  once = register_hook(x, [&](const Tensor&) {
    once.remove();
    register_hook(x, note(seen));
    return Tensor();
  });
  (x * 2.0).backward();
  CHECK(seen.empty());
  (x * 2.0).backward();
  CHECK(seen.size() == 1);
}

TEST_CASE("under create_graph a hook's ops are recorded; a constant ends the derivative there") {
  const Tensor x = leaf({3});
  HookHandle square = register_hook(x, [](const Tensor& dy) { return dy * dy; });
  // dx = (2x)^2 = 36, and d(dx)/dx = 8x = 24, squared by the same hook.
  const Tensor dx = grad(x * x, {x}, {}, {.create_graph = true})[0];
  CHECK(dx.item() == 36);
  CHECK(grad(dx, {x})[0].item() == 576);
  square.remove();

  const Tensor h = x * x;
  register_hook(h, [](const Tensor& dy) { return dy.detach() * 5.0; });
  const Tensor through = grad(h * h, {x}, {}, {.create_graph = true})[0];  // 5 (2h) 2x
  CHECK(through.item() == 5 * 2 * 9 * 6);
  CHECK(grad(through, {x})[0].item() == 5 * 2 * 9 * 2);  // 2h, detached, is a constant
  const Tensor s = sum(h);  // its backward makes nothing with a history of its own
  register_hook(s, [](const Tensor& dy) { return dy.detach() * 5.0; });
  CHECK(grad(identity(s), {x}, {}, {.create_graph = true})[0].item() == 5 * 5 * 6);
  (h * 1.0).backward();
  CHECK(!x.grad().requires_grad());
}

TEST_CASE("a hook that throws stops the walk; the engine goes on, nothing is left") {
  const int64_t nodes = Node::alive, blocks = memory_stats().blocks_in_use;
  {
    const Tensor x = leaf({1, 2}), h = x * 2.0;
    HookHandle bad = register_hook(
        h, [](const Tensor&) -> Tensor { throw std::runtime_error("from the hook"); });
    CHECK(error_of([&] { sum(h).backward(true); }) == "from the hook");
    CHECK(grad_enabled());
    CHECK(current_node() == nullptr);
    bad.remove();
    sum(h * 1.0).backward();
    CHECK(values(x.grad()) == Values{2, 2});
  }
  CHECK(Node::alive == nodes);
  CHECK(memory_stats().blocks_in_use == blocks);
}

TEST_CASE("wrong hooks are refused by name") {
  const Tensor x = leaf({1, 2}), h = x * 2.0;
  HookHandle wrong = register_hook(h, [](const Tensor& dy) { return sum(dy); });
  CHECK(error_of([&] { sum(h).backward(true); }) ==
        "register_hook: the hook on the result of mul returned float64 of shape () for a float64 "
        "gradient of shape (2); return shape and dtype of dy, or Tensor() to leave it as it is");
  wrong.remove();
  wrong = register_hook(x, [](const Tensor& dy) { return astype(dy, kFloat32); });
  CHECK(error_of([&] { sum(h).backward(true); }) ==
        "register_hook: the hook on a leaf returned float32 of shape (2) for a float64 gradient of "
        "shape (2); return shape and dtype of dy, or Tensor() to leave it as it is");
  wrong.remove();
  wrong = register_hook(h, [](const Tensor& dy) { return mul_(dy, 2); });
  CHECK(
      error_of([&] { sum(h * h).backward(true); }) ==
      "register_hook: the hook on the result of mul, of shape (2), has written to dy, which other "
      "nodes may read; return a new tensor");
  CHECK(error_of([&] { register_hook(x, nullptr); }) ==
        "register_hook: the hook is empty; pass a function of dy that returns a Tensor");
  const std::string why =
      ": this tensor of shape (3) requires no gradient, so none will come; call "
      "set_requires_grad(true) on it, or on what it is computed from, first";
  CHECK(error_of([] { register_hook(ones({3}), [](const Tensor& dy) { return dy; }); }) ==
        "register_hook" + why);
  CHECK(error_of([] { retain_grad(ones({3})); }) == "retain_grad" + why);
}

TEST_CASE("in place, hooks stay with the value they were registered on") {
  const Tensor x = leaf({1}), y = x * 1.0;
  std::vector<Values> before, after;
  register_hook(y, note(before));
  mul_(y, 10);
  register_hook(y, note(after));
  y.backward();
  CHECK(after == std::vector<Values>{{1}});
  CHECK(before == std::vector<Values>{{10}});
}

TEST_CASE("a gradient that a hook keeps is not written to by what follows") {
  const Tensor x = leaf({1, 2}), h = x * 1.0;
  Tensor kept;
  register_hook(h, [&](const Tensor& dy) {
    kept = dy;
    return Tensor();
  });
  // identity hands the same memory on, and more is added to it on the way.
  sum(identity(h) * 3.0 + h + x).backward();
  sum(x).backward();
  CHECK(values(kept) == Values{4, 4});
  CHECK(values(x.grad()) == Values{6, 6});
}

TEST_CASE("is_leaf") {
  const Tensor x = leaf({1});
  CHECK(is_leaf(x));
  CHECK(is_leaf(ones({2})));
  CHECK(!is_leaf(x * 1.0));
  CHECK(is_leaf((x * 1.0).detach()));
  const NoGradGuard no_grad;
  CHECK(is_leaf(x * 1.0));
}

TEST_CASE("retain_grad: the final gradient of a result, summed over calls, without a cycle") {
  const int64_t nodes = Node::alive, blocks = memory_stats().blocks_in_use;
  {
    const Tensor x = leaf({1, 2}), h = x * 2.0;
    retain_grad(h);
    retain_grad(h);  // once is enough
    retain_grad(x);  // nothing to do
    register_hook(h, [](const Tensor& dy) { return dy * 100.0; });
    sum(h * h).backward(true);
    CHECK(values(h.grad()) == Values{400, 800});
    CHECK(!h.grad().requires_grad());
    sum(h).backward();
    CHECK(values(h.grad()) == Values{500, 900});
    CHECK(values(x.grad()) == Values{1000, 1800});
    const Tensor again = x * 1.0;
    retain_grad(again);
    grad(sum(again), {x}, {}, {.create_graph = true});
    CHECK(!again.grad().requires_grad());
    // The handle gone, its gradient has nowhere to go.
    Tensor y;
    {
      const Tensor inner = x * 5.0;
      retain_grad(inner);
      y = sum(inner);
    }
    y.backward();
  }
  CHECK(Node::alive == nodes);
  CHECK(memory_stats().blocks_in_use == blocks);
}

TEST_CASE("hooks leave no node and no memory behind") {
  const int64_t nodes = Node::alive, blocks = memory_stats().blocks_in_use;
  for (int i = 0; i < 10; ++i) {
    const Tensor x = leaf({1, 2}), c = leaf({3, 4}), h = x * 2.0;
    register_hook(x, [c](const Tensor& dy) { return dy * c; });
    register_hook(h, [c](const Tensor& dy) { return dy * c; });
    if (i % 2) sum(h * h).backward();
  }
  CHECK(Node::alive == nodes);
  CHECK(memory_stats().blocks_in_use == blocks);
}

TEST_CASE("retain_grad: a .grad of its own, contiguous, that an optimizer may write to") {
  const Tensor x = ones({3}).set_requires_grad(true), w = ones({3}).set_requires_grad(true);
  const Tensor y = x * 2.0, z = y + w;  // add hands the same gradient on to both
  retain_grad(y);
  retain_grad(z);
  sum(z).backward();  // whose gradient is one number, expanded
  CHECK(z.grad().is_contiguous());
  fill_(y.grad(), 7);
  CHECK(z.grad().to_vector() == std::vector<double>{1, 1, 1});
  CHECK(y.grad().to_vector() == std::vector<double>{7, 7, 7});
}
