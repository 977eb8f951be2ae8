// gradcheck finds what it must find, and refuses what it cannot check.
#include "autograd/gradcheck.h"

#include <doctest/doctest.h>

#include <cmath>

#include "error_of.h"

using namespace pellucid;
using L = const TensorList&;

// exp, whose backward is given.
template <class Backward>
static Tensor wrong_exp(const Tensor& x, Backward backward) {
  return record("wrong_exp", exp(x.detach()), {x}, backward);
}
// Its second derivative is right, for create_graph differentiates the formula that it is given.
static Tensor scaled_exp(const Tensor& x, double factor) {
  return wrong_exp(x, [x = SavedTensor(x), factor](const Tensor& dy) {
    return TensorList{dy * exp(x()) * factor};
  });
}

TEST_CASE("right gradients pass, in every layout whose elements are apart") {
  const Tensor base = random_leaf({6, 8}, 1).detach();
  const Tensor parts[] = {base,
                          transpose(base, 0, 1),
                          slice(base, 1, 1, 8, 3),
                          slice(base, 0, 2, 4),
                          reshape(base, {1, 48}),
                          full({0, 3}, 1, kFloat64),
                          full({}, 0.3, kFloat64)};
  for (const Tensor& part : parts) {
    const Tensor x = alias(part).set_requires_grad(true);
    const std::vector<double> before = base.to_vector();
    const GradcheckResult r = gradcheck([](L in) { return exp(in[0]) * in[0]; }, {x});
    CHECK_MESSAGE(r.passed, r.message());
    CHECK(r.elements == x.numel());
    CHECK(base.to_vector() == before);  // restored
    CHECK(gradgradcheck([](L in) { return exp(in[0]) * in[0]; }, {x}).passed);
  }
}

TEST_CASE("small faults in a formula are found") {
  const Tensor x = random_leaf({2, 3}, 1);
  CHECK(gradcheck([](L in) { return scaled_exp(in[0], 1); }, {x}).passed);
  CHECK(!gradcheck([](L in) { return scaled_exp(in[0], 1 + 1e-6); }, {x}).passed);
  CHECK(!gradcheck([](L in) { return scaled_exp(in[0], -1); }, {x}).passed);
  CHECK(!gradcheck([](L in) { return scaled_exp(in[0], std::nan("")); }, {x}).passed);
  // A backward that forgets eps, and 1/(n-1) for 1/n at n = 1000.
  const auto no_eps = [](const Tensor& a) {
    const auto dx = [a = SavedTensor(a)](const Tensor& dy) {
      return TensorList{dy / (a() * a()) * -1.0};
    };
    return record("no_eps", full({2, 3}, 1, kFloat64) / (a.detach() + 1e-5), {a}, dx);
  };
  const Tensor ones = exp(random_leaf({2, 3}, 2)).detach().set_requires_grad(true);
  CHECK(!gradcheck([&](L in) { return no_eps(in[0]); }, {ones}).passed);
  const Tensor wide = random_leaf({1000}, 3);
  const auto mean_of = [](const Tensor& a, double n) {
    return record("mean_of", sum(a.detach()) / 1000.0, {a},
                  [n](const Tensor& dy) { return TensorList{full({1000}, 1, kFloat64) * dy / n}; });
  };
  CHECK(gradcheck([&](L in) { return mean_of(in[0], 1000); }, {wide}).passed);
  CHECK(!gradcheck([&](L in) { return mean_of(in[0], 999); }, {wide}).passed);
}

TEST_CASE("one wrong element among many is named, with both numbers") {
  const Tensor x = full({2, 3}, 0, kFloat64).set_requires_grad(true), w = random_leaf({1}, 2);
  const GradcheckResult r = gradcheck(
      [](L in) {
        const Tensor right = exp(in[1] * 0.0);
        return wrong_exp(
                   in[1],
                   [](const Tensor& dy) {
                     return TensorList{dy + from_vector({0, 0, 0, 0, 0.5, 0}, {2, 3}, kFloat64)};
                   }) *
               right;
      },
      {w, x});
  CHECK(!r.passed);
  CHECK(r.input == 1);
  CHECK(r.element == 4);
  CHECK(r.analytic - r.numeric == doctest::Approx(0.5));
  CHECK(r.message().rfind("gradcheck: a chain of 4 ops that ends in mul: input 1 of shape (2, 3), "
                          "element (1, 1): analytic ",
                          0) == 0);
  CHECK(r.message().find("; 1 of 7 derivatives are wrong") != std::string::npos);
  CHECK(r.elements == 7);
  CHECK(r.wrong == 1);
}

TEST_CASE("a missing gradient counts as zero") {
  const Tensor x = random_leaf({3}, 1);
  const auto forgets = [](const Tensor& a) {
    return wrong_exp(a, [](const Tensor&) { return TensorList{Tensor()}; });
  };
  CHECK(!gradcheck([&](L in) { return forgets(in[0]); }, {x}).passed);
}

TEST_CASE("second order: a right first gradient that create_graph doubles is found") {
  const Tensor x = random_leaf({3}, 1);
  const auto doubled = [](const Tensor& a) {
    return wrong_exp(a, [a = SavedTensor(a)](const Tensor& dy) {
      return TensorList{dy * exp(a()) * (grad_enabled() ? 2.0 : 1.0)};
    });
  };
  CHECK(gradcheck([&](L in) { return doubled(in[0]); }, {x}).passed);
  const GradcheckResult r = gradgradcheck([&](L in) { return doubled(in[0]); }, {x});
  CHECK(!r.passed);
  CHECK(r.message().find("with create_graph") != std::string::npos);
}

TEST_CASE("second order: a gradient with a hidden constant is found") {
  const Tensor x = random_leaf({3}, 1);
  const auto frozen = [](const Tensor& a) {
    return wrong_exp(
        a, [a = SavedTensor(a)](const Tensor& dy) { return TensorList{dy * exp(a().detach())}; });
  };
  CHECK(gradcheck([&](L in) { return frozen(in[0]); }, {x}).passed);
  CHECK(!gradgradcheck([&](L in) { return frozen(in[0]); }, {x}).passed);
}

TEST_CASE("what cannot be checked is refused") {
  const auto f = [](L in) { return exp(in[0]); };
  CHECK(error_of([&] { gradcheck(f, {random_leaf({2}, 1, kFloat32)}); }) ==
        "gradcheck: input 0 is float32; differences need float64");
  CHECK(error_of([&] { gradcheck(f, {full({2}, 1, kFloat64)}); }) ==
        "gradcheck: the result has no history: no input requires a gradient, or an op on the way "
        "recorded nothing");
  const Tensor shared = alias(expand(full({1}, 1, kFloat64), {3})).set_requires_grad(true);
  CHECK(error_of([&] { gradcheck(f, {shared}); }) ==
        "gradcheck: the elements of input 0 of shape (3) share memory; expand inside the function");
  double calls = 0;
  CHECK(
      error_of([&] { gradcheck([&](L in) { return in[0] * ++calls; }, {random_leaf({2}, 1)}); }) ==
      "gradcheck: the function gives two results for the same inputs; make its random numbers "
      "inside it, from a fixed seed");
  const auto blind = [](L in) { return in[0] * 0.0; };
  CHECK(gradcheck(blind, {random_leaf({2}, 1)}).message() ==
        "gradcheck: every derivative by input 0 is 0: these inputs show nothing; choose others, or "
        "refuse_zero = false if it must be 0");
  const GradcheckResult let_through =
      gradcheck(blind, {random_leaf({2}, 1)}, {.refuse_zero = false});
  CHECK(let_through.passed);
  CHECK(let_through.zero_inputs == std::vector<std::size_t>{0});
  const GradcheckResult one_of_two = gradcheck([](L in) { return in[0] + in[1] * 0.0; },
                                               {random_leaf({2}, 1), random_leaf({2}, 2)});
  CHECK(!one_of_two.passed);
  CHECK(one_of_two.zero_inputs == std::vector<std::size_t>{1});
  // Nothing to see is no fault: no elements, or none of the result.
  CHECK(gradcheck(f, {random_leaf({0}, 1)}).passed);
  CHECK(gradcheck([](L in) { return in[0] + in[1]; }, {random_leaf({2, 0}, 1), random_leaf({1}, 2)})
            .passed);
  // Where the gradient is not 0, that is the fault to name.
  const GradcheckResult wrong = gradcheck(
      [](L in) {
        return record("flat", full({2}, 1, kFloat64), {in[0]},
                      [](const Tensor& dy) { return TensorList{dy}; });
      },
      {random_leaf({2}, 1)});
  CHECK(wrong.message().find("numeric 0; they differ by") != std::string::npos);
}

// ---- Kinks.

static Tensor relu_of(const Tensor& x, double slope_at_0 = 0) {
  const Tensor zero = full({}, 0, kFloat64), one = full({}, 1, kFloat64);
  const Tensor y = where(greater(x.detach(), zero), x.detach(), zero);
  return record("relu_of", y, {x}, [=](const Tensor& dy) {
    const Tensor at_0 = where(equal(x.detach(), zero), full({}, slope_at_0, kFloat64), zero);
    return TensorList{dy * where(greater(x.detach(), zero), one, at_0)};
  });
}
static Tensor leaf(const std::vector<double>& values, const Shape& shape) {
  return from_vector(values, shape, kFloat64).set_requires_grad(true);
}

TEST_CASE("an element on a kink is counted and named; any slope between its sides is right") {
  const Tensor x = leaf({-1, 2, 0.5, -3, 0, 1}, {2, 3});
  for (const double slope : {0.0, 0.5, 1.0}) {
    const GradcheckResult r = gradcheck([&](L in) { return relu_of(in[0], slope); }, {x});
    CHECK_MESSAGE(r.passed, r.message());
    CHECK(r.kinks == 1);
    CHECK(r.message().find(
              "; on kinks: 1: element (1, 1) of input 0 sits on a kink: the sum of the result has "
              "slope 0 to the left and 1 to the right; move it by more than 2h = 0.002") !=
          std::string::npos);
  }
  for (const double slope : {-0.1, 1.1, std::nan("")}) {
    const GradcheckResult r = gradcheck([&](L in) { return relu_of(in[0], slope); }, {x});
    CHECK(!r.passed);
    CHECK(r.element == 4);
    CHECK(r.wrong == 1);
  }
  // Symmetric, so that central differences do not see it.
  const auto magnitude = [](L in) { return sqrt(in[0] * in[0]); };
  const GradcheckResult r = gradcheck(magnitude, {x});
  CHECK(r.kinks == 1);
  // A jump.
  const auto step = [](L in) {
    const Tensor zero = full({}, 0, kFloat64), one = full({}, 1, kFloat64);
    return in[0] + where(greater(in[0], zero), one, zero);
  };
  CHECK(gradcheck(step, {x}).kinks == 1);
}

TEST_CASE("a kink or a pole nearby is stepped around, and excuses nothing") {
  for (const double near : {1e-4, 7e-4, 1e-3, 2e-3 / 3, 1.9e-3, -1e-4, -1.5e-3}) {
    const Tensor x = leaf({near, 2, -1}, {3});
    const GradcheckResult r = gradcheck([](L in) { return relu_of(in[0]); }, {x});
    CHECK_MESSAGE(r.passed, near, ": ", r.message());
    CHECK(r.kinks == 0);
    CHECK(!gradcheck([](L in) { return relu_of(in[0]) * 1.0 + scaled_exp(in[0], 1 + 1e-6); }, {x})
               .passed);
  }
  CHECK(gradcheck([](L in) { return log(in[0]); }, {leaf({1.5e-3, 1}, {2})}).passed);
  // At a kink, but the fault is elsewhere too.
  const Tensor x = leaf({0, 2, -1, 0.5}, {4});
  const GradcheckResult r =
      gradcheck([](L in) { return relu_of(in[0]) * 1.0 + scaled_exp(in[0], 1.5); }, {x});
  CHECK(!r.passed);
  CHECK(r.wrong >= 3);
  CHECK(r.kinks == 1);
}

TEST_CASE("smooth functions have no kinks, however much they bend") {
  for (const double scale : {1e-3, 1.0, 30.0, 1000.0}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const Tensor x =
          (random_leaf({5}, seed).detach() / std::max(scale, 1.0)).set_requires_grad(true);
      const auto f = [&](L in) { return exp(in[0] * scale) + tanh(in[0] * scale) * in[0]; };
      CHECK(gradcheck(f, {x}).kinks == 0);
      const auto wrong = [&](L in) { return f(in) + scaled_exp(in[0], 1 + 1e-4); };
      CHECK(!gradcheck(wrong, {x}).passed);
    }
  }
}

TEST_CASE("mostly kinks show nothing") {
  const GradcheckResult r =
      gradcheck([](L in) { return relu_of(in[0]); }, {leaf({0, 2, 0, 0}, {2, 2})});
  CHECK(!r.passed);
  CHECK(r.kinks == 3);
  CHECK(r.message().rfind("gradcheck: 3 of 4 elements sit on kinks; choose others; on kinks: 3: "
                          "element (0, 0) of input 0",
                          0) == 0);
}

TEST_CASE("an input is restored when the function throws") {
  const Tensor x = random_leaf({2}, 1);
  const std::vector<double> before = x.to_vector();
  int calls = 0;
  CHECK(error_of([&] {
          gradcheck(
              [&](L in) {
                if (++calls == 5) throw std::runtime_error("on purpose");
                return exp(in[0]);
              },
              {x});
        }) == "on purpose");
  CHECK(x.to_vector() == before);
}

TEST_CASE("an input may be undefined, in second order too") {
  const Tensor x = random_leaf({2, 3}, 1), w = random_leaf({4, 3}, 2);
  const auto f = [](L in) { return linear(in[0], in[1], in[2]); };
  CHECK(gradcheck(f, {x, w, Tensor()}));
  CHECK(gradgradcheck(f, {x, w, Tensor()}));
}
