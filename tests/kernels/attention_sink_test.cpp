// Attention with sinks against three plain loops in float64: what a sink is at its limits, and that
// the comparison rejects the likely mistakes.
#include <cstdio>
#include <utility>

#include "attention_case.h"

using namespace pellucid;

TEST_CASE("attention: sinks, of every length, with groups, gates, more queries than keys") {
  const auto with_sink = [](Case s) {
    s.sink = true;
    check(s);
  };
  for (bool causal : {true, false})
    for (bool xsa : {true, false}) {
      for (int64_t length : {1, 2, 17, 33, 65, 129})
        with_sink({1, length, length, 4, 2, 7, causal, xsa});
      with_sink({3, 33, 33, 5, 1, 8, causal, xsa});
      with_sink({1, 300, 300, 2, 1, 33, causal, xsa});  // parts: each row counts once
      with_sink({1, 7, 3, 2, 1, 8, causal, xsa});
      with_sink({2, 31, 65, 4, 2, 8, causal, xsa});
      with_sink({1, 2, 0, 2, 1, 8, causal, xsa});
      with_sink({0, 5, 5, 2, 1, 8, causal, xsa});
    }
  with_sink({1, 17, 17, 4, 2, 16, true, true, 16.0, 0});
  std::printf("FIGURE | attention with sinks, worst error / rounding bound, float32 | %.3f\n",
              worst_ratio[1]);
}

TEST_CASE("attention: a sink far above or below the scores neither overflows nor loses them") {
  for (double level : {-1000.0, -80.0, 80.0, 1000.0}) {
    Attention r({1, 33, 33, 2, 1, 8, true, true, 0, 0, true}, 8);
    r.sink.assign(2, level);
    r.run(0.3);
    compare<float>(r, 0.3);
    compare<double>(r, 0.3);
  }
}

TEST_CASE("attention: a sink of -inf is no sink, to the last bit") {
  for (bool causal : {true, false})
    for (const Case& s :
         {Case{2, 140, 140, 4, 2, 33, causal}, Case{1, 7, 3, 2, 1, 8, causal, false}}) {
      Attention r(s, 10);
      Ours<float> without(r), with(r);
      without.run(0.25);
      with.sink.assign(s.H, -INFINITY);
      with.in.s.sink = true;  // asks for dsink
      with.run(0.25);
      CHECK(same_bytes(without.z, with.z));
      CHECK(same_bytes(without.lse, with.lse));
      CHECK(same_bytes(without.c, with.c));
      CHECK(same_bytes(without.dgate, with.dgate));
      CHECK(same_bytes(without.out.data, with.out.data));
      for (int64_t h = 0; h < s.H; ++h) CHECK(with.dsink[h] == 0);
    }
}

TEST_CASE("attention: a sink of +inf or NaN is seen in its head, and a row without a key stays 0") {
  for (double sink : {double(INFINITY), double(NAN)}) {
    Attention r({1, 7, 3, 2, 1, 8, true, true, 0, 0, true}, 1);
    Ours<float> before(r), after(r);
    after.sink[1] = float(sink);
    before.run(0.35), after.run(0.35);
    for (int64_t i = 0; i < 7 * 2 * 8; ++i) {
      if (i < 4 * 2 * 8)
        CHECK(after.z[i] == 0);
      else if (i / 8 % 2 == 0)
        CHECK(after.z[i] == before.z[i]);
      else
        CHECK(std::isnan(after.z[i]));
    }
    CHECK(after.dsink[0] == before.dsink[0]);
    CHECK(std::isnan(after.dsink[1]));
  }
}

TEST_CASE("attention: a query without a key tells its sink nothing, not even a NaN") {
  for (const Case& shape : {Case{1, 7, 3, 2, 1, 8}, Case{1, 7, 0, 2, 1, 8, false}}) {
    Case s = shape;
    s.sink = true;
    Attention r(s, 12);
    Ours<float> before(r), after(r);
    for (int64_t i = 0; i < 4 * 2 * 8; ++i) after.dz[i] = NAN;
    if (s.Tk == 0) after.dz.assign(after.dz.size(), NAN);
    before.run(0.35), after.run(0.35);
    CHECK(same_bytes(before.dsink, after.dsink));
    CHECK(same_bytes(before.out.data, after.out.data));
  }
}

TEST_CASE("attention: the comparison rejects wrong sinks") {
  const double scale = 0.3;
  Attention r({1, 40, 40, 2, 1, 8, true, true, 0, 0, true}, 11);
  r.run(scale);
  const auto rejected = [&](Ours<float>& ours) {
    std::string names;
    const std::array<double, 8> ratios = ratios_of(r, ours);
    for (size_t i = 0; i < ratios.size(); ++i)
      if (ratios[i] > 1) names += std::string(kNames[i]) + " ";
    return names;
  };
  Ours<float> right(r);
  right.run(scale);
  CHECK(rejected(right) == "");

  // Backward recomputes the weights from a log-sum-exp that lacks the sink.
  Ours<float> lacks(r), sinkless(r);
  sinkless.sink.clear();
  sinkless.forward(scale);
  lacks.forward(scale);
  const std::vector<float> lse = std::exchange(lacks.lse, sinkless.lse);
  lacks.backward(scale);
  lacks.lse = lse;
  CHECK(rejected(lacks) == "dq dk dv dsink ");

  // The gradient of the sink has the other sign.
  Ours<float> sign(r);
  sign.run(scale);
  for (float& x : sign.dsink) x = -x;
  CHECK(rejected(sign) == "dsink ");

  // The sink is multiplied by scale, as the scores are.
  Ours<float> scaled(r);
  for (float& x : scaled.sink) x *= float(scale);
  scaled.run(scale);
  CHECK(rejected(scaled) == "z lse c dq dk dv dgate dsink ");

  // The sink's term is exp(sink), where that of a score is exp(s - m): as if the sink were higher
  // by m. At one row it is right, where the largest score is 0.
  Ours<float> unshifted(r);
  for (int64_t h = 0; h < 2; ++h)
    for (int64_t t = 0; t < 40; ++t) {
      double m = -INFINITY;
      for (int64_t j = 0; j <= t; ++j)
        m = std::max(m,
                     scale * reference::dot(&r.q[r.at_query(0, t, h)], &r.k[r.at_key(0, j, 0)], 8));
      Ours<float> row(r);
      row.sink[h] += float(m);
      row.forward(scale);
      unshifted.lse[h * 40 + t] = row.lse[h * 40 + t];
      unshifted.c[h * 40 + t] = row.c[h * 40 + t];
      std::copy_n(&row.z[r.at_query(0, t, h)], 8, &unshifted.z[r.at_query(0, t, h)]);
    }
  unshifted.backward(scale);
  CHECK(rejected(unshifted) == "z lse c dq dk dv dgate dsink ");
}
