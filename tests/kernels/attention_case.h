// Attention's kernels run on a case of attention_reference.h, on heads that lie packed side by
// side, and compared with it: each number within its rounding bound.
#pragma once
#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "attention_reference.h"
#include "kernels/attention.h"

namespace pellucid {

using reference::Array;
using reference::Attention;
using reference::Case;

// One packed array (B, T, W + pad): the heads of q, k and v side by side, NaN everywhere else. q
// has its last Tq rows.
template <class T>
struct Packed {
  static constexpr int64_t kPad = 3;
  Case s;
  int64_t W = (s.H + 2 * s.Hkv) * s.D + kPad, rows = std::max(s.Tq, s.Tk) + 1;
  std::vector<T> data = std::vector<T>(s.B * rows * W + 1, std::numeric_limits<T>::quiet_NaN());

  explicit Packed(const Case& shape) : s(shape) {}
  template <class U>
  Strided<U> view(U* base, int64_t first, int64_t heads, int64_t length) const {
    Strided<U> x{};
    x.data = base + first * s.D;
    x.dim = 4;
    x.numel = s.B * length * heads * s.D;
    for (int d = 0; d < 4; ++d) {
      x.sizes[d] = std::array{s.B, length, heads, s.D}[d];
      x.strides[d] = std::array{rows * W, W, s.D, int64_t{1}}[d];
    }
    return x;
  }
  template <class U>
  std::array<Strided<U>, 3> views(U* base) const {
    return {view(base, 0, s.H, s.Tq), view(base, s.H, s.Hkv, s.Tk),
            view(base, s.H + s.Hkv, s.Hkv, s.Tk)};
  }
};

template <class T>
T& element(const Strided<T>& x, int64_t i) {
  int64_t offset = 0;
  for (int d = 3; d >= 0; --d) offset += i % x.sizes[d] * x.strides[d], i /= x.sizes[d];
  return x.data[offset];
}

// The kernels' results for a case.
template <class T>
struct Ours {
  Packed<T> in, out;
  std::vector<T> dz, gate, sink, z, lse, c, dgate, dsink;

  explicit Ours(const Attention& r) : in(r.s), out(r.s) {
    const auto [q, k, v] = in.views(in.data.data());
    for (size_t i = 0; i < r.q.size(); ++i) element(q, int64_t(i)) = T(r.q[i]);
    for (size_t i = 0; i < r.k.size(); ++i) {
      element(k, int64_t(i)) = T(r.k[i]);
      element(v, int64_t(i)) = T(r.v[i]);
    }
    dz.assign(r.dz.begin(), r.dz.end());
    gate.assign(r.gate.begin(), r.gate.end());
    if (in.s.sink) sink.assign(r.sink.begin(), r.sink.end());
    const T nan = std::numeric_limits<T>::quiet_NaN();
    z.assign(r.q.size() + 1, nan);
    lse.assign(r.lse.value.size() + 1, nan);
    c.assign(lse.size(), nan);
    dgate.assign(r.gate.size() + 1, nan);
    dsink.assign(r.gate.size() + 1, nan);
  }

  std::array<Strided<T>, 3> gradients() { return out.views(out.data.data()); }

  void run(double scale) { forward(scale), backward(scale); }

  void forward(double scale) {
    const Case& s = in.s;
    const auto [q, k, v] = in.views(static_cast<const T*>(in.data.data()));
    cpu::attention_forward<T>(z.data(), lse.data(), s.xsa ? c.data() : nullptr, q, k, v,
                              gate.data(), sink.empty() ? nullptr : sink.data(), s.causal, scale,
                              s.floor, s.eps);
  }

  void backward(double scale) {
    const Case& s = in.s;
    const auto [q, k, v] = in.views(static_cast<const T*>(in.data.data()));
    const auto [dq, dk, dv] = gradients();
    cpu::attention_backward<T>(
        dq, dk, dv, s.xsa ? dgate.data() : nullptr, s.sink ? dsink.data() : nullptr, dz.data(),
        z.data(), lse.data(), s.xsa ? c.data() : nullptr, q, k, v, gate.data(),
        sink.empty() ? nullptr : sink.data(), s.causal, scale, s.floor, s.eps);
  }
};

// The largest |ours - wanted| / allowed; infinity for a NaN.
template <class T, class Get>
double worst(const Array& wanted, const Get& get) {
  const double u = std::is_same_v<T, float> ? 0x1p-24 + 0x1p-53 : 0x1p-52;
  double most = 0;
  for (size_t i = 0; i < wanted.value.size(); ++i) {
    const double ours = double(get(int64_t(i))), error = std::abs(ours - wanted.value[i]);
    if (ours == wanted.value[i]) continue;
    const double ratio =
        error / (u * wanted.bound[i] + double(std::numeric_limits<T>::denorm_min()));
    most = std::max(most, std::isnan(ratio) ? INFINITY : ratio);
  }
  return most;
}

constexpr const char* kNames[] = {"z", "lse", "c", "dq", "dk", "dv", "dgate", "dsink"};

// The worst |ours - wanted| / allowed of each of them.
template <class T>
std::array<double, 8> ratios_of(const Attention& r, Ours<T>& ours) {
  const auto [dq, dk, dv] = ours.gradients();
  const auto in_order = [](const std::vector<T>& x) { return [&x](int64_t i) { return x[i]; }; };
  return {worst<T>(r.z, in_order(ours.z)),
          worst<T>(r.lse, in_order(ours.lse)),
          r.s.xsa ? worst<T>(r.c, in_order(ours.c)) : 0,
          worst<T>(r.dq, [&](int64_t i) { return element(dq, i); }),
          worst<T>(r.dk, [&](int64_t i) { return element(dk, i); }),
          worst<T>(r.dv, [&](int64_t i) { return element(dv, i); }),
          r.s.xsa ? worst<T>(r.dgate, in_order(ours.dgate)) : 0,
          r.s.sink ? worst<T>(r.dsink, in_order(ours.dsink)) : 0};
}

inline double worst_ratio[2] = {0, 0};  // for double, float

template <class T>
void compare(const Attention& r, double scale) {
  Ours<T> ours(r);
  ours.run(scale);
  const std::array<double, 8> ratios = ratios_of(r, ours);
  for (size_t i = 0; i < ratios.size(); ++i) {
    INFO(std::string(kNames[i]), " B ", r.s.B, " Tq ", r.s.Tq, " Tk ", r.s.Tk, " H ", r.s.H,
         " Hkv ", r.s.Hkv, " D ", r.s.D, " causal ", r.s.causal, " xsa ", r.s.xsa, " sink ",
         r.s.sink, std::string(sizeof(T) == 4 ? " float" : " double"));
    CHECK(ratios[i] <= 1);
    double& most = worst_ratio[sizeof(T) == 4];
    most = std::max(most, ratios[i]);
  }

  // What lies between and after the heads is untouched, and so is the end of each array.
  int64_t written = 0;
  for (const T& x : ours.out.data) written += !std::isnan(x);
  CHECK(written == int64_t(r.dq.value.size() + 2 * r.dk.value.size()));
  for (const auto* x : {&ours.z, &ours.lse, &ours.c, &ours.dgate, &ours.dsink})
    CHECK(std::isnan(x->back()));
}

inline void check(const Case& s) {
  const double scale = 1 / std::sqrt(double(s.D));
  Attention r(s, uint64_t(s.Tq * 1000 + s.D));
  r.run(scale);
  compare<float>(r, scale);
  compare<double>(r, scale);
}

template <class T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

}  // namespace pellucid
