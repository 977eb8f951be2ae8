// A mistake is a prediction: the gradient that it would give, computed from the right one, from the
// Jacobian and from x, y and c. Only a mistake that predicts every element is named.
#include "autograd/diagnose.h"

#include <cmath>
#include <functional>
#include <limits>
#include <sstream>

#include "autograd/ops.h"

namespace pellucid {

using Prediction = std::function<double(std::size_t)>;  // of element k; NaN: says nothing of it
struct Mistake {
  std::string text;
  Prediction at;
};
using Mistakes = std::vector<Mistake>;
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

static bool right(const WrongGradient& g, std::size_t k) {
  const double a = g.analytic[k];
  return std::abs(a - g.numeric[k]) <= g.absolute + g.relative * std::abs(a);
}

// Does the prediction hold wherever it says something, and explain most of what is wrong?
static bool fits(const WrongGradient& g, const Prediction& at) {
  int wrong = 0, explained = 0;
  for (std::size_t k = 0; k < g.numeric.size(); ++k) {
    if (std::isnan(g.numeric[k])) continue;
    const double a = g.analytic[k], predicted = at(k);
    wrong += !right(g, k);
    if (std::isnan(predicted)) continue;
    // 10: a prediction is made of several differences, each with an error.
    if (!(std::abs(a - predicted) <= 10 * (g.absolute + g.relative * std::abs(a)))) return false;
    explained += !right(g, k);
  }
  return 2 * explained > wrong;
}

// A factor that all elements share. A single element has always one: then it must be a whole number
// or one over a whole number.
static Mistakes constant_factor(const WrongGradient& g) {
  double an = 0, nn = 0, largest = 0;
  for (std::size_t k = 0; k < g.numeric.size(); ++k) {
    if (std::isnan(g.numeric[k])) continue;
    an += g.analytic[k] * g.numeric[k], nn += g.numeric[k] * g.numeric[k];
    largest = std::max(largest, g.numeric[k] * g.numeric[k]);
  }
  const double factor = an / nn, size = std::abs(factor), n = std::round(std::max(size, 1 / size)),
               whole = size < 1 ? 1 / n : n;
  const bool is_whole = std::abs(size / whole - 1) <= 1e-6;
  if (!is_whole && nn < 1.0001 * largest) return {};
  std::ostringstream text;
  text.precision(9);
  text << "it is " << factor << " times the right gradient";
  if (is_whole && n == 2) text << ": is one of two uses of the input not counted, or twice?";
  if (is_whole && n > 2) text << ": is there a 1/N with N = " << n << ", as in a mean?";
  return {{text.str(), [&g, factor](std::size_t k) { return factor * g.numeric[k]; }}};
}

// The index in dimension d of element o.
static int64_t index_in(const Shape& shape, std::size_t o, int d) {
  auto at = static_cast<int64_t>(o);
  for (int i = shape.dim() - 1; i > d; --i) at /= shape[i];
  return at % shape[d];
}

// Sums over the elements of y that leave out terms, or c.
static Mistakes wrong_sums(const WrongGradient& g) {
  if (g.jacobian.empty()) return {};
  const auto M = static_cast<std::size_t>(g.y.numel());
  const auto sum_of = [&g, M](auto weight) {
    return [&g, M, weight](std::size_t k) {
      double total = 0;
      for (std::size_t o = 0; o < M; ++o) total += weight(o, k) * g.jacobian[k * M + o];
      return total;
    };
  };
  const std::vector<double> c = g.c.to_vector();
  const Shape &from = g.x.shape(), to = g.y.shape();
  Mistakes all = {{"it is the gradient for a cotangent of ones: the upstream gradient is ignored",
                   sum_of([](std::size_t, std::size_t) { return 1.0; })}};
  if (from == to)
    all.push_back({"it is only what element i of the input does to element i of the result",
                   sum_of([c](std::size_t o, std::size_t k) { return o == k ? c[o] : 0; })});

  // Where x was broadcast along a dimension of y: one index instead of the sum over it.
  for (int d = 0; d < to.dim() && reduces_to(to, from); ++d) {
    const int own = d - to.dim() + from.dim();
    if (to[d] == 1 || (own >= 0 && from[own] == to[d])) continue;
    for (const int64_t only : {int64_t{0}, to[d] - 1})
      all.push_back({"the sum over the broadcast dimension " + std::to_string(d) +
                         " of the result is missing: only index " + std::to_string(only) +
                         " counts",
                     sum_of([c, to, d, only](std::size_t o, std::size_t) {
                       return index_in(to, o, d) == only ? c[o] : 0;
                     })});
  }
  const auto one_term = [&g, c, M](bool last) {
    return [&g, c, M, last](std::size_t k) {
      double term = 0;
      for (std::size_t o = 0; o < M && (last || term == 0); ++o)
        if (g.jacobian[k * M + o] != 0) term = c[o] * g.jacobian[k * M + o];
      return term;
    };
  };
  const std::string assigned = " is there: assigned (=) where it should be added (+=)";
  all.push_back({"of the terms of a sum only the last" + assigned, one_term(true)});
  all.push_back({"of the terms of a sum only the first" + assigned, one_term(false)});
  return all;
}

// The right numbers in wrong places.
static Mistakes wrong_places(const WrongGradient& g) {
  const std::vector<double>& n = g.numeric;
  const std::size_t C = g.x.dim() >= 2 ? static_cast<std::size_t>(g.x.size(-1)) : 1,
                    R = g.x.dim() >= 2 ? static_cast<std::size_t>(g.x.size(-2)) : 1;
  return {{"it is transposed",
           [=, &n](std::size_t k) {
             const std::size_t in = k % (R * C);
             return n[k - in + in % R * C + in / R];
           }},
          {"it is shifted: element i holds that of i + 1",
           [&](std::size_t k) { return k + 1 < n.size() ? n[k + 1] : kUnknown; }},
          {"it is shifted: element i holds that of i - 1",
           [&](std::size_t k) { return k > 0 ? n[k - 1] : kUnknown; }},
          {"it is 0 wherever it is wrong: elements are left out",
           [&](std::size_t k) { return right(g, k) ? n[k] : 0; }}};
}

// Some of the terms of a derivative, where y has x's shape.
static Mistakes missing_terms(const WrongGradient& g) {
  if (g.x.shape() != g.y.shape()) return {};
  const std::vector<double> x = g.x.to_vector(), y = g.y.to_vector(), c = g.c.to_vector();
  const Prediction quotient = [=](std::size_t k) { return c[k] * y[k] / x[k]; };  // 0 / 0: unknown
  Mistakes all = {
      {"it is the upstream gradient itself: the op's own derivative, or a term of it, is missing",
       [c](std::size_t k) { return c[k]; }},
      {"it is that of y = x q with q = y / x held constant: a term of the product rule is missing",
       quotient},
      {"it is that of y = x q, q = y / x, with the factor x held constant: a term of the product "
       "rule is missing",
       [&g, quotient](std::size_t k) { return g.numeric[k] - quotient(k); }},
      {"it is dy y alone: other terms are missing", [=](std::size_t k) { return c[k] * y[k]; }}};

  // What is missing is a multiple, one for each row, of 1, x or y.
  const auto C = static_cast<std::size_t>(g.x.dim() ? g.x.size(-1) : 1);
  const auto row_multiple = [&g, C](const std::vector<double>& v) {
    return [&g, C, v](std::size_t k) {
      double dv = 0, vv = 0;
      for (std::size_t i = k - k % C; i < k - k % C + C; ++i)
        dv += (g.analytic[i] - g.numeric[i]) * v[i], vv += v[i] * v[i];
      return g.numeric[k] + (vv > 0 ? dv / vv * v[k] : 0);
    };
  };
  if (C < 3) return all;
  const std::string row = " in each row: the term with a sum or mean over the row is missing";
  all.push_back({"it is off by a constant" + row, row_multiple(std::vector<double>(x.size(), 1))});
  all.push_back({"it is off by a multiple of the input" + row, row_multiple(x)});
  all.push_back({"it is off by a multiple of the result" + row, row_multiple(y)});
  return all;
}

std::string diagnose(const WrongGradient& g) {
  const Mistakes first = {{"it is 0: no gradient arrives", [](std::size_t) { return 0.0; }},
                          {"its sign is wrong", [&](std::size_t k) { return -g.numeric[k]; }}};
  for (const Mistakes& some :
       {first, wrong_sums(g), constant_factor(g), wrong_places(g), missing_terms(g)})
    for (const Mistake& mistake : some)
      if (fits(g, mistake.at)) return mistake.text;
  return "";
}

}  // namespace pellucid
