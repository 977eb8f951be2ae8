// Attention's kernels against three plain loops in float64, each number within its rounding bound;
// masks, NaN, neighbours in memory, and threads.
#include <cstdio>

#include "attention_case.h"
#include "kernels/thread_pool.h"

using namespace pellucid;

namespace {

const int64_t kLengths[] = {0, 1, 2, 3, 17, 31, 33, 63, 65, 127, 129, 257, 300};
const int64_t kDims[] = {1,  2,  3,  7,   8,   31,  32,  33,  40,  63,  64, 65,
                         72, 80, 96, 100, 112, 128, 136, 160, 192, 255, 256};

}  // namespace

TEST_CASE("attention: every length, every head dimension, within the rounding bounds") {
  for (int64_t length : kLengths)
    for (int64_t D : {3, 33}) check({1, length, length, 2, 1, D});
  for (int64_t D : kDims) check({1, 17, 17, 1, 1, D});
  for (int64_t D : {1, 64, 80}) check({1, 65, 65, 1, 1, D});
  for (int64_t D = 1; D <= 256; ++D) check({1, 3, 3, 1, 1, D, true, true, 0, 0, true});
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
    check({1, 256, 3, 1, 1, 16, causal});
    check({1, 1, 1, 1, 1, 16, causal});
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
       {Case{1, 300, 300, 2, 1, 33}, Case{3, 140, 140, 4, 2, 16}, Case{1, 600, 600, 1, 1, 8},
        Case{2, 300, 300, 2, 1, 16, true, true, 0, 0, true}}) {
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
      CHECK(same_bytes(one.dsink, many.dsink));
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
        check({1, length, length, 4, 2, D, causal, (length + D) % 3 > 0, 0, 0, length % 2 == 0});
  std::printf("FIGURE | attention, worst error / rounding bound, whole grid, float32 | %.3f\n",
              worst_ratio[1]);
}
