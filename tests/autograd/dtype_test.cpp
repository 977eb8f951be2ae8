// The dtypes of the ops of the table (op_table.h): float32 stays float32; int64 and bool in place
// of any input either give exactly what float64 gives, or are refused by the op, in its own name.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <set>
#include <string>

#include "op_table.h"

using namespace pellucid;

namespace {

// Whole numbers, or 0 and 1, in the input's range.
Tensor whole(const Input& input, DType kind, DType dtype, uint64_t seed) {
  std::vector<double> x = random_leaf(input.shape, seed).to_vector();
  for (double& v : x) {
    v = std::round(input.low + (v + 1) / 2 * (input.high - input.low));
    if (kind == kBool) v = v != 0;
  }
  return from_vector(x, input.shape, dtype);
}

const Sample& filled_sample(const OpRow& row) {
  for (const Sample& sample : row.samples) {
    bool filled = true;
    for (const Input& input : sample) filled = filled && input.shape.numel() > 0;
    if (filled) return sample;
  }
  return row.samples[0];
}

std::string op_of(const OpRow& row) { return row.name.substr(0, row.name.find(' ')); }

// Input k of another kind, or all of them. Some rows add other ops, which may refuse first.
enum Verdict { kRight, kRefusedByAnother, kWrong };
Verdict judge(const OpRow& row, const Sample& sample, std::size_t k, DType kind,
              const std::set<std::string>& ops) {
  TensorList x, exact;
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const bool other = i == k || k == sample.size();
    x.push_back(whole(sample[i], kind, other ? kind : kFloat32, i + 1));
    exact.push_back(whole(sample[i], kind, kFloat64, i + 1));
  }
  try {
    const Tensor y = row.op(x);
    return y.to_vector() == row.op(exact).to_vector() ? kRight : kWrong;
  } catch (const std::invalid_argument& error) {
    const std::string text = error.what();
    if (text.rfind(op_of(row), 0) == 0) return kRight;
    return ops.count(text.substr(0, text.find(':'))) ? kRefusedByAnother : kWrong;
  }
}

}  // namespace

TEST_CASE("int64 and bool: the exact result, or an error in the op's own name") {
  int64_t cases = 0;
  std::set<std::string> ops, direct, indirect;
  for (const OpRow& row : all_rows()) ops.insert({op_of(row), op_of(row) + "_forward"});
  for (const OpRow& row : all_rows()) {
    if (!row.no_dtypes.empty()) {
      direct.insert(op_of(row));
      continue;
    }
    const Sample& sample = filled_sample(row);
    bool all_right = true;
    for (std::size_t k = 0; k <= sample.size(); ++k)
      for (const DType kind : {kInt64, kBool}) {
        const Verdict verdict = judge(row, sample, k, kind, ops);
        CHECK_MESSAGE(verdict != kWrong, "row ", row.name, ", ", std::string(name(kind)),
                      " for input ", k, " of ", sample.size(),
                      ": neither float64's result nor an op's refusal");
        all_right = all_right && verdict == kRight;
        ++cases;
      }
    (all_right ? direct : indirect).insert(op_of(row));
  }
  for (const std::string& op : indirect)
    CHECK_MESSAGE(direct.count(op), "no row of ", op,
                  " shows its own refusal of int64 and bool; give a reason in no_dtypes");
  std::printf("FIGURE | dtypes in place of a floating one | %lld\n", static_cast<long long>(cases));
}

TEST_CASE("float32 in, float32 out, and float32 gradients") {
  for (const OpRow& row : all_rows()) {
    INFO("row ", row.name);
    TensorList x;
    for (const Input& input : filled_sample(row)) {
      std::vector<double> values = random_leaf(input.shape, 1).to_vector();
      for (double& v : values) {
        v = input.low + (v + 1) / 2 * (input.high - input.low);
        if (input.map) v = input.map(v);
      }
      x.push_back(from_vector(values, input.shape).set_requires_grad(true));
    }
    const Tensor y = row.op(x);
    if (is_floating(y.dtype())) CHECK(y.dtype() == kFloat32);
    if (!row.no_gradient.empty()) continue;
    for (const Tensor& dx : grad(y, x, ones_like(y), {.allow_unused = true}))
      if (dx.defined()) CHECK(dx.dtype() == kFloat32);
  }
}
