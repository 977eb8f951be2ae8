// Each classic mistake, seeded into an op's backward, is named; right backwards and nameless
// mistakes are not.
#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "autograd/gradcheck.h"

using namespace pellucid;
using L = const TensorList&;

// The sentence that names the mistake, "" for none, or "passed".
static std::string diagnosis(const Function& f, const TensorList& inputs) {
  const GradcheckResult r = gradcheck(f, inputs);
  if (r.passed) return "passed";
  const std::string by = "; by input ", message = r.message();
  const std::size_t at = message.find(by);
  return at == std::string::npos ? "" : message.substr(at + by.size());
}

// y with another backward.
template <class Backward>
static Tensor with(const Tensor& y, const TensorList& inputs, Backward backward) {
  return record("wrong", y.detach(), inputs, backward);
}
template <class Backward>
static Function unary(std::function<Tensor(const Tensor&)> op, Backward dx) {
  return [=](L in) {
    const Tensor x = in[0].detach(), y = op(x);
    return with(y, {in[0]}, [=](const Tensor& dy) { return TensorList{dx(x, y, dy)}; });
  };
}

static const Shape kShapes[] = {{}, {1}, {5}, {3, 4}, {2, 3, 4}, {33}};
static const Shape kPlural[] = {{2}, {5}, {3, 4}, {1, 6}, {2, 3, 4}, {33}};  // not one element
static Tensor like(const Tensor& x, uint64_t seed) { return random_leaf(x.shape(), seed).detach(); }

TEST_CASE("right backwards have no diagnosis") {
  for (const Shape& shape : kShapes) {
    const auto right = [](Tensor, Tensor y, Tensor dy) { return dy * y; };
    CHECK(diagnosis(unary(exp, right), {random_leaf(shape, 1)}) == "passed");
    CHECK(diagnosis([](L in) { return in[0] * in[1]; },
                    {random_leaf(shape, 1), random_leaf(shape, 2)}) == "passed");
  }
}

TEST_CASE("zero, sign, and the upstream gradient") {
  for (const Shape& shape : kShapes) {
    CAPTURE(shape);
    const TensorList x = {random_leaf(shape, 1)};
    const auto none = [](Tensor, Tensor, Tensor) { return Tensor(); };
    const auto zero = [](Tensor, Tensor, Tensor dy) { return dy * 0.0; };
    const auto sign = [](Tensor, Tensor y, Tensor dy) { return -dy * y; };
    const auto ignored = [](Tensor, Tensor y, Tensor) { return y; };
    const auto only_upstream = [](Tensor, Tensor, Tensor dy) { return dy; };
    CHECK(diagnosis(unary(exp, none), x) == "0 it is 0: no gradient arrives");
    CHECK(diagnosis(unary(exp, zero), x) == "0 it is 0: no gradient arrives");
    CHECK(diagnosis(unary(exp, sign), x) == "0 its sign is wrong");
    CHECK(diagnosis(unary(exp, ignored), x) ==
          "0 it is the gradient for a cotangent of ones: the upstream gradient is ignored");
    CHECK(diagnosis(unary(exp, only_upstream), x) ==
          "0 it is the upstream gradient itself: the op's own derivative, or a term of it, is "
          "missing");
  }
  // By the second input, and through a product.
  const auto minus = [](L in) {
    return with(in[0].detach() - in[1].detach(), {in[0], in[1]}, [](const Tensor& dy) {
      return TensorList{dy, dy};
    });
  };
  CHECK(diagnosis(minus, {random_leaf({3, 4}, 1), random_leaf({4}, 2)}) == "1 its sign is wrong");
  const auto product = [](L in) {
    const Tensor a = in[0].detach(), b = in[1].detach();
    return with(matmul(a, b), {in[0], in[1]}, [=](const Tensor& dy) {
      return TensorList{matmul(ones_like(dy), transpose(b, 0, 1)), matmul(transpose(a, 0, 1), dy)};
    });
  };
  CHECK(diagnosis(product, {random_leaf({3, 4}, 1), random_leaf({4, 2}, 2)}) ==
        "0 it is the gradient for a cotangent of ones: the upstream gradient is ignored");
}

TEST_CASE("a constant factor") {
  const auto times = [](double factor) {
    return unary(exp, [=](Tensor, Tensor y, Tensor dy) { return dy * y * factor; });
  };
  const std::string is = "0 it is ", right = " times the right gradient",
                    two = right + ": is one of two uses of the input not counted, or twice?",
                    mean_n = right + ": is there a 1/N with N = ";
  for (const Shape& shape : kShapes) {
    const TensorList x = {random_leaf(shape, 1)};
    CHECK(diagnosis(times(2), x) == is + "2" + two);
    CHECK(diagnosis(times(-2), x) == is + "-2" + two);
    CHECK(diagnosis(times(7), x) == is + "7" + mean_n + "7, as in a mean?");
    CHECK(diagnosis(times(0.5), x) == is + "0.5" + two);
  }
  for (const Shape& shape : kPlural)
    CHECK(diagnosis(times(0.3), {random_leaf(shape, 1)}) == "0 it is 0.3 times the right gradient");
  CHECK(diagnosis(times(0.3), {random_leaf({1}, 1)}) == "");  // any wrong number is some factor
  // A mean's 1/N, missing or doubled; one use of two.
  const auto mean_of = [](double factor) {
    return [=](L in) {
      return with(mean(in[0].detach()), {in[0]}, [=, n = in[0].shape()](const Tensor& dy) {
        return TensorList{full(n, factor, kFloat64) * dy};
      });
    };
  };
  CHECK(diagnosis(mean_of(1), {random_leaf({3, 4}, 1)}) ==
        is + "12" + mean_n + "12, as in a mean?");
  CHECK(diagnosis(mean_of(1.0 / 64), {random_leaf({2, 4}, 1)}) ==
        is + "0.125" + mean_n + "8, as in a mean?");
  const auto square = [](L in) {
    const Tensor x = in[0].detach();
    return with(x * x, {in[0]}, [=](const Tensor& dy) { return TensorList{dy * x}; });
  };
  CHECK(diagnosis(square, {random_leaf({5}, 1)}) == is + "0.5" + two);
}

TEST_CASE("transposed, shifted, left out") {
  for (const Shape& shape : {Shape{3, 3}, {3, 4}, {5, 2}, {2, 3, 4}, {2, 4, 4}}) {
    const auto dx = [](Tensor, Tensor y, Tensor dy) {
      return reshape(contiguous(transpose(dy * y, -2, -1)), y.shape());
    };
    CHECK(diagnosis(unary(exp, dx), {random_leaf(shape, 1)}) == "0 it is transposed");
  }
  const auto moved = [](int by) {
    return unary(exp, [=](Tensor, Tensor y, Tensor dy) {
      const std::vector<double> right = (dy * y).to_vector();
      std::vector<double> values(right.size());  // 0 at the end that nothing reaches
      for (std::size_t k = 0; k < right.size(); ++k)
        if (k + static_cast<std::size_t>(by) < right.size())
          values[k] = right[k + static_cast<std::size_t>(by)];
      return from_vector(values, y.shape(), kFloat64);
    });
  };
  const auto tail = [](std::size_t left_out) {
    return unary(exp, [=](Tensor, Tensor y, Tensor dy) {
      std::vector<double> values = (dy * y).to_vector();
      for (std::size_t k = values.size() - left_out; k < values.size(); ++k) values[k] = 0;
      return from_vector(values, y.shape(), kFloat64);
    });
  };
  for (const Shape& shape : {Shape{5}, {3, 4}, {2, 3, 4}, {33}}) {
    CHECK(diagnosis(moved(1), {random_leaf(shape, 1)}) ==
          "0 it is shifted: element i holds that of i + 1");
    CHECK(diagnosis(moved(-1), {random_leaf(shape, 1)}) ==
          "0 it is shifted: element i holds that of i - 1");
    for (const std::size_t n : {1u, 3u})
      CHECK(diagnosis(tail(n), {random_leaf(shape, 1)}) ==
            "0 it is 0 wherever it is wrong: elements are left out");
  }
}

// x + b, of whose gradient by b only one index of dimension d is taken; d = -1: of each.
static Function one_index(int d, bool last) {
  return [=](L in) {
    return with(in[0].detach() + in[1].detach(), {in[0], in[1]}, [=](const Tensor& dy) {
      Tensor part = dy;
      for (int i = 0; i < dy.dim(); ++i)
        if (i == d) part = slice(part, i, last ? dy.size(i) - 1 : 0, last ? dy.size(i) : 1);
      return TensorList{dy, part};
    });
  };
}

TEST_CASE("a sum over a broadcast dimension") {
  struct Pair {
    Shape x, b;
    int d;
  };
  for (const Pair& pair : {Pair{{3, 4}, {4}, 0},
                           {{3, 4}, {3, 1}, 1},
                           {{3, 4}, {1, 1}, 0},
                           {{3, 4}, {1, 1}, 1},
                           {{2, 3, 4}, {3, 1}, 0},
                           {{2, 3, 4}, {3, 1}, 2},
                           {{2, 3, 4}, {4}, 1},
                           {{5, 1}, {1}, 0}})
    for (const bool last : {false, true}) {
      CAPTURE(pair.x);
      CAPTURE(pair.b);
      const int64_t only = last ? pair.x[pair.d] - 1 : 0;
      CHECK(diagnosis(one_index(pair.d, last), {random_leaf(pair.x, 1), random_leaf(pair.b, 2)}) ==
            "1 the sum over the broadcast dimension " + std::to_string(pair.d) +
                " of the result is missing: only index " + std::to_string(only) + " counts");
    }
}

TEST_CASE("assigned instead of added") {
  // Rows of a table, some taken twice.
  const Tensor ids = from_vector({2, 0, 2, 1, 0}, {5}, kInt64);
  const auto rows = [&](bool last) {
    return [=](L in) {
      return with(embedding(in[0].detach(), ids), {in[0]}, [=](const Tensor& dy) {
        Tensor dx = full({4, 3}, 0, kFloat64);
        const std::vector<double> id = ids.to_vector(), from = dy.to_vector();
        std::vector<double> to(12);
        for (std::size_t i = 0; i < 5; ++i)
          for (std::size_t k = 0; k < 3; ++k) {
            const std::size_t n = last ? i : 4 - i;
            to[static_cast<std::size_t>(id[n]) * 3 + k] = from[n * 3 + k];
          }
        return TensorList{from_vector(to, {4, 3}, kFloat64)};
      });
    };
  };
  const std::string is_there = " is there: assigned (=) where it should be added (+=)";
  CHECK(diagnosis(rows(true), {random_leaf({4, 3}, 1)}) ==
        "0 of the terms of a sum only the last" + is_there);
  CHECK(diagnosis(rows(false), {random_leaf({4, 3}, 1)}) ==
        "0 of the terms of a sum only the first" + is_there);
  // The gradient of a weight, of which only the last row of x is counted.
  const auto weight = [](L in) {
    const Tensor x = in[0].detach(), w = in[1].detach();
    return with(matmul(x, w), {in[0], in[1]}, [=](const Tensor& dy) {
      const int64_t N = x.size(0);
      return TensorList{matmul(dy, transpose(w, 0, 1)),
                        matmul(transpose(slice(x, 0, N - 1, N), 0, 1), slice(dy, 0, N - 1, N))};
    });
  };
  CHECK(diagnosis(weight, {random_leaf({5, 3}, 1), random_leaf({3, 2}, 2)}) ==
        "1 of the terms of a sum only the last" + is_there);
}

TEST_CASE("missing terms") {
  const std::string product_rule = " held constant: a term of the product rule is missing";
  const auto x_tanh = [](const Tensor& x) { return x * tanh(x); };
  const auto centred = [](const Tensor& x) { return x - mean(x, -1, true); };
  const auto standard = [=](const Tensor& x) {
    const Tensor d = centred(x);
    return d * rsqrt(mean(d * d, -1, true));
  };
  for (const Shape& shape : {Shape{5}, {3, 4}, {2, 3, 4}, {2, 33}}) {
    CAPTURE(shape);
    const TensorList x = {random_leaf(shape, 1)};
    const auto first = [](Tensor a, Tensor, Tensor dy) { return dy * tanh(a); };
    const auto second = [](Tensor a, Tensor, Tensor dy) {
      return dy * a * (1.0 - tanh(a) * tanh(a));
    };
    CHECK(diagnosis(unary(x_tanh, first), x) ==
          "0 it is that of y = x q with q = y / x" + product_rule);
    CHECK(diagnosis(unary(x_tanh, second), x) ==
          "0 it is that of y = x q, q = y / x, with the factor x" + product_rule);

    const auto no_sum = [](Tensor, Tensor y, Tensor dy) { return dy * y; };
    const auto own = [](Tensor, Tensor y, Tensor dy) { return dy * y * (1.0 - y); };
    const auto last = [](const Tensor& t) { return softmax(t); };
    CHECK(diagnosis(unary(last, no_sum), x) == "0 it is dy y alone: other terms are missing");
    CHECK(diagnosis(unary(last, own), x) ==
          "0 it is only what element i of the input does to element i of the result");
    const auto no_mean = [](Tensor, Tensor, Tensor dy) { return dy; };
    CHECK(diagnosis(unary(centred, no_mean), x) ==
          "0 it is the upstream gradient itself: the op's own derivative, or a term of it, is "
          "missing");

    const auto norm = [=](bool with_mean, bool with_product) {
      return unary(standard, [=](Tensor a, Tensor y, Tensor dy) {
        const Tensor d = centred(a), rstd = rsqrt(mean(d * d, -1, true));
        Tensor dx = dy;
        if (with_mean) dx = dx - mean(dy, -1, true);
        if (with_product) dx = dx - y * mean(dy * y, -1, true);
        return dx * rstd;
      });
    };
    const std::string sum_or_mean =
        " in each row: the term with a sum or mean over the row is missing";
    CHECK(diagnosis(norm(true, true), x) == "passed");
    CHECK(diagnosis(norm(false, true), x) == "0 it is off by a constant" + sum_or_mean);
    CHECK(diagnosis(norm(true, false), x) ==
          "0 it is off by a multiple of the result" + sum_or_mean);
    CHECK(diagnosis(norm(false, false), x) == "");  // two mistakes have no name
  }
}

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST_CASE("mistakes without a name get none") {
  for (const Shape& shape : {Shape{1}, {2}, {5}, {3, 3}, {3, 4}, {2, 3, 4}}) {
    CAPTURE(shape);
    const TensorList x = {random_leaf(shape, 1)};
    const auto noise = [](Tensor a, Tensor, Tensor) { return like(a, 5); };
    const auto blurred = [](Tensor a, Tensor y, Tensor dy) { return dy * y + like(a, 6) * 1e-3; };
    const auto squared = [](Tensor, Tensor y, Tensor dy) { return dy * y * y; };
    const auto one = [](Tensor a, Tensor y, Tensor dy) {
      std::vector<double> values = (dy * y).to_vector();
      values.back() += 0.25;
      return from_vector(values, a.shape(), kFloat64);
    };
    CHECK(diagnosis(unary(exp, noise), x) == "");
    CHECK(diagnosis(unary(exp, blurred), x) == "");
    CHECK(diagnosis(unary(exp, squared), x) == "");
    CHECK(diagnosis(unary(exp, one), x) == "");
    const auto poison = [](Tensor, Tensor, Tensor dy) { return dy * kNaN; };
    CHECK(diagnosis(unary(exp, poison), x) == "");
  }
  // A sum's gradient is the same everywhere: one wrong element is no shift.
  const auto sum_of = [](L in) {
    return with(sum(in[0].detach()), {in[0]}, [](const Tensor& dy) {
      return TensorList{expand(dy, {6}) + from_vector({0, 0, 0, 0, 0, 2}, {6}, kFloat64)};
    });
  };
  CHECK(diagnosis(sum_of, {random_leaf({6}, 1)}) == "");
}

TEST_CASE("a fault inside a chain is found; the message says that it is a chain") {
  const auto chain = [](L in) {
    const Tensor x = in[0] * 2.0, y = exp(x.detach());
    return tanh(with(y, {x}, [=](const Tensor& dy) { return TensorList{-dy * y}; }));
  };
  const GradcheckResult r = gradcheck(chain, {random_leaf({2, 3}, 1)});
  CHECK(!r.passed);
  CHECK(r.message().rfind("gradcheck: a chain of 3 ops that ends in tanh: input 0 of shape (2, 3), "
                          "element (",
                          0) == 0);
  CHECK(diagnosis(chain, {random_leaf({2, 3}, 1)}) == "0 its sign is wrong");
}
