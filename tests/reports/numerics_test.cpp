// Known faults of NaN, infinity and rounding, tested as kinds: every length around the width of a
// vector register, every axis.
#include "autograd/ops.h"
#include "reports.h"

using namespace pellucid;

namespace {

const int64_t kSizes[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 130};

}  // namespace

TEST_CASE(
    "where: the branch that is not taken gives no NaN through sqrt, and none at all with an inner "
    "where (tinygrad/tinygrad#12409, jax-ml/jax#347, pytorch/pytorch#23395)") {
  for (const DType dtype : {kFloat32, kFloat64})
    for (const int64_t n : kSizes)
      for (int64_t at = 0; at < n; at += 1 + n / 9) {
        Values v(std::size_t(n), 4);
        v[std::size_t(at)] = 0;
        const Tensor x = from_vector(v, {n}, dtype).set_requires_grad(true);
        const Tensor zero = full_like(x, {}, 0), one = full_like(x, {}, 1);
        const auto gradient_is = [&](const Tensor& y, double elsewhere, double there) {
          const Values dx = grad(sum(y), {x})[0].to_vector();
          for (int64_t i = 0; i < n; ++i)
            if (!(dx[std::size_t(i)] == (i == at ? there : elsewhere))) return false;
          return true;
        };
        const Tensor empty_place = equal(x, zero);
        // sqrt's own rule: its gradient is 0 where none arrives.
        CHECK(gradient_is(where(empty_place, zero, sqrt(x)), 0.25, 0));
        CHECK(gradient_is(where(empty_place, zero, x * sqrt(x)), 3, 0));
        // For the rest, an inner where keeps the argument away from the pole.
        const auto safe = [&] { return where(empty_place, one, x); };
        CHECK(gradient_is(where(empty_place, zero, log(safe())), 0.25, 0));
        CHECK(gradient_is(where(empty_place, zero, one / safe()), -1.0 / 16, 0));
        CHECK(gradient_is(where(empty_place, zero, rsqrt(safe())), -1.0 / 16, 0));
      }
}

TEST_CASE(
    "2^24 + 1000 ones have mean 1 along every axis (numpy/numpy#8869, numpy/numpy#22956, "
    "tensorflow#51419, pytorch/pytorch#38716)") {
  const int64_t n = (1 << 24) + 1000;
  const Tensor all = ones({n, 2});
  for (const Tensor& x : {all, transpose(all, 0, 1), reshape(all, {2, n}), reshape(all, {n, 1, 2})})
    for (int axis = 0; axis < x.dim(); ++axis)
      if (x.size(axis) == n)
        for (const double m : mean(x, axis).to_vector()) CHECK(m == 1);
  CHECK(mean(all).item() == 1);
  // As rows too: the sums of squares of a norm, of a gradient over the batch.
  CHECK(rms_norm(reshape(all, {1, 2 * n}), ones({2 * n}), 0).at({0, n}) == 1);
  CHECK(grad_norm({all}) == std::sqrt(double(2 * n)));
  const Tensor w = ones({1}).set_requires_grad(true);
  CHECK(grad(sum(expand(w, {n})), {w})[0].item() == double(n));
}

TEST_CASE(
    "a constant row is normalised to exactly its bias, at any size of the constant "
    "(tracel-ai/burn#5607, ml-explore/mlx#2238, microsoft/onnxruntime#28463, "
    "microsoft/onnxruntime#21935)") {
  for (const DType dtype : {kFloat32, kFloat64})
    for (const int64_t C : kSizes)
      for (const double constant : {0.0, 0.1, 1234.0, -40000.0, 1e6, 3e30}) {
        const Tensor x = full({3, C}, constant, dtype).set_requires_grad(true);
        const Tensor weight = normal({C}, 1, dtype), bias = normal({C}, 2, dtype);
        const Tensor y = layer_norm(x, weight, bias, 1e-5);
        CHECK(same_bits(y, contiguous(expand(bias, {3, C}))));
        for (const double g : grad(sum(y), {x})[0].to_vector()) CHECK(std::isfinite(g));
      }
  // Whole numbers around a large mean: the deviations are exact, so nothing of it may show.
  for (const double large : {0.0, 40000.0, 1e6}) {
    const Tensor x = from_vector({large, large + 1, large + 2, large + 3}, {1, 4});
    const Values y = layer_norm(x, ones({4}), Tensor(), 0).to_vector();
    const double wanted[] = {-1.5, -0.5, 0.5, 1.5};
    // Mean and deviations exact; variance, root, quotient: 3 roundings, and those of the lanes.
    for (std::size_t i = 0; i < 4; ++i)
      CHECK(std::abs(y[i] - wanted[i] / std::sqrt(1.25)) <= 8 * 0x1p-24 * std::abs(wanted[i]));
  }
}

TEST_CASE(
    "softmax: a row of -inf is NaN, and only that row (pytorch/pytorch#25110, "
    "pytorch/pytorch#41508, pytorch/pytorch PR#131060)") {
  for (const DType dtype : {kFloat32, kFloat64})
    for (const int64_t n : kSizes) {
      Values v;
      for (int64_t i = 0; i < 3 * n; ++i) v.push_back(i / n == 1 ? -kInf : double(i % 5));
      const Tensor x = from_vector(v, {3, n}, dtype).set_requires_grad(true);
      const Tensor y = softmax(x);
      const Values found = y.to_vector(), dx = grad(sum(y * y), {x})[0].to_vector();
      int wrong = 0;
      for (int64_t i = 0; i < 3 * n; ++i) {
        wrong += std::isnan(found[std::size_t(i)]) != (i / n == 1);
        wrong += std::isnan(dx[std::size_t(i)]) != (i / n == 1);
      }
      CHECK(wrong == 0);
      // One visible place is enough: it has the probability 1, the masked ones 0.
      for (int64_t at = 0; at < n; ++at) {
        Values one(std::size_t(n), -kInf);
        one[std::size_t(at)] = -1e30;
        const Values p = softmax(from_vector(one, {n}, dtype)).to_vector();
        for (int64_t i = 0; i < n; ++i) wrong += p[std::size_t(i)] != double(i == at);
      }
      CHECK(wrong == 0);
    }
}

TEST_CASE(
    "gelu far from 0 is x or 0, forward and backward, in every lane (pytorch/pytorch#186278, "
    "pytorch/executorch#22323, AiDotNet.Tensors PR#594, pytorch/pytorch#187293)") {
  for (const DType dtype : {kFloat32, kFloat64})
    for (auto* op : {&gelu, &gelu_tanh})
      for (const int64_t n : kSizes)
        for (const double size : {10.5, 13.24, 40.0, 3e38, kInf}) {
          Values v;
          for (int64_t i = 0; i < n; ++i) v.push_back(i % 2 ? -size : size);
          const Tensor x = from_vector(v, {n}, dtype).set_requires_grad(true);
          const Tensor y = (*op)(x);
          const Values at = x.to_vector(), found = y.to_vector(),
                       dx = grad(sum(y), {x})[0].to_vector();
          // At 10.5 the left tail is x Phi(x) = -4e-25 and its derivative as small; 2 u of x and
          // of 1 on the right.
          const double u = dtype == kFloat32 ? 0x1p-24 : 0x1p-53;
          int wrong = 0;
          for (std::size_t i = 0; i < at.size(); ++i) {
            const bool right = at[i] > 0;
            wrong += right ? !(found[i] == at[i] || std::abs(found[i] - at[i]) <= 2 * u * at[i])
                           : !(found[i] <= 0 && found[i] >= -1e-20);
            wrong += !(std::abs(dx[i] - double(right)) <= (right ? 2 * u : 1e-20));
          }
          CHECK_MESSAGE(wrong == 0, size, ", ", n, " elements");
        }
}

TEST_CASE(
    "a NaN stays in every lane of every length, forward and backward, and stays alone "
    "(tracel-ai/burn#5716, tracel-ai/burn#5609, oneDNN PR#5370, mxnet#11115)") {
  struct Row {
    std::string name;
    Tensor (*op)(const Tensor& x);
    bool slope_is_constant = false;  // whatever x is: then a NaN in x is none in dx
  };
  const Row rows[] = {
      {"relu", relu},
      {"clamp", [](const Tensor& x) { return clamp(x, 0, 1); }},
      {"clamp from below", [](const Tensor& x) { return clamp(x, 0, kInf); }},
      {"clamp from above", [](const Tensor& x) { return clamp(x, -kInf, 1); }},
      {"maximum", [](const Tensor& x) { return maximum(x, full_like(x, {}, 0)); }},
      {"maximum, right", [](const Tensor& x) { return maximum(full_like(x, {}, 0), x); }},
      {"minimum", [](const Tensor& x) { return minimum(x, full_like(x, {}, 1)); }},
      {"minimum, right", [](const Tensor& x) { return minimum(full_like(x, {}, 1), x); }},
      {"leaky_relu", [](const Tensor& x) { return leaky_relu(x); }, true},
      {"elu", [](const Tensor& x) { return elu(x); }},
      {"abs", abs},
      {"sigmoid", sigmoid},
      {"softplus", softplus},
      {"silu", silu},
      {"gelu", gelu},
      {"gelu_tanh", gelu_tanh},
      {"tanh", tanh},
      {"exp", exp},
      {"sign", sign},
  };
  for (const Row& row : rows)
    for (const DType dtype : {kFloat32, kFloat64})
      for (int64_t n = 1; n <= 130; n += n < 70 ? 1 : 7) {
        Values v;
        for (int64_t i = 0; i < n; ++i) v.push_back(0.25 + double(i % 7) / 8);
        const Values clean = row.op(from_vector(v, {n}, dtype)).to_vector();
        int wrong = 0;
        for (int64_t at = 0; at < n; ++at) {
          Values poisoned = v;
          poisoned[std::size_t(at)] = kNaN;
          const Tensor x = from_vector(poisoned, {n}, dtype).set_requires_grad(true);
          const Tensor y = row.op(x);
          const Values found = y.to_vector();
          for (int64_t i = 0; i < n; ++i)
            wrong += i == at ? !std::isnan(found[std::size_t(i)])
                             : found[std::size_t(i)] != clean[std::size_t(i)];
          if (!y.requires_grad()) continue;
          // From x, and from what arrives.
          const Values dx = grad(sum(y), {x})[0].to_vector();
          const Tensor fine = from_vector(v, {n}, dtype).set_requires_grad(true);
          const Values dy = grad(row.op(fine), {fine}, x.detach())[0].to_vector();
          for (int64_t i = 0; i < n; ++i) {
            wrong += std::isnan(dx[std::size_t(i)]) != (i == at && !row.slope_is_constant);
            wrong += std::isnan(dy[std::size_t(i)]) != (i == at);
          }
        }
        CHECK_MESSAGE(wrong == 0, row.name, ", ", n, " elements");
      }
}

TEST_CASE(
    "equal operands of maximum and minimum share the gradient, half each, at every place "
    "(pytorch/pytorch#56734, pytorch/pytorch PR#43519, tinygrad/tinygrad PR#229)") {
  for (const DType dtype : {kFloat32, kFloat64})
    for (const int64_t n : kSizes)
      for (int64_t at = 0; at < n; ++at)
        for (const double tie : {2.0, 0.0, -0.0, kInf}) {
          Values left, right;
          for (int64_t i = 0; i < n; ++i) {
            left.push_back(i == at ? tie : double(i % 2) - 1);
            right.push_back(i == at ? std::abs(tie) : double((i + 1) % 2) - 1);
          }
          const Tensor a = from_vector(left, {n}, dtype).set_requires_grad(true);
          const Tensor b = from_vector(right, {n}, dtype).set_requires_grad(true);
          const TensorList up = grad(sum(maximum(a, b)), {a, b}),
                           down = grad(sum(minimum(a, b)), {a, b});
          int wrong = 0;
          for (int64_t i = 0; i < n; ++i) {
            const auto k = std::size_t(i);
            const double share = i == at ? 0.5 : left[k] > right[k];
            wrong += up[0].to_vector()[k] != share || up[1].to_vector()[k] != 1 - share;
            wrong += down[0].to_vector()[k] != 1 - share || down[1].to_vector()[k] != share;
          }
          CHECK(wrong == 0);
        }
  // One tensor twice: all of it.
  const Tensor x = normal({33}, 1).set_requires_grad(true);
  CHECK(grad(sum(maximum(x, x)), {x})[0].to_vector() == Values(33, 1));
}

TEST_CASE("the derivative of abs at 0 is 0 (pytorch/pytorch#2421, HIPS/autograd#151)") {
  for (const DType dtype : {kFloat32, kFloat64})
    for (const int64_t n : kSizes)
      for (int64_t at = 0; at < n; ++at) {
        Values v;
        for (int64_t i = 0; i < n; ++i)
          v.push_back(i == at ? (i % 2 ? -0.0 : 0.0) : double(i % 3) - 1.5);
        const Tensor x = from_vector(v, {n}, dtype).set_requires_grad(true);
        const Values dx = grad(sum(abs(x)), {x})[0].to_vector();
        for (int64_t i = 0; i < n; ++i)
          CHECK(dx[std::size_t(i)] == (i == at ? 0 : v[std::size_t(i)] > 0 ? 1 : -1));
      }
}
