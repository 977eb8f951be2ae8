// Lesson 11: Exclusive Self Attention. Measures the similarity bias on a model that it trains,
// derives XSA's backward pass and checks every step, shows what known mistakes do, and times four
// ways to compute it. Prints what README.md quotes, and writes the figures into the folder that is
// its argument (default: beside the program).
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "autograd/gradcheck.h"
#include "tensor/files.h"
#include "tutorials/11-xsa/mistakes.h"
#include "tutorials/11-xsa/reader.h"
#include "tutorials/draw/svg.h"
#include "tutorials/report/attention_view.h"

using namespace pellucid;
using namespace pellucid::lesson;

namespace {

std::filesystem::path figures;

double largest(const Tensor& x) { return amax(abs(x)).item(); }
double distance(const Tensor& a, const Tensor& b) { return largest(a - b); }

// What should be 0 is a few units of the sixteenth digit, other ones on each machine.
void print(const char* what, double value) {
  if (std::abs(value) < 1e-13)
    std::printf("%-34s 0, but for rounding\n", what);
  else
    std::printf("%-34s %.2f\n", what, value);
}

// ---- the problem ----

void the_problem() {
  std::printf("==== the problem\n");
  nn::GPT model = train_on_stories("sa", 300);
  const auto layers = report::measure_similarity(model, stories_as_ids(40, 2));
  std::printf("layer  cos(y, v)  cos(y, another v)  own weight\n");
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const report::Similarity& s = layers[i].mean;
    std::printf("%5zu  %9.2f  %17.2f  %10.2f\n", i + 1, s.similarity, s.baseline, s.diagonal);
  }
}

// ---- the idea ----

// y from the origin, and its two parts: c v along v, z from there to the tip of y.
void draw_the_idea() {
  Svg svg(420, 290, "y is the sum of c v, along v, and of z, at a right angle to v");
  const auto across = [](double x) { return 60 + 52 * x; };
  const auto up = [](double y) { return 260 - 52 * y; };
  svg.arrow(across(0), up(0), across(2.2), up(4.4), "b");
  svg.arrow(across(0), up(0), across(1), up(2), "plain");
  svg.arrow(across(0), up(0), across(3), up(4), "a");
  svg.arrow(across(2.2), up(4.4), across(3), up(4), "c");
  svg.text(across(1) - 12, up(2) - 6, "v = (1, 2)", "end");
  svg.text(across(2.2) - 12, up(4.4) + 16, "c v = (2.2, 4.4)", "end");
  svg.text(across(2.65), up(4.4), "z = (0.8, -0.4)", "start");
  svg.text(across(2) + 10, up(2.4), "y = (3, 4)", "start");
  write_file_atomically((figures / "projection.svg").string(), svg.str());
}

void the_idea() {
  std::printf("\n==== the idea\n");
  const Tensor y = from_vector(std::vector<double>{3, 4}, {1, 2}, kFloat64);
  const Tensor v = from_vector(std::vector<double>{1, 2}, {1, 2}, kFloat64);
  std::cout << "y.v = " << sum(y * v).item() << ", v.v = " << sum(v * v).item() << "\n";
  const Tensor z = project(y, v);
  std::cout << "z = " << z << "\n";
  print("z.v", sum(z * v).item());
}

// ---- in plain ops ----

void in_plain_ops() {
  std::printf("\n==== in plain ops\n");
  const Tensor y = random_leaf({5, 8}, 1), v = random_leaf({5, 8}, 2), z = project(y, v);
  print("z.v", largest(sum(z * v, -1)));
  print("project(z, v) - z", distance(project(z, v), z));
  print("project(y + 7 v, v) - z", distance(project(y + 7 * v, v), z));
  print("project(y, -3 v) - z", distance(project(y, -3 * v), z));
  print("y.y - (z.z + c c v.v)",
        distance(dot(y, y), dot(z, z) + dot(y, v) * dot(y, v) / dot(v, v)));
  print("the first token: project(v, v)", largest(project(v, v)));
}

// ---- by hand: the row ----

void by_hand() {
  std::printf("\n==== by hand\n");
  const TensorList inputs{random_leaf({4, 3, 8}, 1), random_leaf({4, 3, 8}, 2)};
  const auto row = [](const TensorList& x) { return project_by_hand(x[0], x[1]); };
  const GradcheckResult first = gradcheck(row, inputs), second = gradgradcheck(row, inputs);
  std::printf("gradcheck: %s, %d derivatives\n", first ? "passed" : "failed",
              static_cast<int>(first.elements));
  std::printf("of the second order: %s, %d\n", second ? "passed" : "failed",
              static_cast<int>(second.elements));

  // The tape's own gradient of the plain ops, and ours.
  const Tensor dz = random_leaf({4, 3, 8}, 3).detach();
  const TensorList tape = grad(project(inputs[0], inputs[1]), inputs, dz);
  const TensorList ours = grad(project_by_hand(inputs[0], inputs[1]), inputs, dz);
  print("tape against closed form, dy", distance(tape[0], ours[0]));
  print("tape against closed form, dv", distance(tape[1], ours[1]));
  print("dy.v", largest(dot(ours[0], inputs[1].detach())));
  print("v.dv", largest(dot(ours[1], inputs[1].detach())));
}

// ---- by hand: the softmax ----

// One head of causal attention over T tokens, with all that the derivation speaks of.
struct Head {
  Tensor q, k, v;  // (T, D)
  Tensor s, p, y;  // scores, with -inf in the future, and weights (T, T); y = p v (T, D)
};
Head random_head(int64_t T, int64_t D) {
  Head h{random_leaf({T, D}, 5).detach(),
         random_leaf({T, D}, 6).detach(),
         random_leaf({T, D}, 7).detach(),
         {},
         {},
         {}};
  const Tensor future = triu(ones({T, T}, kFloat64), 1);  // 1 above the diagonal
  h.s = matmul(h.q, transpose(h.k, 0, 1)) * (1 / std::sqrt(static_cast<double>(D)));
  h.s = masked_fill(h.s, greater(future, 0), -INFINITY);  // (T, T)
  h.p = softmax(h.s);                                     // (T, T)
  h.y = matmul(h.p, h.v);                                 // (T, D)
  return h;
}

void through_the_softmax() {
  const Head h = random_head(9, 4);
  const Tensor z = project(h.y, h.v), dz = random_leaf({9, 4}, 8).detach();
  const Tensor dy = project(dz, h.v);                  // the same projection, backwards
  const Tensor dp = matmul(dy, transpose(h.v, 0, 1));  // dP_ij = dy_i . v_j
  print("sum_j p_ij dP_ij - dz.z", distance(sum(h.p * dp, -1, true), dot(dz, z)));
  print("dP_ii", largest(sum(dp * eye(9, kFloat64), -1)));
}

// ---- by hand: the identity ----

void the_identity() {
  const Head h = random_head(9, 4);
  const Tensor z = project(h.y, h.v);
  const Tensor itself = equal(eye(9, kFloat64), 1);  // (T, T)
  const auto diagonal = [&](const Tensor& x) {       // (T, T) -> (T, 1)
    return sum(masked_fill(x, logical_not(itself), 0), -1, true);
  };

  // Strictly causal: the scores without the diagonal. The first token is left with nothing at all.
  const Tensor before = masked_fill(h.s, itself, -INFINITY);          // (T, T)
  const Tensor later = slice(before, 0, 1, 9);                        // (T - 1, T)
  const Tensor lse = logsumexp(later, -1, true);                      // (T - 1, 1)
  const Tensor y_strict = matmul(softmax(later), h.v);                // (T - 1, D)
  const Tensor share = sigmoid(lse - slice(diagonal(h.s), 0, 1, 9));  // (T - 1, 1)
  const Tensor v_later = slice(h.v, 0, 1, 9), z_later = slice(z, 0, 1, 9);
  print("z - sigmoid(lse - s) P y_strict", distance(z_later, share * project(y_strict, v_later)));

  // What it is not.
  const Tensor minus_own = h.y - diagonal(h.p) * h.v;  // (T, D)
  print("z - y_strict", distance(z_later, y_strict));
  print("z - (y - p_ii v)", distance(z_later, slice(minus_own, 0, 1, 9)));
  std::printf("the first token: z = %g, under a masked diagonal %s\n", largest(select(z, 0, 0)),
              any(isnan(matmul(softmax(before), h.v))).item() != 0 ? "NaN" : "a number");
}

// ---- check it ----

void check_it() {
  std::printf("\n==== check it\n");
  std::printf("%-36s %-20s %-6s loss\n", "", "gradcheck", "z.v");
  std::string message;
  for (const Mistake& m : mistakes()) {
    const TensorList inputs{random_leaf({4, 3, 8}, 1), random_leaf({4, 3, 8}, 2)};
    const auto result = gradcheck([&](const TensorList& x) { return m.op(x[0], x[1]); }, inputs);
    const double along = largest(dot(m.op(inputs[0], inputs[1]), inputs[1]).detach());
    const std::string wrong =
        std::to_string(result.wrong) + " of " + std::to_string(result.elements) + " wrong";
    std::printf("%-36s %-20s %-6s %.2f\n", m.name, result ? "passes" : wrong.c_str(),
                along < 1e-13 ? "0" : "not 0", train_reader(m.op, 400));
    message = result.message();
  }
  std::cout << "\nof the last one gradcheck says:" << message.substr(message.rfind(';') + 1)
            << "\n";
}

// ---- check it: variants ----

void check_variants() {
  const auto verdict = [](const GradcheckResult& r) { return r ? "passes" : "fails"; };
  const TensorList tiny{random_leaf({4, 2, 8}, 1), off_the_tape([] {
                          return random_leaf({4, 2, 8}, 2) * 0.1;
                        })};
  tiny[1].set_requires_grad(true);
  const auto clamped = [](const TensorList& x) { return clamped_with_the_term(x[0], x[1]); };
  std::printf("\n2 c u v below the clamp: gradcheck %s\n", verdict(gradcheck(clamped, tiny)));

  GateBuffer buffer;
  const TensorList gated{random_leaf({4, 2, 8}, 1), random_leaf({4, 2, 8}, 2), random_leaf({2}, 3)};
  const auto with_gate = [&](const TensorList& x) { return buffer(x[0], x[1], x[2]); };
  const char* first = verdict(gradcheck(with_gate, gated));
  std::printf("a buffer never cleared: gradcheck %s, once more: %s\n", first,
              verdict(gradcheck(with_gate, gated)));

  const TensorList groups{random_leaf({4, 4, 8}, 1), random_leaf({4, 2, 8}, 2)};
  const auto shared = [](const TensorList& x) { return wrong_groups(x[0], x[1]); };
  std::printf("heads given to the wrong group: gradcheck %s, away from xsa() by %.1f\n",
              verdict(gradcheck(shared, groups)),
              distance(shared(groups), xsa(groups[0], groups[1])));
}

// ---- make it fast ----

// The median of several runs, in milliseconds.
template <class F>
double milliseconds(const F& f) {
  std::vector<double> times;
  for (int i = 0; i < 9; ++i) {
    const auto start = std::chrono::steady_clock::now();
    f();
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
            .count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void make_it_fast() {
  std::printf("\n==== make it fast\n");
  // Forward and backward of 16 texts of 256 tokens, 6 heads of 64.
  constexpr int64_t B = 16, T = 256, H = 6, D = 64;
  const Tensor y = random_leaf({B, T, H, D}, 1, kFloat32),
               v = random_leaf({B, T, H, D}, 2, kFloat32);
  const Tensor dz = random_leaf({B, T, H, D}, 3, kFloat32).detach();
  Tensor copy = empty_like(dz);
  // At least: read y and v, write z; read dz, y and v, write dy and dv. A copy reads and writes
  // one.
  const double least = 4 * milliseconds([&] { copy_(copy, dz); });
  const auto rung = [&](const char* name, auto op) {
    const double ms = milliseconds([&] { grad(op(y, v), {y, v}, dz); });
    std::printf("%-32s %7.1f ms  %5.1f x the least traffic\n", name, ms, ms / least);
  };
  rung("1. plain ops, the tape's gradient", project);
  rung("2. plain ops, our closed form", project_by_hand);
  rung("3. the row kernel", [](const Tensor& a, const Tensor& b) { return xsa(a, b); });

  const Tensor qkv = random_leaf({B, T, 3 * H * D}, 4, kFloat32), dout = reshape(dz, {B, T, H * D});
  const auto attend = [&](AttentionKind kind) {
    return milliseconds([&] { grad(attention(qkv, {}, H, H, {.kind = kind}), {qkv}, dout); });
  };
  const double sa = attend(AttentionKind::kSA), with = attend(AttentionKind::kXSA);
  std::printf("%-32s %7.1f ms  of attention's %.0f ms: %.3f x SA\n", "4. inside flash attention",
              with - sa, with, with / sa);
}

}  // namespace

int main(int argc, char** argv) {
  figures = argc > 1 ? argv[1] : argv[0] + std::string("_figures");
  std::filesystem::create_directories(figures);
  the_problem();
  draw_the_idea();
  the_idea();
  in_plain_ops();
  by_hand();
  through_the_softmax();
  the_identity();
  check_it();
  check_variants();
  make_it_fast();
}
