// gradcheck finds what it must find, and refuses what it cannot check.
#include "autograd/gradcheck.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace pellucid;
using L = const TensorList&;

template <class F>
static std::string error_of(F f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

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
  CHECK(r.message().rfind("gradcheck: input 1, element 4: analytic ", 0) == 0);
  CHECK(r.elements == 7);
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
  CHECK(gradcheck(blind, {random_leaf({2}, 1)}).passed);
  CHECK(gradcheck(blind, {random_leaf({2}, 1)}, {.refuse_zero = true}).message() ==
        "gradcheck: every derivative by input 0 is 0: these inputs show nothing");
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
