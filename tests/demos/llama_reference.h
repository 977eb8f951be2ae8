// A model in llama2.c's layout: a file of random numbers, and its logits by a forward pass written
// with nothing but double and std::vector.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "autograd/ops.h"
#include "tensor/random.h"

using Row = std::vector<double>;

// y_i = sum_k w[i * step_i + k * step_k] x_k for n rows.
inline Row product(const double* w, const Row& x, std::size_t n, std::size_t step_i,
                   std::size_t step_k) {
  Row y(n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < x.size(); ++k) y[i] += w[i * step_i + k * step_k] * x[k];
  return y;
}
inline Row rows_times(const double* w, const Row& x, std::size_t n) {  // w (n, K)
  return product(w, x, n, x.size(), 1);
}
inline void add(Row& x, const Row& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

// One head of one position: softmax(q.k / sqrt(D)) v over positions 0 .. t.
inline void attend(double* y, const double* q, const std::vector<Row>& keys,
                   const std::vector<Row>& values, std::size_t at, std::size_t D) {
  std::vector<double> p;
  double largest = -INFINITY, total = 0;
  for (const Row& k : keys) {
    double s = 0;
    for (std::size_t d = 0; d < D; ++d) s += q[d] * k[at + d];
    p.push_back(s / std::sqrt(double(D)));
    largest = std::max(largest, p.back());
  }
  for (double& s : p) total += s = std::exp(s - largest);
  for (std::size_t j = 0; j < keys.size(); ++j)
    for (std::size_t d = 0; d < D; ++d) y[d] += p[j] / total * values[j][at + d];
}

struct LlamaSizes {
  int32_t C, hidden, L, H, Hkv, V, T;  // V below 0: an untied head
};

// Logits at every position, from the file's bytes.
inline std::vector<Row> llama_logits(const std::string& bytes, const std::vector<int64_t>& ids) {
  LlamaSizes s{};
  std::memcpy(&s, bytes.data(), sizeof s);
  std::vector<float> numbers((bytes.size() - sizeof s) / sizeof(float));
  std::memcpy(numbers.data(), bytes.data() + sizeof s, numbers.size() * sizeof(float));
  const Row all(numbers.begin(), numbers.end());
  const auto C = std::size_t(s.C), F = std::size_t(s.hidden), L = std::size_t(s.L), D = C / s.H;
  const std::size_t V = std::size_t(std::abs(s.V)), K = s.Hkv * D;
  const double* at = all.data();
  const auto take = [&](std::size_t n) { return std::exchange(at, at + n); };
  const double *wte = take(V * C), *norm1 = take(L * C), *wq = take(L * C * C),
               *wk = take(L * K * C), *wv = take(L * K * C), *wo = take(L * C * C),
               *norm2 = take(L * C), *w1 = take(L * F * C), *w2 = take(L * C * F),
               *w3 = take(L * F * C), *norm = take(C);
  take(s.T * (D / 2) * 2);
  const double* head = s.V < 0 ? take(V * C) : wte;
  CHECK(at == all.data() + all.size());

  const auto rms = [](const Row& x, const double* w) {
    double square = 0;
    for (const double v : x) square += v * v;
    Row y(x);
    for (std::size_t i = 0; i < x.size(); ++i)
      y[i] = x[i] / std::sqrt(square / double(x.size()) + 1e-5) * w[i];
    return y;
  };
  const auto turn = [&](Row& x, std::size_t t) {
    for (std::size_t i = 0; i < x.size(); i += 2) {
      const double angle = double(t) * std::pow(10000.0, -double(i % D) / double(D));
      const double a = x[i], b = x[i + 1];
      x[i] = a * std::cos(angle) - b * std::sin(angle);
      x[i + 1] = a * std::sin(angle) + b * std::cos(angle);
    }
  };
  std::vector<std::vector<Row>> keys(L), values(L);
  std::vector<Row> logits;
  for (std::size_t t = 0; t < ids.size(); ++t) {
    Row x(wte + ids[t] * C, wte + (ids[t] + 1) * C);
    for (std::size_t l = 0; l < L; ++l) {
      Row h = rms(x, norm1 + l * C), q = rows_times(wq + l * C * C, h, C),
          k = rows_times(wk + l * K * C, h, K), y(C);
      turn(q, t), turn(k, t);
      keys[l].push_back(k), values[l].push_back(rows_times(wv + l * K * C, h, K));
      for (std::size_t i = 0; i < std::size_t(s.H); ++i)
        attend(&y[i * D], &q[i * D], keys[l], values[l], i / (s.H / s.Hkv) * D, D);
      add(x, rows_times(wo + l * C * C, y, C));
      h = rms(x, norm2 + l * C);
      Row gate = rows_times(w1 + l * F * C, h, F), up = rows_times(w3 + l * F * C, h, F);
      for (std::size_t i = 0; i < F; ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
      add(x, rows_times(w2 + l * C * F, gate, C));
    }
    logits.push_back(rows_times(head, rms(x, norm), V));
  }
  return logits;
}

// A model of random numbers in llama2.c's layout.
inline std::string llama_file(const LlamaSizes& s, int64_t more = 0) {
  const int64_t D = s.C / s.H, K = s.Hkv * D, V = std::abs(s.V);
  const int64_t n = V * s.C * (s.V < 0 ? 2 : 1) + s.C + s.T * (D / 2) * 2 +
                    s.L * (2 * s.C + 2 * s.C * s.C + 2 * K * s.C + 3 * s.C * s.hidden) + more;
  std::string bytes(reinterpret_cast<const char*>(&s), sizeof s);
  pellucid::Generator rng{.seed = 5};
  for (const double x : (pellucid::randn({n}, rng) * 0.7).to_vector()) {
    const auto number = static_cast<float>(x);
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  return bytes;
}
