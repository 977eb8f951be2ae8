// What has gone wrong in programs that compute XSA: each mistake as an op of its own.
#pragma once
#include <functional>
#include <vector>

#include "tutorials/11-xsa/project.h"

namespace pellucid::lesson {

struct Mistake {
  const char* name;
  std::function<Tensor(const Tensor& y, const Tensor& v)> op;
};

// The projection with another backward: dv of (dz, dy, y, v, z, c, u), dy as it should be.
struct Row {
  Tensor dz, dy, y, v, z, c, u;
};
template <class F>
Tensor project_with(const Tensor& y, const Tensor& v, F dv_of) {
  const Tensor z = off_the_tape([&] { return project(y, v); });
  return record(
      "project_with", z, {y, v},
      [y = SavedTensor(y), v = SavedTensor(v), z = SavedTensor(z), dv_of](const Tensor& dz) {
        const Tensor n = dot(v(), v()), u = dot(dz, v()) / n;
        const Row row{dz, dz - u * v(), y(), v(), z(), dot(y(), v()) / n, u};
        return TensorList{row.dy, dv_of(row)};
      });
}

inline std::vector<Mistake> mistakes() {
  const auto with = [](auto dv_of) {
    return [dv_of](const Tensor& y, const Tensor& v) { return project_with(y, v, dv_of); };
  };
  return {
      {"none", project_by_hand},
      {"v over its rms, not over its length",
       [](const Tensor& y, const Tensor& v) {
         const Tensor unit = v * rsqrt(mean(v * v, -1, true));  // its length is sqrt(D), not 1
         return y - dot(y, unit) * unit;
       }},
      {"no gradient for v", with([](const Row& r) { return 0 * r.v; })},
      {"dv with dz.y in place of dz.v", with([](const Row& r) {
         return neg(r.c * r.dz + dot(r.dz, r.y) / dot(r.v, r.v) * r.y - 2 * r.c * r.u * r.v);
       })},
      {"dv without the term of v.v",
       with([](const Row& r) { return neg(r.c * r.dz + r.u * r.y); })},
  };
}

// Below the clamp max(v.v, 1) nothing depends on the length of v, so that 2 c u v has no place.
inline Tensor clamped_with_the_term(const Tensor& y, const Tensor& v) {
  const XsaOptions clamp{XsaDenominator::kClampNorm, 1};
  const Tensor z = off_the_tape([&] { return xsa(y, v, {}, clamp); });
  return record("clamped", z, {y, v}, [y = SavedTensor(y), v = SavedTensor(v)](const Tensor& dz) {
    const Tensor d = maximum(dot(v(), v()), full_like(v(), {}, 1));  // (..., 1)
    const Tensor c = dot(y(), v()) / d, u = dot(dz, v()) / d;
    return TensorList{dz - u * v(), neg(c * dz + u * y() - 2 * c * u * v())};
  });
}

// The gate's gradient is added to a buffer that nobody clears: right once, and never again.
struct GateBuffer {
  Tensor sum;
  Tensor operator()(const Tensor& y, const Tensor& v, const Tensor& gate) {
    const Tensor z = off_the_tape([&] { return xsa(y, v, gate); });
    return record(
        "gated", z, {y, v, gate},
        [this, y = SavedTensor(y), v = SavedTensor(v), gate = SavedTensor(gate)](const Tensor& dz) {
          TensorList dx = plain::xsa_backward(dz, y(), v(), gate(), {});
          sum = sum.defined() ? sum + dx[2] : dx[2];
          return TensorList{dx[0], dx[1], sum};
        });
  }
};

// Head h of y is given value h % Hkv; it belongs to h / (H / Hkv).
inline Tensor wrong_groups(const Tensor& y, const Tensor& v) {
  const int64_t H = y.size(-2), Hkv = v.size(-2);
  TensorList heads;
  for (int64_t h = 0; h < H; ++h)
    heads.push_back(project(select(y, -2, h), select(v, -2, h % Hkv)));
  return stack(heads, -2);  // (..., H, D)
}

}  // namespace pellucid::lesson
