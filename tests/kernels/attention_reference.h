// Attention with sinks, a mask and XSA, and its gradients, as three plain loops in float64, and for
// each number the error that rounding allows: |ours - reference| <= (u + 2^-53) bound, u = 2^-24
// for float, to first order. The bounds are rules 3 and 4 of the library's rounding rules, term by
// term: a sum of n terms errs by at most (4 + sqrt(n)/2) u G, G the sum of |terms|; a weight of the
// softmax by u (|s - m| + 2 B + c + 3), B = 2 ulp of exp and c the sum's factor.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace reference {

using Numbers = std::vector<double>;

struct Case {
  int64_t B, Tq, Tk, H, Hkv, D;
  bool causal = true, xsa = true;
  double floor = 0, eps = 0;
  bool sink = false, mask = false;
};

// A number and its bound, in units of u.
struct Array {
  Numbers value, bound;
  explicit Array(int64_t n) : value(n), bound(n) {}
  void add(int64_t i, double x, double b) { value[i] += x, bound[i] += b; }
};

inline double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}
inline double dot_magnitude(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::abs(a[i] * b[i]);
  return sum;
}
// exp may flush what is below 2^-126 to 0: in units of u, an absolute error of every weight.
constexpr double kFlushed = 0x1p-102;
inline double sum_factor(int64_t n) { return 4 + 0.5 * std::sqrt(double(n)); }

// Contiguous: q, z, dz, dq (B, Tq, H, D); k, v, dk, dv (B, Tk, Hkv, D); lse, c (B, H, Tq); gate,
// sink (H); mask, dmask (B, H, Tq, Tk), added to the scores, -inf where a key is hidden.
struct Attention {
  Case s;
  Numbers q, k, v, dz, gate, sink, mask;
  Array z, lse, c, dq, dk, dv, dgate, dsink, dmask;

  Attention(const Case& shape, uint64_t seed)
      : s(shape),
        q(s.B * s.Tq * s.H * s.D),
        k(s.B * s.Tk * s.Hkv * s.D),
        v(k.size()),
        dz(q.size()),
        gate{1, 0.6, -0.3, 2, 0, 1, 1, 0.5},
        sink{0.7, -1.5, 3, 0, -4, 1, 1, 0.5},
        mask(s.mask ? s.B * s.H * s.Tq * s.Tk : 0),
        z(int64_t(q.size())),
        lse(s.B * s.H * s.Tq),
        c(s.B * s.H * s.Tq),
        dq(int64_t(q.size())),
        dk(int64_t(k.size())),
        dv(int64_t(k.size())),
        dgate(s.H),
        dsink(s.H),
        dmask(int64_t(mask.size())) {
    gate.resize(s.H);
    sink.resize(s.H);
    if (!s.sink) sink.assign(s.H, -INFINITY);
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;  // floats: exact in both precisions
    for (Numbers* x : {&q, &k, &v, &dz})
      for (double& e : *x) e = double(normal(random));
    for (Numbers* x : {&gate, &sink})
      for (double& e : *x) e = double(float(e));
  }

  int64_t at_query(int64_t b, int64_t t, int64_t h) const {
    return ((b * s.Tq + t) * s.H + h) * s.D;
  }
  int64_t at_key(int64_t b, int64_t t, int64_t h) const {
    return ((b * s.Tk + t) * s.Hkv + h) * s.D;
  }

  void run(double scale) {
    for (int64_t b = 0; b < s.B; ++b)
      for (int64_t h = 0; h < s.H; ++h)
        for (int64_t i = 0; i < s.Tq; ++i) row(b, h, i, scale);
  }

  void row(int64_t b, int64_t h, int64_t i, double scale) {
    const int64_t D = s.D, own = s.Tk - s.Tq + i, kv = h / (s.H / s.Hkv);
    const int64_t iq = at_query(b, i, h), row_at = (b * s.H + h) * s.Tq + i;
    const double *q_i = &q[iq], *dz_i = &dz[iq], sink_h = sink[h];
    std::vector<int64_t> keys;  // that the query sees
    for (int64_t j = 0; j < (s.causal ? std::min(own + 1, s.Tk) : s.Tk); ++j)
      if (!s.mask || mask[row_at * s.Tk + j] != -INFINITY) keys.push_back(j);
    const int64_t n = int64_t(keys.size());
    if (n == 0) {
      lse.value[row_at] = sink_h;
      return;
    }

    // Weights p, and their errors in units of u.
    Numbers score(n), score_bound(n), p(n), p_bound(n);
    for (int64_t j = 0; j < n; ++j) {
      const double* k_j = &k[at_key(b, keys[j], kv)];
      score[j] = scale * dot(q_i, k_j, D);
      score_bound[j] = (sum_factor(D) + 2) * std::abs(scale) * dot_magnitude(q_i, k_j, D);
      if (s.mask) score[j] += mask[row_at * s.Tk + keys[j]], score_bound[j] += std::abs(score[j]);
    }
    const double m = std::max(sink_h, *std::max_element(score.begin(), score.end()));
    double total = std::exp(sink_h - m), shift = s.sink ? total * (m - sink_h) : 0;
    for (int64_t j = 0; j < n; ++j) total += p[j] = std::exp(score[j] - m);
    shift /= total;
    for (int64_t j = 0; j < n; ++j) {
      p[j] /= total;
      shift += p[j] * (score_bound[j] + std::abs(score[j] - m));
    }
    const double common = shift + 4 + sum_factor(n) + 3 + 5 * double(1 + n / 128);
    for (int64_t j = 0; j < n; ++j)
      p_bound[j] = p[j] * (score_bound[j] + std::abs(score[j] - m) + common) + kFlushed;
    lse.add(row_at, m + std::log(total), common + std::abs(m) + 3 * std::log(total) + 2);

    // y = p v, then z = y - g c v.
    Numbers y(D), y_bound(D);
    for (int64_t d = 0; d < D; ++d) {
      double magnitude = 0;
      for (int64_t j = 0; j < n; ++j) {
        const double v_jd = v[at_key(b, keys[j], kv) + d];
        y[d] += p[j] * v_jd;
        magnitude += p[j] * std::abs(v_jd);
        y_bound[d] += p_bound[j] * std::abs(v_jd);
      }
      y_bound[d] += (sum_factor(n) + 2) * magnitude;
    }
    const bool projected = s.xsa && own >= 0;
    const double* v_i = projected ? &v[at_key(b, own, kv)] : nullptr;
    const double g = gate[h];
    double vv = 0, den = 0, quotient = 0, quotient_bound = 0, u = 0, dzv = 0;
    if (projected) {
      vv = dot(v_i, v_i, D);
      den = std::max(vv, s.floor) + s.eps;
      dzv = dot(dz_i, v_i, D);
      if (den != 0) {
        quotient = dot(y.data(), v_i, D) / den;
        u = dzv / den;
        for (int64_t d = 0; d < D; ++d) quotient_bound += y_bound[d] * std::abs(v_i[d]) / den;
        quotient_bound += 2 * std::abs(quotient);
      }
      c.add(row_at, quotient, quotient_bound);
    }
    Numbers dy(D), dy_bound(D), z_bound(D);
    double delta = 0, delta_bound = 0;
    for (int64_t d = 0; d < D; ++d) {
      const double v_id = projected ? v_i[d] : 0, z_id = y[d] - g * quotient * v_id;
      z_bound[d] = y_bound[d] + std::abs(z_id) +
                   std::abs(g * v_id) * (quotient_bound + 2 * std::abs(quotient));
      z.add(iq + d, z_id, z_bound[d]);
      dy[d] = dz_i[d] - g * u * v_id;
      dy_bound[d] = 3 * std::abs(g * u * v_id) + std::abs(dy[d]);
      delta += dz_i[d] * z_id;
      delta_bound += std::abs(dz_i[d]) * z_bound[d];
    }
    delta_bound += std::abs(delta);
    if (s.mask)  // plain ops take it from the weights: sum_j p_j dy.v_j
      for (int64_t j = 0; j < n; ++j)
        delta_bound +=
            p[j] * sum_factor(D) * dot_magnitude(dy.data(), &v[at_key(b, keys[j], kv)], D);

    // The sink's gradient: p_sink errs by what lse errs.
    if (s.sink) {
      const double gap = sink_h - lse.value[row_at], p_sink = std::exp(gap);
      const double relative = lse.bound[row_at] + std::abs(gap) + 5 + sum_factor(s.B * s.Tq);
      dsink.add(h, -p_sink * delta, p_sink * (delta_bound + relative * std::abs(delta)));
    }

    // XSA's own gradients.
    if (projected) {
      const double kappa = vv > s.floor ? 1 : 0;
      dgate.add(h, -quotient * dzv, quotient_bound * std::abs(dzv) + 3 * std::abs(quotient * dzv));
      for (int64_t d = 0; d < D; ++d) {
        const double z_id = z.value[iq + d];
        const double rest = std::abs(2 * (kappa - g) * u * v_i[d]);
        dv.add(at_key(b, own, kv) + d,
               -g * (quotient * dz_i[d] + u * y[d] - 2 * kappa * quotient * u * v_i[d]),
               std::abs(g) *
                   (quotient_bound * (std::abs(dy[d]) + rest) + std::abs(quotient) * dy_bound[d] +
                    std::abs(u) * z_bound[d] +
                    (6 + sum_factor(s.Tq)) * (std::abs(quotient * dy[d]) + std::abs(u * z_id) +
                                              rest * std::abs(quotient))));
      }
    }

    // The attention's gradients; here p errs by what lse errs too.
    for (int64_t j = 0; j < n; ++j) {
      const int64_t jk = at_key(b, keys[j], kv);
      const double relative = score_bound[j] + lse.bound[row_at] + std::abs(lse.value[row_at]) +
                              std::abs(score[j] - lse.value[row_at]) + 5;
      const double weight_bound = p[j] * relative + kFlushed;
      const double dp = dot(dy.data(), &v[jk], D);
      double dp_bound = sum_factor(D) * dot_magnitude(dy.data(), &v[jk], D);
      for (int64_t d = 0; d < D; ++d) dp_bound += dy_bound[d] * std::abs(v[jk + d]);
      const double ds = p[j] * (dp - delta);
      const double ds_bound =
          weight_bound * std::abs(dp - delta) +
          p[j] * (dp_bound + delta_bound + 2 * std::abs(dp) + 2 * std::abs(delta));
      if (s.mask) dmask.add(row_at * s.Tk + keys[j], ds, ds_bound);
      const double by_keys = sum_factor(n) + 3, queries = sum_factor(s.Tq * s.H / s.Hkv) + 3;
      for (int64_t d = 0; d < D; ++d) {
        const double k_jd = scale * k[jk + d], q_id = scale * q_i[d];
        dq.add(iq + d, ds * k_jd, (ds_bound + by_keys * std::abs(ds)) * std::abs(k_jd));
        dk.add(jk + d, ds * q_id, (ds_bound + queries * std::abs(ds)) * std::abs(q_id));
        dv.add(jk + d, p[j] * dy[d],
               (weight_bound + p[j] * queries) * std::abs(dy[d]) + p[j] * dy_bound[d]);
      }
    }
  }
};

}  // namespace reference
