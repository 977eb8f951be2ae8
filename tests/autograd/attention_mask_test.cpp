// Attention in plain ops under a mask: which keys a query reads, and what it does without any.
#include "attention_numbers.h"

using namespace pellucid;

namespace {

// Attention of packed heads, B = 1, Hkv = 1, as loops over the keys that the mask leaves.
Tensor masked_by_hand(const Tensor& qkv, const Tensor& mask, int64_t H, bool xsa) {
  const int64_t T = qkv.size(1), D = qkv.size(2) / (H + 2), W = (H + 2) * D;
  const std::vector<double> x = qkv.to_vector(), m = expand(mask, {H, T, T}).to_vector();
  std::vector<double> z(T * H * D);
  for (int64_t h = 0; h < H; ++h)
    for (int64_t i = 0; i < T; ++i) {
      std::vector<double> y(D);
      double total = 0;
      const auto bias = [&](int64_t j) { return m[(h * T + i) * T + j]; };
      for (int64_t j = 0; j < T; ++j) {
        if (bias(j) == -INFINITY) continue;
        double score = 0;
        for (int64_t d = 0; d < D; ++d) score += x[i * W + h * D + d] * x[j * W + H * D + d];
        const double e = std::exp(score / std::sqrt(double(D)) + bias(j));
        total += e;
        for (int64_t d = 0; d < D; ++d) y[d] += e * x[j * W + (H + 1) * D + d];
      }
      if (total > 0)
        for (double& e : y) e /= total;
      const double* v = &x[i * W + (H + 1) * D];
      double yv = 0, vv = 0;
      for (int64_t d = 0; d < D; ++d) yv += y[d] * v[d], vv += v[d] * v[d];
      const double c = xsa && bias(i) != -INFINITY ? yv / vv : 0;  // a hidden own value is not read
      for (int64_t d = 0; d < D; ++d) z[(i * H + h) * D + d] = y[d] - c * v[d];
    }
  return from_vector(z, {1, T, H * D}, kFloat64);
}

}  // namespace

TEST_CASE("plain::attention: the causal mask, spelled out, and any shape that broadcasts to it") {
  const int64_t B = 2, length = 6, H = 4;
  const Tensor x = random({B, length, 8 * 3}, 36);
  std::vector<double> future(length * length, -INFINITY);
  for (int64_t i = 0; i < length; ++i) std::fill_n(future.begin() + i * length, i + 1, 0.0);
  const Tensor mask = from_vector(future, {length, length}, kFloat64);
  std::vector<double> nothing = future;
  for (double& e : nothing)
    if (e != 0) e = NAN;
  const Tensor unread = from_vector(nothing, {length, length}, kFloat64);
  for (AttentionKind kind : {AttentionKind::kSA, AttentionKind::kXSA}) {
    const AttentionOptions open{.kind = kind, .causal = false}, causal{.kind = kind};
    const Tensor wanted = attention(x, {}, H, 2, causal);
    CHECK(difference(plain::attention(x, {}, H, 2, causal, {}, unread), wanted) <= 1e-14);
    for (const Shape& shape : {Shape{length, length},
                               {1, 1, length, length},
                               {H, length, length},
                               {B, 1, length, length},
                               {B, H, length, length}}) {
      const Tensor a = leaf(expand(mask, shape) * 1.0);
      CHECK(difference(plain::attention(x, {}, H, 2, open, {}, a), wanted) <= 1e-14);
      CHECK(difference(plain::attention(x, {}, H, 2, causal, {}, a), wanted) <= 1e-14);
    }
  }
}

TEST_CASE("plain::attention: masks by hand; a query that sees nothing gives 0 and no gradient") {
  const int64_t length = 7, H = 2, D = 3;
  const Tensor x = random({1, length, (H + 2) * D}, 37), dz = random({1, length, H * D}, 38);
  std::vector<double> numbers = (random({H, length, length}, 39) * 2.0).to_vector();
  for (size_t i = 0; i < numbers.size(); ++i)
    if (i % 3 == 0 || i / length % length == 4) numbers[i] = -INFINITY;  // query 4: all
  for (AttentionKind kind : {AttentionKind::kSA, AttentionKind::kXSA}) {
    const AttentionOptions open{.kind = kind, .causal = false};
    const Tensor a = leaf(x), mask = leaf(from_vector(numbers, {H, length, length}, kFloat64));
    const Tensor z = plain::attention(a, {}, H, 1, open, {}, mask);
    CHECK(difference(z, masked_by_hand(x, mask, H, kind == AttentionKind::kXSA)) <= 1e-13);
    for (double e : slice(z, 1, 4, 5).to_vector()) CHECK(e == 0);

    // The gradient of the mask is 0 where it hides, that of the blind query everywhere.
    const TensorList G = grad(z, {a, mask}, dz);
    const std::vector<double> dmask = G[1].to_vector();
    for (size_t i = 0; i < dmask.size(); ++i) CHECK((dmask[i] == 0) == (numbers[i] == -INFINITY));
    for (double e : slice(slice(G[0], 1, 4, 5), 2, 0, H * D).to_vector()) CHECK(e == 0);

    // All hidden, with a sink or none. (The gradient of a sink that is NaN is NaN.)
    const Tensor none = leaf(full({1, 1}, -INFINITY, kFloat64));
    for (const Tensor& sink : {Tensor(), leaf(random({H}, 40)),
                               leaf(full({H}, -INFINITY, kFloat64)), full({H}, NAN, kFloat64)}) {
      const Tensor blind = plain::attention(a, {}, H, 1, open, sink, none);
      TensorList inputs{a, none};
      if (sink.defined() && sink.requires_grad()) inputs.push_back(sink);
      for (double e : blind.to_vector()) CHECK(e == 0);
      for (const Tensor& dx : grad(blind, inputs, dz))
        for (double e : dx.to_vector()) CHECK(e == 0);
    }
  }
}

TEST_CASE("plain::attention: a hidden key and value have no influence, not even as NaN") {
  // Key 3 is padding, hidden from all; key 5 from all but query 5, which alone turns NaN.
  const int64_t length = 6, D = 2;
  std::vector<double> hidden(length * length, 0.0);
  for (int64_t i = 0; i < length; ++i) {
    hidden[i * length + 3] = -INFINITY;
    if (i < 5) hidden[i * length + 5] = -INFINITY;
  }
  const Tensor mask = from_vector(hidden, {length, length}, kFloat64);
  const Tensor clean = random({1, length, 3 * D}, 41), dz = random({1, length, D}, 42);
  for (AttentionKind kind : {AttentionKind::kSA, AttentionKind::kXSA})
    for (int64_t bad : {3, 5})
      for (double poison : {double(NAN), double(INFINITY)}) {
        const AttentionOptions open{.kind = kind, .causal = false};
        std::vector<double> numbers = clean.to_vector();
        for (int64_t d = D; d < 3 * D; ++d) numbers[bad * 3 * D + d] = poison;
        const Tensor a = leaf(clean), b = leaf(from_vector(numbers, clean.shape(), kFloat64));
        const Tensor wanted = plain::attention(a, {}, 1, 1, open, {}, mask);
        const Tensor z = plain::attention(b, {}, 1, 1, open, {}, mask);
        const int64_t end = bad == 3 ? length : 5;
        const auto seen = [&](const Tensor& x) { return slice(x, 1, 0, end); };
        CHECK(difference(seen(z), seen(wanted)) <= 1e-15);
        if (bad == 5) CHECK(std::isnan(z.to_vector().back()));
        // The gradients too; those of keys that query 5 sees are NaN with it, as 0 * NaN is.
        const auto gradient = [&](const Tensor& y, const Tensor& x) {
          return slice(seen(grad(seen(y), {x}, seen(dz))[0]), 2, 0, bad == 3 ? 3 * D : D);
        };
        CHECK(difference(gradient(z, b), gradient(wanted, a)) <= 1e-15);
      }
}
