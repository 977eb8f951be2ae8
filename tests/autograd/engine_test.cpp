// What the tape and the walk promise, one case a promise.
#include "autograd/engine.h"

#include <doctest/doctest.h>

#include <thread>

#include "autograd/gradcheck.h"
#include "error_of.h"
#include "kernels/elementwise.h"
#include "tensor/allocator.h"
#include "tensor/launch.h"

using namespace pellucid;

static std::vector<double> values(const Tensor& x) { return x.to_vector(); }
static Tensor leaf(const std::vector<double>& x, DType dtype = kFloat64) {
  return from_vector(x, {static_cast<int64_t>(x.size())}, dtype).set_requires_grad(true);
}
using Values = std::vector<double>;

// An op whose backward is given by the test.
template <class Backward>
static Tensor with_backward(const Tensor& x, Backward backward) {
  return record("custom", alias(x.detach()), {x}, backward);
}

// ---- Sums of paths.

TEST_CASE("a node is run once, after all of its gradient has come (R36, R37)") {
  const Tensor x = leaf({1}), a = leaf({1});
  const Tensor xa = x * a;
  (xa + x * x * a + x * xa).backward();
  CHECK(values(x.grad()) == Values{5});  // a + 2xa + 2xa
  CHECK(values(a.grad()) == Values{3});
  const Tensor z = leaf({1});
  const Tensor first = grad(z * z * z, {z}, {}, {.create_graph = true})[0];
  CHECK(first.item() == 3);
  CHECK(grad(first, {z})[0].item() == 6);
}

TEST_CASE("the engine sums what broadcasting repeated, and keeps the operand's shape (R09)") {
  const Tensor a = random_leaf({1, 3}, 1), b = random_leaf({2, 4, 3}, 2),
               c = random_leaf({4, 1}, 3);
  sum(a * b * c).backward();
  CHECK(a.grad().shape() == Shape{1, 3});
  CHECK(b.grad().shape() == Shape{2, 4, 3});
  CHECK(c.grad().shape() == Shape{4, 1});
  const Tensor s = random_leaf({2}, 4);
  sum(reshape(s, {2, 1}) + full({0}, 1, kFloat64)).backward();  // (2, 1) + (0) -> (2, 0)
  CHECK(values(s.grad()) == Values{0, 0});
}

TEST_CASE("a gradient that does not reduce is refused with the op's name") {
  const Tensor x = random_leaf({2, 3}, 1);
  const auto bad = [&](Shape shape) {
    return error_of([&] {
      sum(with_backward(x, [shape](const Tensor& dy) {
        return TensorList{full_like(dy, shape, 1)};
      })).backward();
    });
  };
  CHECK(bad({2, 4}) ==
        "custom: its backward returned a gradient of shape (2, 4) for input 0 of shape (2, 3)");
  CHECK(bad({3}) ==
        "custom: its backward returned a gradient of shape (3) for input 0 of shape (2, 3)");
  CHECK(bad({5, 2, 3}) == "no error");
  CHECK(error_of([&] {
          sum(with_backward(x, [](const Tensor&) { return TensorList{}; })).backward();
        }) == "custom: its backward returned 0 gradients for 1 inputs");
}

// ---- Who owns a gradient.

TEST_CASE("leaves accumulate; no two leaves and no reader share a gradient's memory") {
  const Tensor x = leaf({1, 2, 3}), w = leaf({4, 5, 6});
  sum(x + w).backward();
  CHECK(values(x.grad()) == Values{1, 1, 1});
  CHECK(x.grad().data() != w.grad().data());
  CHECK(x.grad().is_contiguous());
  const Tensor held = x.grad();
  sum(x * 2.0).backward();
  CHECK(values(x.grad()) == Values{3, 3, 3});
  CHECK(values(held) == Values{1, 1, 1});
  CHECK(values(w.grad()) == Values{1, 1, 1});
}

TEST_CASE(
    "a gradient that nobody else holds is summed in place, and becomes .grad without a copy") {
  const Tensor x = leaf({1, 2, 3});
  sum(x * 2.0).backward();
  const void* memory = x.grad().data();
  sum(x * 2.0).backward();
  CHECK(x.grad().data() == memory);
  CHECK(values(x.grad()) == Values{4, 4, 4});

  // The seed, the gradients asked for, and a gradient that two nodes received stay as they were.
  const Tensor a = leaf({1, 2}), seed = full({2}, 3, kFloat64);
  const Tensor y = a + a;
  const Tensor z = identity(y) + y * 2.0 + identity(y);
  const TensorList g = grad(z, {z, y, a}, seed);
  CHECK(values(seed) == Values{3, 3});
  CHECK(values(g[0]) == Values{3, 3});
  CHECK(values(g[1]) == Values{12, 12});
  CHECK(values(g[2]) == Values{24, 24});

  // What a backward holds on to is not written either.
  const Tensor kept = full({2}, 5, kFloat64), b = leaf({1, 1});
  const Tensor p = with_backward(b, [kept](const Tensor&) { return TensorList{kept}; });
  sum(p + b + b).backward();
  sum(b * 1.0).backward();
  CHECK(values(kept) == Values{5, 5});
  CHECK(values(b.grad()) == Values{8, 8});
  const Tensor q = with_backward(b, [kept](const Tensor&) { return TensorList{alias(kept)}; });
  sum(q + b + b).backward();
  b.grad() = Tensor();
  sum(with_backward(b, [kept](const Tensor&) { return TensorList{alias(kept)}; })).backward();
  sum(b * 1.0).backward();
  CHECK(values(kept) == Values{5, 5});
}

TEST_CASE("a .grad is contiguous, of the leaf's dtype, and no part of a larger buffer") {
  const Tensor x = random_leaf({3, 4}, 1), c = random_leaf({4, 3}, 2).detach();
  sum(transpose(x, 0, 1) * c).backward();
  CHECK(x.grad().is_contiguous());
  CHECK(x.grad().shape() == Shape{3, 4});
  CHECK(x.grad().at({1, 2}) == c.at({2, 1}));
  const Tensor part = leaf({1, 2});
  sum(unslice(part, 0, 1000, 0) * full({1000}, 2, kFloat64)).backward();
  CHECK(values(part.grad()) == Values{2, 2});
  CHECK(part.grad().storage().bytes == 2 * sizeof(double));
  const Tensor w = leaf({1, 2}, kFloat32);
  CHECK(error_of([&] {
          sum(with_backward(w, [](const Tensor& dy) {
            return TensorList{full(dy.shape(), 1, kFloat64)};
          })).backward();
        }) == "backward: a float64 gradient reached a float32 leaf of shape (2)");
}

// ---- Order, freeing, errors.

TEST_CASE("backward's errors name the repair (R42)") {
  CHECK(error_of([] { full({1}, 1).backward(); }) ==
        "backward: this tensor of shape (1) does not require a gradient; call "
        "set_requires_grad(true) on a tensor it is computed from, and compute it outside "
        "NoGradGuard");
  CHECK(error_of([] {
          (leaf({1, 2}) * 1.0).backward();
        }) ==
        "backward: a result of shape (2) has no single gradient; use sum(y).backward(), or grad(y, "
        "inputs, seed)");
  const Tensor x = leaf({1, 2}), y = sum(exp(x));
  y.backward();
  CHECK(error_of([&] { y.backward(); }) ==
        "sum: backward has freed what this op saved; pass retain_graph = true the first time");
  CHECK(error_of([&] { grad(exp(x), {x}, full({3}, 1, kFloat64)); }) ==
        "backward: the seed must be float64 of shape (2); got float64 of shape (3)");
  CHECK(error_of([&] { grad(exp(x), {x}, full({2}, 1)); }) ==
        "backward: the seed must be float64 of shape (2); got float32 of shape (2)");
  CHECK(error_of([] { needs_input_grad(0); }) == "needs_input_grad: only a backward may ask");
}

TEST_CASE("only floating leaves can require a gradient") {
  CHECK(error_of([] { full({2}, 1, kInt64).set_requires_grad(true); }) ==
        "set_requires_grad: a int64 tensor has no gradient; only float32 and float64 have");
  CHECK(error_of([] { full({2}, 1, kBool).set_requires_grad(true); }) ==
        "set_requires_grad: a bool tensor has no gradient; only float32 and float64 have");
  const Tensor x = leaf({1});
  CHECK(error_of([&] { exp(x).set_requires_grad(false); }) ==
        "set_requires_grad: this is the result of exp, of shape (1), not a leaf; use detach()");
  x.set_requires_grad(false);
  CHECK(!exp(x).requires_grad());
}

TEST_CASE("a .grad that was set must have the leaf's shape and dtype") {
  const Tensor w = leaf({1, 2, 3});
  for (const Tensor& wrong : {ones({2, 3}, kFloat64), ones({3})}) {
    w.grad() = wrong;
    CHECK(error_of([&] { sum(w * 2.0).backward(); }) ==
          "backward: the .grad of a float64 leaf of shape (3) is " +
              std::string(name(wrong.dtype())) + " of shape " +
              (wrong.dim() == 2 ? "(2, 3)" : "(3)") +
              "; set it to a gradient of the leaf's own, or to Tensor()");
    CHECK(values(w.grad()) == Values(static_cast<std::size_t>(wrong.numel()), 1));
  }
}

TEST_CASE("an undefined tensor is refused in words") {
  const Tensor u;
  const std::string words =
      "this tensor is undefined: a handle that was given no value, or a gradient before backward";
  CHECK(error_of([&] { u.requires_grad(); }) == words);
  CHECK(error_of([&] { u.grad(); }) == words);
  CHECK(error_of([&] { u.detach(); }) == words);
  CHECK(error_of([&] { u.data(); }) == words);
  CHECK(error_of([&] { u.set_requires_grad(false); }) == words);
  CHECK(error_of([&] { u.set_requires_grad(true); }) == words);
  CHECK(error_of([&] { identity(u); }) == words);
  CHECK(error_of([&] { alias(u); }) == words);
  CHECK(error_of([&] { alias(u, {1}, {1}); }) == words);
}

TEST_CASE("retain_graph allows a second walk, which adds the same again") {
  const Tensor x = leaf({2});
  const Tensor y = x * x * x;
  y.backward(true);
  y.backward(true);
  CHECK(values(x.grad()) == Values{24});
  y.backward();
  CHECK(values(x.grad()) == Values{36});
}

TEST_CASE("a walk frees what each node saved") {
  const Tensor x = random_leaf({1000}, 1);
  const Tensor y = sum(exp(exp(exp(x))));
  const int64_t before = memory_stats().blocks_in_use;
  y.backward();
  CHECK(memory_stats().blocks_in_use == before - 3 + 1);  // three outputs went, x.grad came
}

TEST_CASE("grad() leaves .grad alone, gives undefined where nothing depends, and stops early") {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4}), other = leaf({1});
  int runs = 0;
  const Tensor early = with_backward(x, [&runs](const Tensor& dy) {
    ++runs;
    return TensorList{dy};
  });
  const TensorList g =
      grad(sum(early * w), {early, other, Tensor(), full({1}, 1)}, {}, {.allow_unused = true});
  CHECK(values(g[0]) == Values{3, 4});
  CHECK((!g[1].defined() && !g[2].defined() && !g[3].defined()));
  CHECK((!x.grad().defined() && !w.grad().defined()));
  CHECK(runs == 0);
  const Tensor y = x * 1.0;
  CHECK(values(grad(y, {y}, full({2}, 7, kFloat64))[0]) == Values{7, 7});
}

TEST_CASE("create_graph does not grow the graph of x: nothing is stored (R41)") {
  const Tensor x = leaf({0.5});
  const int64_t nodes = Node::alive;
  for (int i = 0; i < 10; ++i) {
    const Tensor dx = grad(exp(x), {x}, {}, {.create_graph = true})[0];
    CHECK(grad(dx, {x})[0].item() == dx.item());
  }
  CHECK(Node::alive == nodes);
}

TEST_CASE("a backward that calls a bare kernel under create_graph is found out") {
  const Tensor x = leaf({1, 2});
  const auto hidden = [](const Tensor& a) {
    Tensor b = empty_like(a);
    LAUNCH(a, exp, b, a);
    return record("hidden", b, {a}, [b = SavedTensor(b)](const Tensor& dy) {
      Tensor da = empty_like(dy);
      LAUNCH(dy, mul, da, dy, b());
      return TensorList{da};
    });
  };
  CHECK(values(grad(sum(hidden(x)), {x})[0]) == values(exp(x)));
  CHECK(error_of([&] { grad(sum(hidden(x)), {x}, {}, {.create_graph = true}); }) ==
        "hidden: its backward called a kernel under create_graph; return vjp(...) or use ops");
}

TEST_CASE("a saved output is recognised by its storage too, not by an address alone") {
  // The temporary's handle is gone before y is made, which may get the same address.
  const Tensor x = leaf({2});
  for (int i = 0; i < 100; ++i) {
    const auto op = [](const Tensor& a) {
      std::optional<SavedTensor> kept;
      {
        const Tensor temporary = mul(a.detach(), a.detach());
        kept.emplace(temporary);
      }
      Tensor y = empty_like(a);
      LAUNCH(a, copy, y, a);
      return record("op", y, {a},
                    [squared = *kept](const Tensor& dy) { return TensorList{dy * squared()}; });
    };
    const Tensor dx = grad(op(x), {x}, {}, {.create_graph = true})[0];
    CHECK(dx.item() == 4);
    CHECK(!grad(dx, {x}, {}, {.allow_unused = true})[0].defined());
  }
}

TEST_CASE("a throwing backward restores the mode, leaks nothing, and leaves the engine usable") {
  const int64_t nodes = Node::alive, blocks = memory_stats().blocks_in_use;
  {
    const Tensor x = leaf({1, 2});
    for (const bool create_graph : {false, true}) {
      const Tensor y = sum(with_backward(
          exp(x), [](const Tensor&) -> TensorList { throw std::runtime_error("on purpose"); }));
      CHECK(error_of([&] { grad(y, {x}, {}, {.create_graph = create_graph}); }) == "on purpose");
      CHECK(grad_enabled());
      CHECK(current_node() == nullptr);
    }
    sum(exp(x)).backward();
    CHECK(values(x.grad()) == values(exp(x)));
    NoGradGuard no_grad;
    x.grad() = Tensor();
  }
  CHECK(Node::alive == nodes);
  CHECK(memory_stats().blocks_in_use == blocks);
}

TEST_CASE("NoGradGuard and detach record nothing and keep nothing") {
  const Tensor x = leaf({1, 2});
  const int64_t nodes = Node::alive;
  {
    const NoGradGuard no_grad;
    CHECK(!exp(x).requires_grad());
    CHECK(Node::alive == nodes);
  }
  CHECK(grad_enabled());
  CHECK(!exp(x.detach()).requires_grad());
  CHECK(Node::alive == nodes);
  const Tensor d = exp(x).detach();
  CHECK(values(grad(sum(d * x), {x})[0]) == values(d));
}

TEST_CASE("grad mode is each thread's own, and each thread may walk its own graph") {
  const NoGradGuard no_grad;
  std::vector<std::thread> threads;
  std::vector<double> found(4);
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&found, t] {
      const Tensor x = leaf({static_cast<double>(t)});
      for (int i = 0; i < 200; ++i) (x * x).backward();
      found[t] = x.grad().item();
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(found == Values{0, 400, 800, 1200});
  CHECK(!grad_enabled());
}

// ---- Versions.

TEST_CASE("what backward needs may not have been written since; both ops are named (R35)") {
  const Tensor x = random_leaf({2, 3}, 1);
  const Tensor y = exp(x);
  mul_(y, 2);
  transpose(y, 0, 1);  // an innocent view must not take the blame
  CHECK(error_of([&] { sum(y).backward(); }) ==
        "exp: needs for its backward a tensor of shape (2, 3) that mul_ has changed in place since "
        "(version 2, saved at 1); change a copy of it, as x * 1.0 is, or use an op that is not in "
        "place");
  // Through a view as well.
  const Tensor w = random_leaf({2, 3}, 2), b = x.detach() * 1.0;
  const Tensor z = w * b;
  mul_(transpose(b, 0, 1), 2);
  CHECK(error_of([&] { sum(z).backward(); }) ==
        "mul: needs for its backward a tensor of shape (2, 3) that mul_ has changed in place since "
        "(version 2, saved at 1); change a copy of it, as x * 1.0 is, or use an op that is not in "
        "place");
}

TEST_CASE("a stale view or base is refused; the tensor that was written goes on") {
  const Tensor x = random_leaf({2, 3}, 1);
  const Tensor h = x * 1.0, t = transpose(h, 0, 1);
  mul_(h, 2);
  CHECK(error_of([&] { exp(t); }) ==
        "exp: reads the result of transpose of shape (3, 2), but mul_ has changed it in place "
        "through another tensor; take the view again");
  CHECK(error_of([&] { grad(sum(exp(h)), {t}); }).rfind("grad: reads the result of transpose", 0) ==
        0);
  const Tensor flat = x * 1.0, same = view(flat, {6});
  mul_(same, 2);
  CHECK(error_of([&] {
          sum(flat);
        }).rfind("sum: reads the result of mul of shape (2, 3), but mul_", 0) == 0);
  CHECK(values(grad(sum(same), {x})[0]) == Values(6, 2.0));
  CHECK(error_of([&] { mul_(t, 2); }).rfind("mul_: reads the result of transpose", 0) == 0);
  const Tensor one = leaf({3}) * 1.0;
  mul_(view(one, {1, 1}), 2);
  CHECK(error_of([&] { one.backward(); }).rfind("backward: reads the result of mul", 0) == 0);
}

TEST_CASE("in place: leaves, parts, other layouts and shared elements are refused (R28)") {
  const Tensor x = random_leaf({2, 3}, 1);
  CHECK(error_of([&] { mul_(x, 2); }) ==
        "mul_: in place on a leaf that requires a gradient; use NoGradGuard");
  CHECK(error_of([&] { mul_(slice(x * 1.0, 0, 0, 1), 2); }) ==
        "mul_: in place on a view of part of a tensor is not differentiable; use where() or "
        "unslice()");
  CHECK(error_of([&] { mul_(transpose(x * 1.0, 0, 1), 2); }) ==
        "mul_: in place on a view of another layout is not differentiable; use contiguous()");
  const std::string shared =
      "mul_: writes to a tensor of shape (4, 5) whose elements share memory, as expand makes them; "
      "write to the tensor before expand, or to contiguous(x)";
  CHECK(error_of([&] { mul_(expand(full({1, 1}, 1), {4, 5}), 2); }) == shared);
  const NoGradGuard no_grad;
  CHECK(error_of([&] { mul_(expand(full({1, 1}, 1), {4, 5}), 2); }) == shared);
  mul_(x, 1);
  mul_(slice(x, 0, 0, 1), 1);
}

TEST_CASE("in place on a view of a leaf is refused as on the leaf") {
  const Tensor w = leaf({1, 2});
  const std::string fault =
      ": in place on a view of a leaf that requires a gradient; use NoGradGuard";
  CHECK(error_of([&] { mul_(view(w, {1, 2}), 10); }) == "mul_" + fault);
  CHECK(error_of([&] { mul_(view(identity(w), {2, 1}), 10); }) == "mul_" + fault);
  CHECK(error_of([&] { mul_(slice(w, 0, 0, 1), 10); }) == "mul_" + fault);
  CHECK(error_of([&] { copy_(identity(w), full({2}, 0, kFloat64)); }) == "copy_" + fault);
  CHECK(values(w) == Values{1, 2});
  const Tensor result = w * 1.0;
  mul_(view(mul_(view(result, {1, 2}), 10), {2}), 10);
  const NoGradGuard no_grad;
  mul_(view(w, {1, 2}), 10);
  CHECK(values(w) == Values{10, 20});
}

TEST_CASE("in place from a tensor with history: the base of a view would lose the gradient") {
  const Tensor x = random_leaf({3}, 1), y = exp(x);
  const Tensor whole = full({3}, 1, kFloat64);
  check_in_place("op", whole, y);
  const Tensor seen = view(whole, {1, 3});
  CHECK(error_of([&] { check_in_place("op", seen, y); }) ==
        "op: in place on one of several views of a tensor without a gradient, from one that "
        "requires a gradient; write to contiguous memory of its own");
  CHECK(error_of([&] {
          check_in_place("op", slice(whole, 0, 0, 2), y);
        }).rfind("op: in place on a view of part", 0) == 0);
  const NoGradGuard no_grad;
  check_in_place("op", seen, y);
}

TEST_CASE("an op that saves its own output makes no cycle (R40)") {
  const Tensor x = leaf({0.1});
  const int64_t nodes = Node::alive, blocks = memory_stats().blocks_in_use;
  for (int i = 0; i < 1000; ++i) exp(x);
  CHECK(Node::alive == nodes);
  CHECK(memory_stats().blocks_in_use == blocks);
}

TEST_CASE("a recorded op whose result is the leaf it was given is refused") {
  const Tensor x = random_leaf({3}, 1);
  CHECK_THROWS_WITH_AS(record("same", x, {x}, [](const Tensor& dy) { return TensorList{dy}; }),
                       "same: its result of shape (3) is the leaf it was given; return identity(x)",
                       std::invalid_argument);
  CHECK(is_leaf(x));
}
