// The attention ops against their plain definitions, decoding against the full pass, what XSA is
// and is not, and that the checks reject the mistakes seen in public implementations.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "attention_numbers.h"

using namespace pellucid;

namespace {

constexpr AttentionOptions kExact{.kind = AttentionKind::kXSA};

// Heads [first, first + count) of (B, T, W) as (B, T, count, D).
Tensor heads(const Tensor& x, int64_t first, int64_t count, int64_t D) {
  return reshape(slice(x, 2, first * D, (first + count) * D), {x.size(0), x.size(1), count, D});
}

// One head, B = 1, causal: q, k, v (T, D) to the weights (T, T), on numbers.
using Matrix = std::vector<std::vector<double>>;
struct Head {
  int64_t T, D;
  Matrix q, k, v, p, y, s;

  Head(int64_t length, int64_t D_, const Tensor& qkv) : T(length), D(D_) {
    const std::vector<double> x = qkv.to_vector();
    q = k = v = y = Matrix(T, std::vector<double>(D));
    p = s = Matrix(T, std::vector<double>(T));
    for (int64_t t = 0; t < T; ++t)
      for (int64_t d = 0; d < D; ++d) {
        q[t][d] = x[(t * 3 + 0) * D + d];
        k[t][d] = x[(t * 3 + 1) * D + d];
        v[t][d] = x[(t * 3 + 2) * D + d];
      }
    for (int64_t i = 0; i < T; ++i)
      for (int64_t j = 0; j < T; ++j) {
        for (int64_t d = 0; d < D; ++d) s[i][j] += q[i][d] * k[j][d];
        s[i][j] /= std::sqrt(double(D));
      }
    for (int64_t i = 0; i < T; ++i) {
      double total = 0;
      for (int64_t j = 0; j <= i; ++j) total += p[i][j] = std::exp(s[i][j]);
      for (int64_t j = 0; j <= i; ++j) p[i][j] /= total;
      for (int64_t j = 0; j <= i; ++j)
        for (int64_t d = 0; d < D; ++d) y[i][d] += p[i][j] * v[j][d];
    }
  }

  // x without its part along v_i.
  std::vector<double> project(int64_t i, std::vector<double> x) const {
    double xv = 0, vv = 0;
    for (int64_t d = 0; d < D; ++d) xv += x[d] * v[i][d], vv += v[i][d] * v[i][d];
    for (int64_t d = 0; d < D; ++d) x[d] -= xv / vv * v[i][d];
    return x;
  }
};

Tensor tensor(const Matrix& rows) {
  std::vector<double> all;
  for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
  return from_vector(all, {1, int64_t(rows.size()), int64_t(rows[0].size())}, kFloat64);
}

}  // namespace

TEST_CASE("attention: fused and plain agree in float64") {
  double most = 0;
  for (auto [H, Hkv] : {std::pair<int64_t, int64_t>{2, 2}, {4, 2}, {3, 1}})
    for (AttentionKind kind : {AttentionKind::kSA, AttentionKind::kXSA})
      for (bool causal : {true, false})
        for (int64_t length : {1, 2, 17, 65})
          for (int64_t D : {2, 7, 33}) {
            const bool gated = kind == AttentionKind::kXSA && D != 7, sinks = D != 33;
            const AttentionOptions options{.kind = kind, .causal = causal};
            const Tensor x = random({2, length, (H + 2 * Hkv) * D}, uint64_t(length * D));
            const Tensor gate = random({H}, 5), dz = random({2, length, H * D}, 6);
            const Tensor logits = random({H}, 7) * 2.0;
            TensorList gradients[2];
            Tensor z[2];
            for (int plain : {0, 1}) {
              const Tensor a = leaf(x), g = gated ? leaf(gate) : Tensor();
              const Tensor sink = sinks ? leaf(logits) : Tensor();
              z[plain] = plain ? plain::attention(a, g, H, Hkv, options, sink)
                               : attention(a, g, H, Hkv, options, sink);
              TensorList inputs{a};
              for (const Tensor& input : {g, sink})
                if (input.defined()) inputs.push_back(input);
              gradients[plain] = grad(z[plain], inputs, dz);
            }
            most = std::max(most, difference(z[0], z[1]));
            for (size_t i = 0; i < gradients[0].size(); ++i)
              most = std::max(most, difference(gradients[0][i], gradients[1][i]));
          }
  CHECK(most <= 1e-13);
  std::printf("FIGURE | attention, fused against plain, float64 | %.2g relative\n", most);
}

TEST_CASE("attention: decoding gives the rows of the full pass, for every prefix") {
  const int64_t B = 2, length = 37, H = 4, Hkv = 2, D = 8, capacity = 50;
  for (DType dtype : {kFloat64, kFloat32})
    for (auto [kind, sinks] : {std::pair{AttentionKind::kSA, false},
                               {AttentionKind::kXSA, false},
                               {AttentionKind::kXSA, true}}) {
      NoGradGuard guard;
      const AttentionOptions options{.kind = kind};
      const Tensor gate = kind == AttentionKind::kXSA ? random({H}, 5, dtype) : Tensor();
      const Tensor sink = sinks ? random({H}, 3, dtype) : Tensor();
      const Tensor x = random({B, length, (H + 2 * Hkv) * D}, 4, dtype);
      const Tensor z = attention(x, gate, H, Hkv, options, sink);
      const double bound = dtype == kFloat64 ? 1e-14 : 1e-5;

      // A cache with NaN behind the last token, its heads before its tokens: any strides do.
      const Tensor nan = full({B, Hkv, capacity, D}, NAN, dtype);
      Tensor keys = nan * 1.0, values = nan * 1.0;
      for (int64_t t = 0; t < length; ++t) {
        const auto rows = [&](const Tensor& cache) {
          return transpose(slice(cache, 2, 0, t + 1), 1, 2);  // (B, t + 1, Hkv, D)
        };
        const Tensor now = slice(x, 1, t, t + 1);
        copy_(slice(rows(keys), 1, t, t + 1), heads(now, H, Hkv, D));
        copy_(slice(rows(values), 1, t, t + 1), heads(now, H + Hkv, Hkv, D));
        const Tensor one =
            attention_decode(heads(now, 0, H, D), rows(keys), rows(values), gate, options, sink);
        CHECK(difference(reshape(one, {B, 1, H * D}) + 1.0, slice(z, 1, t, t + 1) + 1.0) <= bound);

        // Mistake 9: all cached values lined up with the new rows, so row 0's value is projected
        // out.
        if (kind == AttentionKind::kXSA && t > 0) {
          const AttentionOptions sa;
          const Tensor y =
              attention_decode(heads(now, 0, H, D), rows(keys), rows(values), {}, sa, sink);
          const Tensor first = slice(rows(values), 1, 0, 1);  // (B, 1, Hkv, D)
          const Tensor own =
              reshape(expand(unsqueeze(first, 3), {B, 1, Hkv, H / Hkv, D}), {B, 1, H, D});
          CHECK(difference(reshape(xsa(y, own, gate), {B, 1, H * D}) + 1.0,
                           slice(z, 1, t, t + 1) + 1.0) > bound);
        }
      }
      // Several new tokens at once.
      for (int64_t n : {1, 2, 20, 37}) {
        const Tensor some =
            attention_decode(heads(slice(x, 1, length - n, length), 0, H, D), heads(x, H, Hkv, D),
                             heads(x, H + Hkv, Hkv, D), gate, options, sink);
        CHECK(difference(reshape(some, {B, n, H * D}), slice(z, 1, length - n, length)) <= bound);
      }
    }
}

TEST_CASE("attention: decoding refuses to lose a gradient") {
  const Tensor q = leaf(random({1, 1, 1, 2}, 1)), k = random({1, 1, 1, 2}, 2);
  const Tensor sink = leaf(random({1}, 3));
  for (const auto& [query, logit] : {std::pair{q, Tensor()}, {k, sink}})
    CHECK_THROWS_WITH_AS(attention_decode(query, k, k, {}, {}, logit),
                         "attention_decode: has no gradient; use NoGradGuard, or attention() for "
                         "training",
                         std::invalid_argument);
}

TEST_CASE("xsa is strictly causal attention, gated by the token's own score, then projected") {
  // z_i = sigmoid(lse_<i - s_ii) P_i y~_i, with lse_<i and y~_i over the keys before i.
  const int64_t length = 29, D = 6;
  const Tensor x = random({1, length, 3 * D}, 7) * 2.0;
  const Head h(length, D, x);
  Matrix wanted(length, std::vector<double>(D));  // z_0 = 0
  for (int64_t i = 1; i < length; ++i) {
    double total = 0;
    std::vector<double> before(D);
    for (int64_t j = 0; j < i; ++j) {
      total += std::exp(h.s[i][j]);
      for (int64_t d = 0; d < D; ++d) before[d] += std::exp(h.s[i][j]) * h.v[j][d];
    }
    const double gate = 1 / (1 + std::exp(h.s[i][i] - std::log(total)));
    for (double& e : before) e *= gate / total;
    wanted[i] = h.project(i, before);
  }
  const double error = difference(attention(x, {}, 1, 1, kExact), tensor(wanted));
  CHECK(error <= 1e-13);
  std::printf("FIGURE | xsa, the identity with strictly causal attention | %.2g relative\n", error);
}

TEST_CASE("xsa is neither the masked diagonal nor y - a_ii v_i") {
  const int64_t length = 12, D = 4;
  const Tensor x = random({1, length, 3 * D}, 8) * 2.0;
  const Head h(length, D, x);
  Matrix masked = h.y, subtracted = h.y, projected = h.y;
  for (int64_t i = 0; i < length; ++i) {
    projected[i] = h.project(i, h.y[i]);
    for (int64_t d = 0; d < D; ++d) {
      subtracted[i][d] -= h.p[i][i] * h.v[i][d];
      masked[i][d] = subtracted[i][d] / (1 - h.p[i][i]);  // 0 / 0 at i = 0: XSA is finite there
    }
  }
  const Tensor z = attention(x, {}, 1, 1, kExact);
  const auto good = [&](const Matrix& m) { return difference(z, tensor(m)) <= 1e-13; };
  CHECK(good(projected));
  CHECK_FALSE(good(masked));  // mistake 7
  CHECK_FALSE(good(subtracted));
  masked[0] = std::vector<double>(D);
  CHECK_FALSE(good(masked));  // not even elsewhere
}

TEST_CASE("attention: the check of the gradient rejects mistakes 2 and 8") {
  const int64_t length = 9, H = 4, Hkv = 2, D = 3;
  const Tensor x = random({1, length, (H + 2 * Hkv) * D}, 9);
  const auto loss = [&](const Tensor& qkv) { return attention(qkv, {}, H, Hkv, kExact); };
  CHECK(gradcheck([&](const TensorList& in) { return loss(in[0]); }, {leaf(x)}));

  // 2. XSA's own dv is never added: as if v in the projection were a constant.
  const Tensor frozen = heads(x, H + Hkv, Hkv, D);
  const auto forgets = [&](const TensorList& in) {
    const AttentionOptions sa;
    const Tensor y = reshape(attention(in[0], {}, H, Hkv, sa), {1, length, H, D});
    const Tensor own =
        reshape(expand(unsqueeze(frozen, 3), {1, length, Hkv, H / Hkv, D}), {1, length, H, D});
    return reshape(xsa(y, own), {1, length, H * D});
  };
  const Tensor a = leaf(x), b = leaf(x), dz = random({1, length, H * D}, 10);
  const Tensor right = loss(a), wrong = forgets({b});
  CHECK(difference(wrong, right) <= 1e-13);  // the loss still looks right
  CHECK(difference(grad(wrong, {b}, dz)[0], grad(right, {a}, dz)[0]) > 1e-3);

  // 8. Query head h reads key head h mod Hkv, where h / (H / Hkv) is right.
  const auto reordered = [&](const Tensor& qkv) {
    std::vector<Tensor> order;
    for (int64_t h : {0, 2, 1, 3}) order.push_back(slice(qkv, 2, h * D, (h + 1) * D));
    Tensor all = unslice(slice(qkv, 2, H * D, qkv.size(2)), 2, qkv.size(2), H * D);
    for (int64_t h = 0; h < H; ++h) all = all + unslice(order[h], 2, qkv.size(2), h * D);
    return all;
  };
  const Tensor mapped = loss(reordered(x));  // heads 0, 2, 1, 3
  CHECK(difference(mapped, plain::attention(x, {}, H, Hkv, kExact)) > 1e-3);
  CHECK(difference(right, plain::attention(x, {}, H, Hkv, kExact)) <= 1e-13);
}

TEST_CASE("xsa: v = 0 has no projection and no gradient, fused and plain, at eps = 0") {
  const Tensor y = random({2, 2, 3}, 20), dz = random({2, 2, 3}, 21), zero = zeros_like(y);
  for (XsaDenominator denominator :
       {XsaDenominator::kExact, XsaDenominator::kAddEps, XsaDenominator::kClampNorm})
    for (const Tensor& gate : {Tensor(), full({2}, 0.5, kFloat64)})
      for (bool create_graph : {false, true}) {
        TensorList in{leaf(y), leaf(zero)};
        if (gate.defined()) in.push_back(leaf(gate));
        const Tensor g = gate.defined() ? in[2] : gate;
        const Tensor z = xsa(in[0], in[1], g, {.denominator = denominator});
        const TensorList G = grad(z, in, dz, {.create_graph = create_graph});
        CHECK(z.to_vector() == y.to_vector());
        CHECK(G[0].to_vector() == dz.to_vector());
        CHECK(G[1].to_vector() == zero.to_vector());
        if (gate.defined()) CHECK(G[2].to_vector() == std::vector<double>(2));
      }
}

TEST_CASE("attention: a sink of 0 is one more token in front, whose key and value are 0") {
  const int64_t length = 21, D = 5;
  const Tensor x = random({2, length, 3 * D}, 30), dz = random({2, length, D}, 31);
  for (const AttentionOptions& options : {AttentionOptions(), kExact}) {
    const Tensor a = leaf(x), b = leaf(x), sink = leaf(zeros({1}, kFloat64));
    const Tensor z = attention(a, {}, 1, 1, options, sink);
    const Tensor longer = attention(unslice(b, 1, length + 1, 1), {}, 1, 1, options);
    const Tensor wanted = slice(longer, 1, 1, length + 1);
    CHECK(difference(z, wanted) <= 1e-14);
    CHECK(difference(grad(z, {a}, dz)[0], grad(wanted, {b}, dz)[0]) <= 1e-14);
  }
}

TEST_CASE("attention: sinks scale XSA's rows, which stay orthogonal to their values") {
  // y = (1 - p_sink) y', y' without the sink, and XSA is linear in y.
  const int64_t length = 21, D = 5;
  const Tensor x = random({1, length, 3 * D}, 32), sink = from_vector({1.5}, {1}, kFloat64);
  const Head h(length, D, x);
  const Tensor z = attention(x, {}, 1, 1, kExact, sink), without = attention(x, {}, 1, 1, kExact);
  Matrix share(length, std::vector<double>(D));
  for (int64_t i = 0; i < length; ++i) {
    double total = 0;
    for (int64_t j = 0; j <= i; ++j) total += std::exp(h.s[i][j]);
    for (double& e : share[i]) e = total / (total + std::exp(1.5));
  }
  CHECK(difference(z, without * tensor(share)) <= 1e-13);
  const Tensor along = sum(z * slice(x, 2, 2 * D, 3 * D), -1);  // z.v
  CHECK(difference(along + 1.0, full({1, length}, 1, kFloat64)) <= 1e-15 * 8);
}

TEST_CASE("attention: a sink of -inf has no gradient and changes nothing, of every order") {
  const Tensor x = random({1, 9, 12}, 33), dz = random({1, 9, 6}, 34);
  for (bool create_graph : {false, true}) {
    const Tensor a = leaf(x), b = leaf(x), sink = leaf(full({2}, -INFINITY, kFloat64));
    const Tensor z = attention(a, {}, 2, 1, kExact, sink), wanted = attention(b, {}, 2, 1, kExact);
    const TensorList G = grad(z, {a, sink}, dz, {.create_graph = create_graph});
    CHECK(z.to_vector() == wanted.to_vector());
    CHECK(difference(G[0], grad(wanted, {b}, dz)[0]) <= (create_graph ? 1e-14 : 0));
    CHECK(G[1].to_vector() == std::vector<double>(2));
  }
}

TEST_CASE("attention: a sink of +inf or NaN makes its head NaN, fused and plain") {
  const Tensor x = random({1, 5, 12}, 35);
  for (double bad : {double(INFINITY), double(NAN)})
    for (bool plain : {false, true}) {
      const Tensor sink = from_vector({0.5, bad}, {2}, kFloat64);
      const Tensor z = plain ? plain::attention(x, {}, 2, 1, kExact, sink)
                             : attention(x, {}, 2, 1, kExact, sink);
      const std::vector<double> y = z.to_vector();
      for (size_t i = 0; i < y.size(); ++i) CHECK(std::isnan(y[i]) == (i / 3 % 2 == 1));
    }
}

TEST_CASE("attention: no batch or no tokens: gate and sink have gradient 0, of every order") {
  for (auto [B, length] : {std::pair<int64_t, int64_t>{0, 3}, {2, 0}})
    for (bool create_graph : {false, true}) {
      const Tensor qkv = leaf(zeros({B, length, 8}, kFloat64)), gate = leaf(random({2}, 22));
      const Tensor sink = leaf(random({2}, 23));
      const Tensor z = attention(qkv, gate, 2, 1, kExact, sink);
      const TensorList G =
          grad(z, {qkv, gate, sink}, zeros_like(z), {.create_graph = create_graph});
      CHECK(G[0].shape() == qkv.shape());
      for (int i : {1, 2}) {
        REQUIRE(G[i].defined());
        CHECK(G[i].to_vector() == std::vector<double>(2));
      }
    }
}

TEST_CASE("attention: a negative scale is as good as a negative q") {
  const Tensor x = random({1, 9, 12}, 23);
  const Tensor turned =
      unslice(slice(x, 2, 4, 12), 2, 12, 4) - unslice(slice(x, 2, 0, 4), 2, 12, 0);
  const Tensor a = attention(x, {}, 1, 1, {.scale = -0.5});
  CHECK(a.to_vector() == attention(turned, {}, 1, 1, {.scale = 0.5}).to_vector());
}

TEST_CASE("attention: a shift of all keys changes nothing, so the rows of ds sum to 0") {
  const int64_t length = 33, D = 5;
  const Tensor a = leaf(random({1, length, 3 * D}, 11));
  const Tensor dqkv = grad(attention(a, {}, 1, 1, kExact), {a}, random({1, length, D}, 12))[0];
  const Tensor dk = slice(dqkv, 2, D, 2 * D);
  CHECK(difference(sum(dk, 1) + 1.0, full({1, D}, 1, kFloat64)) <= 1e-13);
}

TEST_CASE("attention: a norm after XSA keeps the first token finite by its eps (mistake 11)") {
  const int64_t length = 5, D = 4;
  for (double eps : {1e-6, 0.0}) {
    const Tensor a = leaf(random({1, length, 3 * D}, 13));
    const Tensor y = rms_norm(attention(a, {}, 1, 1, kExact), full({D}, 1, kFloat64), eps);
    const double first = y.to_vector()[0];
    const double gradient = grad(sum(y * y), {a})[0].to_vector()[0];
    CHECK((std::isfinite(first) && std::isfinite(gradient)) == (eps > 0));
  }
}

TEST_CASE("attention: any layout of the packed rows and of the gradient, and frozen inputs") {
  const int64_t B = 2, length = 20, H = 2, Hkv = 1, D = 5, W = (H + 2 * Hkv) * D;
  const Tensor wide = random({length, B, W + 6}, 14, kFloat32);
  const Tensor view = slice(transpose(wide, 0, 1), 2, 3, 3 + W);  // (B, T, W), rows apart
  const Tensor gate = random({H}, 15, kFloat32);
  const auto bytes = [](const Tensor& x) { return x.to_vector(); };
  const Tensor a = leaf(view), b = leaf(contiguous(view) * 1.0), g = leaf(gate);
  const Tensor za = attention(a, gate, H, Hkv, kExact), zb = attention(b, g, H, Hkv, kExact);
  CHECK(bytes(za) == bytes(zb));
  const Tensor dz = random({1, length, 1}, 16, kFloat32);
  const Tensor whole = expand(dz, {B, length, H * D});
  CHECK(bytes(grad(za, {a}, whole)[0]) == bytes(grad(zb, {b, g}, contiguous(whole) * 1.0)[0]));
}

TEST_CASE("rope: without a batch no position and no angle is visited, however many there are") {
  CHECK(rope(zeros({0, 1LL << 40, 4}), 1, 4).numel() == 0);
  CHECK(rope(zeros({0, 1, 1LL << 40}), 1, 1LL << 40).numel() == 0);
}

TEST_CASE("rope: attention scores depend on distance, and rope and its inverse cancel") {
  const Tensor x = random({2, 6, 16}, 17);  // two query heads, a key, a value
  for (RopeLayout layout : {RopeLayout::kHalves, RopeLayout::kAdjacent}) {
    const Tensor y = rope(x, 3, 4, {.layout = layout, .position = 100});
    const Tensor back = rope(y, 3, 4, {.layout = layout, .position = 100, .inverse = true});
    CHECK(difference(back, x) <= 1e-15 * 4);
    CHECK(difference(y, x) > 0.1);
  }
  // The same rows, later: nothing but rounding changes.
  const AttentionOptions sa;
  const Tensor here = attention(rope(x, 3, 4, {}), {}, 2, 1, sa);
  const Tensor there = attention(rope(x, 3, 4, {.position = 500}), {}, 2, 1, sa);
  CHECK(difference(here, there) <= 1e-12);
}
