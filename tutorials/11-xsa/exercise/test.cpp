// The test of exercise 11, first part: plain::xsa and plain::xsa_backward on small cases.
#include "autograd/ops.h"
#include "tutorials/11-xsa/rows.h"

namespace pellucid::course {

namespace {

Tensor tensor_of(const Numbers& x, const Shape& shape) { return from_vector(x, shape, kFloat64); }

struct Given {
  Rows rows;
  bool gated = false;
  XsaOptions options = {};
};

std::string code_of(const Given& g, const std::string& call) {
  const Rows& r = g.rows;
  std::ostringstream code;
  const auto one = [&](const char* name, const Numbers& x, int64_t heads) {
    code << "Tensor " << name << " = from_vector(std::vector<double>" << braces(x) << ", {" << r.N
         << ", " << heads << ", " << r.D << "}, kFloat64);\n";
  };
  one("y", r.y, r.H), one("v", r.v, r.Hkv), one("dz", r.dz, r.H);
  if (g.gated)
    code << "Tensor gate = from_vector(std::vector<double>" << braces(r.gate) << ", {" << r.H
         << "}, kFloat64);\n";
  else
    code << "Tensor gate;\n";
  const char* kinds[] = {"kExact", "kAddEps", "kClampNorm"};
  code << "XsaOptions options{XsaDenominator::" << kinds[int(g.options.denominator)] << ", "
       << g.options.eps << "};\n"
       << call;
  return code.str();
}

struct Got {
  Numbers z, dy, dv, dgate;
};

void compare(const char* what, const Tensor& got, const Numbers& wanted, const Shape& shape) {
  if (!got.defined()) fail_case(std::string(what) + " is undefined");
  std::ostringstream sizes;
  sizes << what << " has shape " << got.shape() << ", not " << shape;
  if (got.shape() != shape) fail_case(sizes.str());
  if (!same(got.to_vector(), wanted))
    fail_case(std::string(what) + " is " + braces(got.to_vector()) + "\n" + what + " should be " +
              braces(wanted));
}

enum Part { kZ = 1, kDy = 2, kDv = 4, kDgate = 8 };
void check(const Given& g, int parts) {
  const Rows& r = g.rows;
  const Shape heads{r.N, r.H, r.D}, shared{r.N, r.Hkv, r.D};
  const Tensor y = tensor_of(r.y, heads), v = tensor_of(r.v, shared), dz = tensor_of(r.dz, heads);
  const Tensor gate = g.gated ? tensor_of(r.gate, {r.H}) : Tensor();
  const Expected e = expected(r);
  const NoGradGuard no_grad;
  if (parts & kZ) {
    calling(code_of(g, "plain::xsa(y, v, gate, options)"));
    compare("z", plain::xsa(y, v, gate, g.options), e.z, heads);
  }
  if (!(parts & (kDy | kDv | kDgate))) return;
  calling(code_of(g, "plain::xsa_backward(dz, y, v, gate, options)"));
  const TensorList dx = plain::xsa_backward(dz, y, v, gate, g.options);
  if (dx.size() != 3) fail_case("it has to return three tensors");
  if (parts & kDy) compare("dy", dx[0], e.dy, heads);
  if (parts & kDv) compare("dv", dx[1], e.dv, shared);
  if (parts & kDgate) compare("dgate", dx[2], e.dgate, {r.H});
  if (!g.gated && dx[2].defined()) fail_case("dgate has to be Tensor()");
}

Rows some_rows(Random& random, int64_t H, int64_t Hkv) {
  return random_rows(random, random.whole(1, 3), H, Hkv, random.whole(1, 5));
}
void several(Random& random, int parts) {
  for (int i = 0; i < 20; ++i) {
    const int64_t H = random.whole(1, 3);
    check({some_rows(random, H, H)}, parts);
  }
}

void forward(Random& random) { several(random, kZ); }
void grad_y(Random& random) { several(random, kDy); }
void grad_v(Random& random) { several(random, kDv); }

void zero_value(Random& random) {
  for (const int parts : {+kZ, kDy | kDv}) {
    Rows r = random_rows(random, 2, 2, 2, 3);
    for (std::size_t d = 3; d < 6; ++d) r.v[d] = 0;
    check({r}, parts);
  }
}

void groups(Random& random) {
  for (int i = 0; i < 20; ++i) {
    const int64_t Hkv = random.whole(1, 3), G = random.whole(2, 3);
    check({some_rows(random, Hkv * G, Hkv)}, kZ | kDy | kDv);
  }
}

void gate(Random& random) {
  for (int i = 0; i < 20; ++i) {
    const int64_t H = random.whole(1, 3);
    Rows r = some_rows(random, H, H);
    r.gate = tenths(random, H);
    check({r, true}, kZ | kDy | kDv | kDgate);
  }
}

void denominators(Random& random) {
  for (int i = 0; i < 20; ++i) {
    Rows added = some_rows(random, 2, 2), clamped = some_rows(random, 2, 2);
    added.eps = 0.5;
    check({added, false, {XsaDenominator::kAddEps, 0.5}}, kZ | kDy | kDv);
    // Some rows are longer than 2, some are shorter.
    for (std::size_t d = 0; d < std::size_t(clamped.D); ++d) clamped.v[d] /= 10;
    clamped.floor = 4;
    check({clamped, false, {XsaDenominator::kClampNorm, 2}}, kZ | kDy | kDv);
  }
}

}  // namespace

const std::vector<Check> kChecks = {{"forward", forward},
                                    {"zero_value", zero_value},
                                    {"grad_y", grad_y},
                                    {"grad_v", grad_v},
                                    {"groups", groups},
                                    {"gate", gate},
                                    {"denominators", denominators}};

}  // namespace pellucid::course
