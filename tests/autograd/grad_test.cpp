// grad(): which nodes run, unused inputs, derivatives of every order; what the tape keeps; leaves
// and threads.
#include <doctest/doctest.h>

#include <cmath>
#include <thread>

#include "autograd/gradcheck.h"
#include "error_of.h"
#include "tensor/allocator.h"

using namespace pellucid;

using Values = std::vector<double>;

static Tensor leaf(const Values& x) {
  return from_vector(x, {static_cast<int64_t>(x.size())}, kFloat64).set_requires_grad(true);
}
static Values values(const Tensor& x) { return x.to_vector(); }

// x, as a node that counts its runs.
static Tensor counted(const Tensor& x, int& runs) {
  return record("counted", alias(x.detach()), {x}, [&runs](const Tensor& dy) {
    ++runs;
    return TensorList{dy};
  });
}

// ---- Which nodes run.

TEST_CASE("grad() runs the nodes that lead to its inputs, and no others") {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  int on_x = 0, on_w = 0, below = 0, side = 0, above = 0;
  const Tensor h = counted(counted(x, below), below);
  Tensor other = counted(w, on_w);
  for (int i = 0; i < 10; ++i) other = counted(other, on_w);
  // A dead end that is newer than h and hangs on h too.
  const Tensor y = counted(counted(h, on_x) * other + counted(w * w, side), above);
  const GradOptions keep{.retain_graph = true};

  CHECK(values(grad(sum(y), {x}, {}, keep)[0]) == Values{3, 4});
  CHECK((on_x == 1 && below == 2 && above == 1 && on_w == 0 && side == 0));

  CHECK(values(grad(sum(y), {h}, {}, keep)[0]) == Values{3, 4});  // and stops there
  CHECK((on_x == 2 && below == 2 && above == 2 && on_w == 0 && side == 0));

  const TensorList both = grad(sum(y), {h, x}, {}, keep);  // one lies above the other
  CHECK(values(both[0]) == values(both[1]));
  CHECK((on_x == 3 && below == 4 && on_w == 0 && side == 0));

  CHECK(values(grad(sum(y), {w}, {}, keep)[0]) == Values{7, 10});
  CHECK((on_x == 3 && below == 4 && on_w == 11 && side == 1 && above == 4));

  sum(y).backward();
  CHECK((on_x == 4 && below == 6 && on_w == 22 && side == 2 && above == 5));
}

TEST_CASE("a backward is told which of its gradients this walk wants") {
  const Tensor a = leaf({1}), b = leaf({2});
  std::vector<bool> wanted;
  const Tensor y = record("op", alias(a.detach()), {a, b, ones({1})}, [&](const Tensor& dy) {
    wanted = {needs_input_grad(0), needs_input_grad(1), needs_input_grad(2)};
    return TensorList{dy, dy, {}};
  });
  const GradOptions keep{.retain_graph = true};
  grad(y, {b}, {}, keep);
  CHECK(wanted == std::vector<bool>{false, true, false});
  grad(y, {b, a}, {}, keep);
  CHECK(wanted == std::vector<bool>{true, true, false});
  y.backward();
  CHECK(wanted == std::vector<bool>{true, true, false});
}

TEST_CASE("one input twice, the result itself, and no inputs at all") {
  const Tensor x = leaf({3}), y = x * x;
  const TensorList g = grad(y, {x, y, x});
  CHECK((g[0].item() == 6 && g[1].item() == 1 && g[2].item() == 6));
  CHECK(grad(x * x, {}).empty());
  CHECK(grad(x, {x})[0].item() == 1);  // a leaf of itself
}

// ---- Unused inputs.

TEST_CASE(
    "an input that does not count is an error before anything runs, or undefined if allowed") {
  const Tensor x = leaf({1, 2}), other = random_leaf({2, 3}, 1), y = sum(x * x);
  CHECK(error_of([&] {
          grad(y, {x, other});
        }) ==
        "grad: the result does not depend on input 1 of shape (2, 3); compute it from this very "
        "tensor, or pass allow_unused = true");
  CHECK(
      error_of([&] {
        grad(y, {ones({4}), x});
      }) ==
      "grad: input 0 of shape (4) does not require a gradient; call set_requires_grad(true) on it "
      "before it is used, or pass allow_unused = true");
  CHECK(error_of([&] {
          grad(y, {x, x, Tensor()});
        }) == "grad: input 2 is undefined; leave it out, or pass allow_unused = true");
  // Newer than y, and made from what y was made from.
  CHECK(error_of([&] { grad(y, {x * 2.0}); }).rfind("grad: the result does not depend on", 0) == 0);
  // Nothing has run, so that y can still be differentiated.
  const TensorList g = grad(y, {x, other, ones({4}), {}}, {}, {.allow_unused = true});
  CHECK(values(g[0]) == Values{2, 4});
  CHECK((!g[1].defined() && !g[2].defined() && !g[3].defined()));
}

TEST_CASE("an input that every path leaves undefined counts as unused") {
  const Tensor x = leaf({1, 2}), y = x * 1.0;
  copy_(y, leaf({5, 6}));  // what y was does not matter any more
  CHECK(error_of([&] {
          grad(sum(y), {x}, {}, {.retain_graph = true});
        }).rfind("grad: the result does not depend on input 0 of shape (2)", 0) == 0);
  CHECK(!grad(sum(y), {x}, {}, {.allow_unused = true})[0].defined());
}

// ---- Every order.

// The n-th derivative of f at x.
static double derivative(const Function& f, double at, int order) {
  const Tensor x = leaf({at});
  Tensor y = f({x});
  for (int i = 0; i < order; ++i) y = grad(y, {x}, {}, {.create_graph = true})[0];
  return y.item();
}

TEST_CASE("third and fourth derivatives") {
  const double x = 0.7, e = std::exp(x), t = std::tanh(x), s = 1 - t * t, r = std::sqrt(x);
  const double gauss = std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0));
  struct Case {
    const char* name;
    Function f;
    double third, fourth;
  };
  // erf' = c e^(-x^2), c = 2/sqrt(pi): erf''' = c (4x^2 - 2) e^(-x^2), erf'''' = c (12x - 8x^3) ...
  const double c = 2 / std::sqrt(std::acos(-1.0)) * std::exp(-x * x);
  // softmax of (x, 0) is 1 / (1 + e^-x): with p that, q = 1 - p, p' = p q, p'' = p q (q - p).
  const double p = 1 / (1 + std::exp(-x)), q = 1 - p;
  const auto sigmoid = [](const TensorList& in) {
    const Tensor pair = in[0] * from_vector(Values{1, 0}, {2}, kFloat64);
    return slice(softmax(pair), 0, 0, 1);
  };
  const Case cases[] = {
      {"x^5", [](const TensorList& a) { return a[0] * a[0] * a[0] * a[0] * a[0]; }, 60 * x * x,
       120 * x},
      {"exp", [](const TensorList& a) { return exp(a[0]); }, e, e},
      {"log", [](const TensorList& a) { return log(a[0]); }, 2 / (x * x * x), -6 / (x * x * x * x)},
      {"div", [](const TensorList& a) { return 1.0 / a[0]; }, -6 / std::pow(x, 4),
       24 / std::pow(x, 5)},
      {"sqrt", [](const TensorList& a) { return sqrt(a[0]); }, 3.0 / 8 / std::pow(r, 5),
       -15.0 / 16 / std::pow(r, 7)},
      {"rsqrt", [](const TensorList& a) { return rsqrt(a[0]); }, -15.0 / 8 / std::pow(r, 7),
       105.0 / 16 / std::pow(r, 9)},
      {"tanh", [](const TensorList& a) { return tanh(a[0]); }, s * (6 * t * t - 2),
       s * t * (16 - 24 * t * t)},
      {"erf", [](const TensorList& a) { return erf(a[0]); }, c * (4 * x * x - 2),
       c * (12 * x - 8 * x * x * x)},
      // gelu = x Phi: gelu''' = (x^3 - 4x) phi, gelu'''' = (-x^4 + 7x^2 - 4) phi.
      {"gelu", [](const TensorList& a) { return gelu(a[0]); }, (x * x * x - 4 * x) * gauss,
       (-x * x * x * x + 7 * x * x - 4) * gauss},
      {"softmax", sigmoid, p * q * (1 - 6 * p * q), p * q * (q - p) * (1 - 12 * p * q)},
      // matmul (1, 1) (1, 1), three times: x^4.
      {"matmul",
       [](const TensorList& a) {
         const Tensor m = reshape(a[0], {1, 1});
         return matmul(matmul(m, m), matmul(m, m));
       },
       24 * x, 24},
  };
  // Each value is a few dozen roundings of terms of its own size: 1e-11 is 1e5 of them.
  for (const Case& k : cases) {
    INFO(k.name);
    CHECK(std::abs(derivative(k.f, x, 3) - k.third) <= 1e-11 * std::max(1.0, std::abs(k.third)));
    CHECK(std::abs(derivative(k.f, x, 4) - k.fourth) <= 1e-11 * std::max(1.0, std::abs(k.fourth)));
  }
}

// ---- What the tape keeps.

TEST_CASE("graph_stats counts nodes, and each memory that is kept once") {
  const GraphStats before = graph_stats();
  const auto saved = [&] { return graph_stats().saved_bytes - before.saved_bytes; };
  const auto nodes = [&] { return graph_stats().nodes - before.nodes; };
  const Tensor x = random_leaf({1000}, 1);
  {
    const Tensor a = exp(x);  // keeps its output
    CHECK((nodes() == 2 && saved() == 8000));
    const Tensor b = a * a;  // keeps a twice: the same memory
    CHECK((nodes() == 3 && saved() == 8000));
    const Tensor c = transpose(reshape(b, {10, 100}), 0, 1);  // views keep nothing
    CHECK((nodes() == 5 && saved() == 8000));
    const Tensor d = log(slice(b, 0, 0, 500));  // a part keeps the whole memory
    CHECK((nodes() == 7 && saved() == 16000));
    sum(c).backward(true);
    CHECK(saved() == 16000);
    sum(c).backward();
    CHECK(saved() == 8000);  // log has not run
    CHECK(values(d).size() == 500);
  }
  CHECK((nodes() == 0 && saved() == 0));
  const NoGradGuard no_grad;
  const Tensor y = exp(x);
  CHECK((nodes() == 0 && saved() == 0));
}

// ---- Leaves and threads.

TEST_CASE("threads share weights by leaves of their own over the same memory") {
  const Tensor w = random_leaf({40, 30}, 1);
  TensorList gradients(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < gradients.size(); ++t)
    threads.emplace_back([&w, &gradients, t] {
      const Tensor own = w.detach().set_requires_grad(true);
      const Tensor x = random_leaf({5, 40}, 10 + t).detach();
      for (int i = 0; i < 20; ++i) sum(tanh(matmul(x, own))).backward();
      gradients[t] = own.grad();
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(!w.grad().defined());
  for (std::size_t t = 0; t < gradients.size(); ++t) {
    const Tensor x = random_leaf({5, 40}, 10 + t).detach(), own = w.detach();
    own.set_requires_grad(true);
    for (int i = 0; i < 20; ++i) sum(tanh(matmul(x, own))).backward();
    CHECK(values(own.grad()) == values(gradients[t]));
  }
}

TEST_CASE("a .grad that the user has put there is added to, never written") {
  const Tensor x = leaf({1, 2}), mine = from_vector(Values{10, 20}, {2}, kFloat64);
  x.grad() = mine;
  sum(x * 3.0).backward();
  CHECK(values(x.grad()) == Values{13, 23});
  CHECK(values(mine) == Values{10, 20});
  x.grad() = Tensor();
  sum(x * 3.0).backward();
  CHECK(values(x.grad()) == Values{3, 3});
}

TEST_CASE("without create_graph a gradient has no history, whatever the seed has") {
  const Tensor x = leaf({1, 2}), seed = leaf({3, 4});
  const Tensor dx = grad(x + 1.0, {x}, seed)[0];
  CHECK(values(dx) == Values{3, 4});
  CHECK(!dx.requires_grad());
  const Tensor again = grad(x + 1.0, {x}, seed, {.create_graph = true})[0];
  CHECK(values(grad(sum(again * again), {seed})[0]) == Values{6, 8});
}
