// NaN, inf and -inf in every lane for lengths 1 to 130, driven by the table of ops (op_table.h).
// Each: what is at one place gives the bits of the op on that element alone, and changes no other
// place, in the result and in every gradient. Rows: what is in the middle row of three changes
// nothing in the others. PELLUCID_OP=NAME walks the rows of one op.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "op_table.h"

using namespace pellucid;
using Values = std::vector<double>;

namespace {

constexpr int64_t kLongest = 130, kEveryPlace = 66;
const double kPoisons[] = {NAN, HUGE_VAL, -HUGE_VAL};

// NaN is NaN, whatever its sign and payload.
bool same(double a, double b) {
  return std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(a) && std::isnan(b));
}

Values numbers_of(const Input& input, int64_t n, uint64_t seed) {
  Values x = random_leaf({n}, seed).to_vector();
  for (double& v : x) {
    v = input.low + (v + 1) / 2 * (input.high - input.low);
    if (input.map) v = input.map(v);
    v = static_cast<float>(v);
  }
  return x;
}

// The result and the gradients, one after another; a gradient that is not there is empty.
std::vector<Values> run(const OpRow& row, const std::vector<Shape>& shapes,
                        const std::vector<Values>& values, const Values& dy, DType dtype) {
  TensorList x;
  for (std::size_t i = 0; i < values.size(); ++i)
    x.push_back(from_vector(values[i], shapes[i], dtype).set_requires_grad(true));
  const Tensor y = row.op(x);
  std::vector<Values> results{y.to_vector()};
  if (!row.no_gradient.empty()) return results;
  const Tensor seed = from_vector({dy.begin(), dy.begin() + y.numel()}, y.shape(), dtype);
  for (const Tensor& dx : grad(y, x, seed, {.allow_unused = true}))
    results.push_back(dx.defined() ? dx.to_vector() : Values());
  return results;
}

std::vector<OpRow> last_dimension();

template <class Check>
int64_t for_each_row(Lanes lanes, Check check) {
  const char* only = std::getenv("PELLUCID_OP");
  int64_t rows = 0;
  std::vector<OpRow> table = all_rows();
  for (OpRow& row : last_dimension()) table.push_back(std::move(row));
  for (const OpRow& row : table) {
    if (row.lanes != lanes || (only && row.name.substr(0, row.name.find(' ')) != only)) continue;
    ++rows;
    for (const DType dtype : {kFloat32, kFloat64}) {
      const std::string wrong = check(row, dtype);
      CHECK_MESSAGE(wrong.empty(), "row ", row.name, " in ", std::string(name(dtype)), ": ", wrong);
    }
  }
  return rows;
}

// ---- Element by element.

// The inputs of a row, and the cotangent as one more of them.
struct Elements {
  const OpRow& row;
  DType dtype;
  std::vector<Values> numbers;
  // What the op makes of element j alone: clean, then with poison p in number k at 1 + 3 k + p.
  std::vector<std::vector<std::vector<Values>>> alone;

  Elements(const OpRow& r, DType t) : row(r), dtype(t) {
    const Sample& sample = row.samples[0];
    for (std::size_t k = 0; k < sample.size(); ++k)
      numbers.push_back(numbers_of(sample[k], kLongest, k + 1));
    numbers.push_back(numbers_of(in({}), kLongest, 77));
    for (std::size_t j = 0; j < std::size_t(kLongest); ++j) {
      std::vector<Values> one;
      for (const Values& x : numbers) one.push_back({x[j]});
      alone.push_back({of(one)});
      for (std::size_t k = 0; k < one.size(); ++k)
        for (const double poison : kPoisons) {
          std::vector<Values> poisoned = one;
          poisoned[k] = {poison};
          alone[j].push_back(of(poisoned));
        }
    }
  }
  std::vector<Values> of(std::vector<Values> values) const {
    const Values dy = values.back();
    values.pop_back();
    const Shape shape{static_cast<int64_t>(dy.size())};
    return run(row, std::vector<Shape>(values.size(), shape), values, dy, dtype);
  }

  // Runs n elements with poison kind[j], 0 for none, at place j of number k.
  std::string check(std::size_t k, const std::vector<int>& kind) const {
    std::vector<Values> values;
    for (const Values& x : numbers) values.emplace_back(x.begin(), x.begin() + long(kind.size()));
    for (std::size_t j = 0; j < kind.size(); ++j)
      if (kind[j]) values[k][j] = kPoisons[kind[j] - 1];
    const std::vector<Values> got = of(values);
    for (std::size_t j = 0; j < kind.size(); ++j) {
      const auto& wanted = alone[j][kind[j] ? 3 * k + std::size_t(kind[j]) : 0];
      for (std::size_t r = 0; r < got.size(); ++r) {
        if (got[r].empty() && wanted[r].empty()) continue;
        if (got[r].size() == kind.size() && same(got[r][j], wanted[r][0])) continue;
        std::ostringstream text;
        text << (r ? "gradient " : "result ") << (r ? r - 1 : 0) << ", place " << j << " of "
             << kind.size() << ", " << (kind[j] ? kPoisons[kind[j] - 1] : 0) << " in number " << k
             << " there: got " << (j < got[r].size() ? got[r][j] : NAN) << ", alone "
             << wanted[r][0];
        return text.str();
      }
    }
    return "";
  }

  std::string check_all() const {
    std::string wrong;
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      if (k + 1 < numbers.size() && row.nan_lost.empty())
        for (const auto& one : alone)
          if (!std::isnan(one[1 + 3 * k][0][0])) return "a NaN is lost; say why in nan_lost";
      if (k + 1 == numbers.size() && !row.no_gradient.empty()) continue;
      // Every other place poisoned, so that each has clean neighbours; each place meets each kind.
      for (std::size_t n = 1; n <= std::size_t(kLongest); ++n)
        for (std::size_t shift = 0; shift < 6; ++shift) {
          std::vector<int> kind(n);
          for (std::size_t j = 0; j < n; ++j)
            kind[j] = (j + shift) % 2 ? 0 : int((j + shift) / 2 % 3) + 1;
          if (wrong.empty()) wrong = check(k, kind);
        }
      // One NaN alone.
      for (std::size_t n = 1; n <= std::size_t(kEveryPlace); ++n)
        for (std::size_t j = 0; j < n; ++j) {
          std::vector<int> kind(n);
          kind[j] = 1;
          if (wrong.empty()) wrong = check(k, kind);
        }
    }
    return wrong;
  }
};

// ---- Row by row.

// Beside the table's own rows, which reduce other dimensions or mix batches: the last dimension,
// the heads and the batch of the same ops.
OpRow by_rows(const std::string& name, std::function<Tensor(L)> op,
              std::function<Sample(int64_t)> sample, const std::string& nan_lost = "") {
  return {.name = name,
          .op = std::move(op),
          .lanes = Lanes::kRows,
          .lane_sample = std::move(sample),
          .nan_lost = nan_lost};
}

std::vector<OpRow> last_dimension() {
  const auto matrix = [](int64_t n) { return Sample{in({3, n}, 0.5, 2)}; };
  const auto heads = [](int64_t n) { return Sample{in({3, 1, n}), in({3, 1, n}, 0.5, 2)}; };
  const auto packed_heads = [](int64_t n) {
    const bool chosen = n < 4 || n == 8 || n == 15 || n == 16 || n == 17 || n == 31 || n == 33;
    return chosen ? Sample{in({3, 2, 3 * n})} : Sample{};
  };
  const auto turned = [](L x) { return rope(x[0], 1, x[0].size(2)); };
  const auto attend = [](L x) { return attention(x[0], {}, 1, 1, {}); };
  OpRow places = by_rows(
      "argmax last", [](L x) { return argmax(x[0], -1); }, matrix, "the result is a place");
  places.no_gradient = "the result is int64";
  return {
      places,
      by_rows(
          "sum last", [](L x) { return sum(x[0], -1); }, matrix),
      by_rows(
          "mean last", [](L x) { return mean(x[0], -1, true); }, matrix),
      by_rows(
          "prod last", [](L x) { return prod(x[0], -1); }, matrix),
      by_rows(
          "var last", [](L x) { return var(x[0], -1, false, 0); }, matrix),
      by_rows(
          "norm last", [](L x) { return norm(x[0], -1); }, matrix),
      by_rows(
          "logsumexp last", [](L x) { return logsumexp(x[0], -1); }, matrix),
      by_rows(
          "amax last", [](L x) { return amax(x[0], -1); }, matrix),
      by_rows(
          "amin last", [](L x) { return amin(x[0], -1); }, matrix),
      by_rows(
          "max last", [](L x) { return max(x[0], -1); }, matrix),
      by_rows(
          "min last", [](L x) { return min(x[0], -1); }, matrix),
      by_rows(
          "cumsum last", [](L x) { return cumsum(x[0], -1); }, matrix,
          "what stands before it does not count it"),
      by_rows(
          "linear", [](L x) { return linear(x[0], x[1], {}); },
          [](int64_t n) {
            return Sample{in({3, n}), in({2, n})};
          }),
      by_rows(
          "xsa", [](L x) { return xsa(x[0], x[1]); }, heads),
      by_rows(
          "rope", turned,
          [](int64_t n) {
            return n % 2 ? Sample{} : Sample{in({3, 1, n})};
          },
          "only its pair turns with it"),
      by_rows("attention", attend, packed_heads, "a query reads no later key"),
  };
}

std::string check_rows(const OpRow& row, DType dtype) {
  REQUIRE_MESSAGE(row.lane_sample, row.name, " has no lane_sample");
  for (int64_t n = 1; n <= kLongest; ++n) {
    const Sample sample = row.lane_sample(n);
    if (sample.empty()) continue;  // no such length
    std::vector<Shape> shapes;
    std::vector<Values> values;
    for (std::size_t k = 0; k < sample.size(); ++k) {
      shapes.push_back(sample[k].shape);
      values.push_back(numbers_of(sample[k], sample[k].shape.numel(), k + 1));
    }
    const Values dy = numbers_of(in({}), 3 * kLongest, 77);
    const std::vector<Values> clean = run(row, shapes, values, dy, dtype);
    for (std::size_t k = 0; k < sample.size(); ++k) {
      if (shapes[k][0] != 3 || shapes[k].dim() < 2) continue;
      const std::size_t C = values[k].size() / 3;
      for (std::size_t c = 0; c < C; ++c)
        for (std::size_t p = 0; p < 3; ++p) {
          if (n > kEveryPlace && p != (c + std::size_t(n)) % 3) continue;
          std::vector<Values> poisoned = values;
          poisoned[k][C + c] = kPoisons[p];
          const std::vector<Values> got = run(row, shapes, poisoned, dy, dtype);
          for (std::size_t r = 0; r < got.size(); ++r) {
            if (r > 0 && (shapes[r - 1][0] != 3 || shapes[r - 1].dim() < 2))
              continue;  // a parameter: all rows are in it
            const std::size_t W = got[r].size() / 3;
            for (std::size_t i = 0; i < got[r].size(); ++i) {
              const bool middle = i >= W && i < 2 * W;
              const bool lost = r == 0 && p == 0 && row.nan_lost.empty() && !std::isnan(got[0][i]);
              if (middle ? !lost : same(got[r][i], clean[r][i])) continue;
              std::ostringstream text;
              text << (r ? "gradient " : "result ") << (r ? r - 1 : 0) << " at " << i << " of 3 x "
                   << W << (middle ? ", where a NaN is lost" : " has changed") << ": "
                   << kPoisons[p] << " at " << c << " of " << C << " in input " << k;
              return text.str();
            }
          }
        }
    }
  }
  return "";
}

}  // namespace

TEST_CASE("NaN and infinity in every lane: ops that work element by element") {
  const int64_t rows = for_each_row(
      Lanes::kEach, [](const OpRow& row, DType dtype) { return Elements(row, dtype).check_all(); });
  std::printf("FIGURE | rows whose every lane is poisoned | %lld\n", static_cast<long long>(rows));
}

TEST_CASE("NaN and infinity in every lane: ops that work row by row") {
  const int64_t rows = for_each_row(Lanes::kRows, check_rows);
  std::printf("FIGURE | rows whose neighbours are poisoned | %lld\n", static_cast<long long>(rows));
}
