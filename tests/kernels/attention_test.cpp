// Attention's kernels against three plain loops in float64, each number within its rounding bound;
// masks, NaN, neighbours in memory, and threads.
#include "kernels/attention.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>

#include "attention_reference.h"
#include "kernels/thread_pool.h"

using namespace pellucid;
using reference::Array;
using reference::Attention;
using reference::Case;
using reference::Numbers;

namespace {

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
  std::vector<T> dz, gate, z, lse, c, dgate;

  explicit Ours(const Attention& r) : in(r.s), out(r.s) {
    const auto [q, k, v] = in.views(in.data.data());
    for (size_t i = 0; i < r.q.size(); ++i) element(q, int64_t(i)) = T(r.q[i]);
    for (size_t i = 0; i < r.k.size(); ++i) {
      element(k, int64_t(i)) = T(r.k[i]);
      element(v, int64_t(i)) = T(r.v[i]);
    }
    dz.assign(r.dz.begin(), r.dz.end());
    gate.assign(r.gate.begin(), r.gate.end());
    const T nan = std::numeric_limits<T>::quiet_NaN();
    z.assign(r.q.size() + 1, nan);
    lse.assign(r.lse.value.size() + 1, nan);
    c.assign(lse.size(), nan);
    dgate.assign(r.gate.size() + 1, nan);
  }

  std::array<Strided<T>, 3> gradients() { return out.views(out.data.data()); }

  void run(double scale) {
    const Case& s = in.s;
    const auto [q, k, v] = in.views(static_cast<const T*>(in.data.data()));
    const auto [dq, dk, dv] = out.views(out.data.data());
    T* c_or_null = s.xsa ? c.data() : nullptr;
    cpu::attention_forward<T>(z.data(), lse.data(), c_or_null, q, k, v, gate.data(), s.causal,
                              scale, s.floor, s.eps);
    cpu::attention_backward<T>(dq, dk, dv, s.xsa ? dgate.data() : nullptr, dz.data(), z.data(),
                               lse.data(), c_or_null, q, k, v, gate.data(), s.causal, scale,
                               s.floor, s.eps);
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

double worst_ratio[2] = {0, 0};  // for double, float

template <class T>
void compare(const Attention& r, double scale) {
  Ours<T> ours(r);
  ours.run(scale);
  const auto [dq, dk, dv] = ours.gradients();
  const auto in_order = [](const std::vector<T>& x) { return [&x](int64_t i) { return x[i]; }; };
  const double ratios[] = {worst<T>(r.z, in_order(ours.z)),
                           worst<T>(r.lse, in_order(ours.lse)),
                           r.s.xsa ? worst<T>(r.c, in_order(ours.c)) : 0,
                           worst<T>(r.dq, [&](int64_t i) { return element(dq, i); }),
                           worst<T>(r.dk, [&](int64_t i) { return element(dk, i); }),
                           worst<T>(r.dv, [&](int64_t i) { return element(dv, i); }),
                           r.s.xsa ? worst<T>(r.dgate, in_order(ours.dgate)) : 0};
  const char* names[] = {"z", "lse", "c", "dq", "dk", "dv", "dgate"};
  for (int i = 0; i < 7; ++i) {
    INFO(std::string(names[i]), " B ", r.s.B, " Tq ", r.s.Tq, " Tk ", r.s.Tk, " H ", r.s.H, " Hkv ",
         r.s.Hkv, " D ", r.s.D, " causal ", r.s.causal, " xsa ", r.s.xsa,
         std::string(sizeof(T) == 4 ? " float" : " double"));
    CHECK(ratios[i] <= 1);
    double& most = worst_ratio[sizeof(T) == 4];
    most = std::max(most, ratios[i]);
  }

  // What lies between and after the heads is untouched, and so is the end of each array.
  int64_t written = 0;
  for (const T& x : ours.out.data) written += !std::isnan(x);
  CHECK(written == int64_t(r.dq.value.size() + 2 * r.dk.value.size()));
  for (const auto* x : {&ours.z, &ours.lse, &ours.c, &ours.dgate}) CHECK(std::isnan(x->back()));
}

void check(const Case& s) {
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

const int64_t kLengths[] = {0, 1, 2, 3, 17, 31, 33, 63, 65, 127, 129, 257, 300};
const int64_t kDims[] = {1, 2, 3, 7, 8, 31, 32, 33, 40, 63, 64, 65, 80, 96, 128, 255, 256};

}  // namespace

TEST_CASE("attention: every length, every head dimension, within the rounding bounds") {
  for (int64_t length : kLengths)
    for (int64_t D : {3, 33}) check({1, length, length, 2, 1, D});
  for (int64_t D : kDims) check({1, 17, 17, 1, 1, D});
  for (int64_t D : {1, 64, 80}) check({1, 65, 65, 1, 1, D});
  std::printf("FIGURE | attention, worst error / rounding bound, float32 | %.3f\n", worst_ratio[1]);
  std::printf("FIGURE | attention, worst error / rounding bound, float64 | %.3f\n", worst_ratio[0]);
}

TEST_CASE("attention: batches, groups of query heads, gates, without the mask, without XSA") {
  for (bool causal : {true, false})
    for (bool xsa : {true, false}) {
      check({2, 33, 33, 5, 1, 8, causal, xsa});
      check({1, 65, 65, 4, 2, 31, causal, xsa});
      check({3, 17, 17, 4, 4, 32, causal, xsa});
    }
  check({1, 17, 17, 4, 2, 16, true, true, 0, 0.5});   // d = v.v + eps
  check({1, 17, 17, 4, 2, 16, true, true, 16.0, 0});  // d = max(v.v, floor): some rows below it
  check({1, 17, 17, 4, 2, 16, true, true, 1e9, 0});   // all rows below it
}

TEST_CASE("attention: fewer queries than keys, and more") {
  for (bool causal : {true, false}) {
    for (int64_t Tq : {0, 1, 2, 31, 65}) check({2, Tq, 65, 4, 2, 8, causal});
    check({1, 7, 3, 2, 1, 8, causal});  // the first four queries see no key if causal
    check({1, 2, 0, 2, 1, 8, causal});  // no keys at all
    check({0, 5, 5, 2, 1, 8, causal});
  }
}

TEST_CASE("attention: a query without a key gives a zero row and zero gradients") {
  Attention r({1, 7, 3, 2, 1, 8}, 1);
  Ours<float> ours(r);
  ours.run(0.35);
  for (int64_t i = 0; i < 4 * 2 * 8; ++i) {
    CHECK(ours.z[i] == 0);
    CHECK(element(std::get<0>(ours.gradients()), i) == 0);
  }
}

TEST_CASE("attention: the first token, exactly") {
  // y_0 = v_0 and c = 1: XSA leaves nothing, and dq_0 = 0. With one token everything is 0.
  for (int64_t D : {1, 7, 33, 64}) {
    Attention r({2, 1, 1, 3, 3, D}, 5);
    r.gate.assign(3, 1.0);
    Ours<float> ours(r);
    ours.run(0.125);
    const auto views = ours.gradients();
    for (size_t i = 0; i < r.q.size(); ++i) {
      CHECK(ours.z[i] == 0);
      for (const auto& gradient : views) CHECK(element(gradient, int64_t(i)) == 0);
    }
    for (int64_t i = 0; i < 6; ++i) CHECK(ours.c[i] == 1);

    Attention longer({1, 40, 40, 1, 1, D}, 6);
    Ours<float> more(longer);
    more.run(0.125);
    for (int64_t d = 0; d < D; ++d) {
      CHECK(more.z[d] == 0);
      CHECK(element(std::get<0>(more.gradients()), d) == 0);
    }
  }
}

TEST_CASE("attention: a value of 0 is projected by nothing") {
  Attention r({1, 20, 20, 2, 1, 8}, 2);
  for (int64_t d = 0; d < 8; ++d) r.v[r.at_key(0, 11, 0) + d] = 0;
  r.run(0.3);
  compare<float>(r, 0.3);
  compare<double>(r, 0.3);
}

TEST_CASE("attention: a value so small that the product of two quotients is no float") {
  Attention r({1, 20, 20, 2, 1, 8}, 2);
  for (int64_t d = 0; d < 8; ++d) r.v[r.at_key(0, 11, 0) + d] *= 0x1p-70;
  for (double& x : r.v) x = double(float(x));
  r.run(0.3);
  compare<float>(r, 0.3);
  compare<double>(r, 0.3);
}

TEST_CASE("attention: values whose squares are no doubles, to the last bit") {
  for (double s : {0x1p-664, 0x1p664}) {
    Attention r({1, 20, 20, 2, 1, 8}, 2);
    Ours<double> a(r);
    for (double& x : r.v) x *= s;
    Ours<double> b(r);
    a.run(0.3), b.run(0.3);
    const auto times = [s](std::vector<double> x) {
      for (double& e : x) e *= s;
      return x;
    };
    CHECK(same_bytes(times(a.z), b.z));
    CHECK(same_bytes(a.c, b.c));
    CHECK(same_bytes(times(a.dgate), b.dgate));
    for (int which : {0, 1, 2}) {
      const auto from = a.gradients()[which], to = b.gradients()[which];
      for (int64_t i = 0; i < from.numel; ++i)
        CHECK(element(from, i) * (which == 2 ? 1 : s) == element(to, i));
    }
  }
}

TEST_CASE("attention: the future has no influence, not even as NaN or infinity") {
  for (double poison : {1e30, double(INFINITY), double(NAN)})
    for (int64_t from : {1, 13, 14, 64, 100, 128, 139}) {
      Attention r({1, 140, 140, 2, 1, 33}, 3);
      Ours<float> before(r);
      before.run(0.2);
      for (int64_t t = from; t < 140; ++t)
        for (int64_t d = 0; d < 33; ++d) {
          r.k[r.at_key(0, t, 0) + d] = poison;
          r.v[r.at_key(0, t, 0) + d] = poison;
          for (int64_t h : {0, 1}) r.q[r.at_query(0, t, h) + d] = poison;
        }
      Ours<float> after(r);
      after.run(0.2);
      INFO("poison ", poison, " from ", from);
      const auto dq0 = std::get<0>(before.gradients());
      const auto dq1 = std::get<0>(after.gradients());
      int64_t different = 0;
      for (int64_t i = 0; i < from * 2 * 33; ++i) {
        different += before.z[i] != after.z[i];
        different += element(dq0, i) != element(dq1, i);
      }
      CHECK(different == 0);
    }
}

TEST_CASE("attention: gradients of earlier queries do not reach later keys, not even as NaN") {
  Attention r({1, 70, 70, 2, 1, 33}, 4);
  Ours<float> before(r), after(r);
  before.run(0.2);
  for (int64_t i = 0; i < 30 * 2 * 33; ++i) after.dz[i] = NAN;
  after.run(0.2);
  for (int which : {1, 2}) {
    const auto a = before.gradients()[which];
    const auto b = after.gradients()[which];
    int64_t different = 0;
    for (int64_t i = 30 * 33; i < 70 * 33; ++i) different += element(a, i) != element(b, i);
    CHECK(different == 0);
    CHECK(std::isnan(element(b, 0)));
  }
}

TEST_CASE("attention: a NaN in sight is kept") {
  Attention r({1, 20, 20, 1, 1, 8}, 7);
  r.v[r.at_key(0, 4, 0)] = NAN;
  Ours<float> ours(r);
  ours.run(0.3);
  for (int64_t t = 0; t < 20; ++t) CHECK(std::isnan(ours.z[t * 8]) == (t >= 4));
}

TEST_CASE("attention: large scores neither overflow nor lose the sum") {
  Attention r({1, 33, 33, 1, 1, 8}, 8);
  for (double& x : r.q) x *= 30;
  for (double& x : r.k) x *= 30;
  r.run(1);
  compare<float>(r, 1);
  compare<double>(r, 1);
}

TEST_CASE("attention: the same bytes for any number of threads") {
  const int before = num_threads();
  for (const Case& s :
       {Case{1, 300, 300, 2, 1, 33}, Case{3, 140, 140, 4, 2, 16}, Case{1, 600, 600, 1, 1, 8}}) {
    Attention r(s, 9);
    set_num_threads(1);
    Ours<float> one(r);
    one.run(0.25);
    for (int threads : {2, 3, 7}) {
      set_num_threads(threads);
      Ours<float> many(r);
      many.run(0.25);
      CHECK(same_bytes(one.z, many.z));
      CHECK(same_bytes(one.lse, many.lse));
      CHECK(same_bytes(one.c, many.c));
      CHECK(same_bytes(one.dgate, many.dgate));
      CHECK(same_bytes(one.out.data, many.out.data));
    }
  }
  set_num_threads(before);
}

TEST_CASE("attention: several blocks of queries and keys, cut among the tasks") {
  check({1, 257, 257, 2, 1, 8});
  check({1, 300, 300, 1, 1, 64});
  check({1, 130, 700, 1, 1, 3, false});
}

TEST_CASE("long: attention, the whole grid") {
  for (int64_t length : kLengths)
    for (int64_t D : kDims)
      for (bool causal : {true, false})
        check({1, length, length, 4, 2, D, causal, (length + D) % 3 > 0});
  std::printf("FIGURE | attention, worst error / rounding bound, whole grid, float32 | %.3f\n",
              worst_ratio[1]);
}
