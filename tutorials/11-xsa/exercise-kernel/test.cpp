// The test of exercise 11, second part: the row kernels, in double and in float. Every array is as
// large as it must be and no larger, and what is written is NaN before.
#include "kernels/xsa.h"
#include "tutorials/11-xsa/rows.h"

namespace pellucid::course {

namespace {

template <class T>
const char* type_name() {
  return sizeof(T) == sizeof(float) ? "float" : "double";
}

template <class T>
std::string code_of(const Rows& r, bool gated, const std::string& call) {
  std::ostringstream code;
  const auto array = [&](const char* name, const Numbers& x) {
    code << "const " << type_name<T>() << " " << name << "[] = " << braces(x) << ";\n";
  };
  array("y", r.y), array("v", r.v), array("dz", r.dz);
  if (gated) array("gate", r.gate);
  code << call << (gated ? "gate, " : "nullptr, ") << r.N << ", " << r.H << ", " << r.Hkv << ", "
       << r.D << ", " << r.floor << ", " << r.eps << ");";
  return code.str();
}

template <class T>
std::vector<T> as(const Numbers& x) {
  return std::vector<T>(x.begin(), x.end());
}

template <class T>
void compare(const char* what, const std::vector<T>& got, const Numbers& wanted, double bound) {
  const Numbers numbers(got.begin(), got.end());
  if (!same(numbers, wanted, bound))
    fail_case(std::string(what) + " is " + braces(numbers) + "\n" + what + " should be " +
              braces(wanted));
}

enum Part { kZ = 1, kDy = 2, kDv = 4, kDgate = 8 };
constexpr int kAll = kZ | kDy | kDv;

// The parts that are not asked for are null.
template <class T>
void check(const Rows& given, int parts, bool gated = false, double bound = 1e-10) {
  Rows r = given;  // what T makes of the numbers
  for (Numbers* x : {&r.y, &r.v, &r.dz, &r.gate})
    for (double& number : *x) number = double(T(number));
  const auto y = as<T>(r.y), v = as<T>(r.v), dz = as<T>(r.dz), gate = as<T>(r.gate);
  const T* g = gated ? gate.data() : nullptr;
  const Expected e = expected(r);
  const T nan = T(NAN);
  if (parts & kZ) {
    std::vector<T> z(y.size(), nan);
    calling(code_of<T>(r, gated, "cpu::xsa_forward(z, y, v, "));
    cpu::xsa_forward<T>(z.data(), y.data(), v.data(), g, r.N, r.H, r.Hkv, r.D, r.floor, r.eps);
    compare("z", z, e.z, bound);
  }
  if (!(parts & (kDy | kDv | kDgate))) return;
  std::vector<T> dy(y.size(), nan), dv(v.size(), nan), dgate(std::size_t(r.H), nan);
  const auto wanted = [&](int part, std::vector<T>& x) {
    return parts & part ? x.data() : nullptr;
  };
  const std::string call = std::string("cpu::xsa_backward(") +
                           (parts & kDy ? "dy, " : "nullptr, ") +
                           (parts & kDv ? "dv, " : "nullptr, ") +
                           (parts & kDgate ? "dgate, " : "nullptr, ") + "dz, y, v, ";
  calling(code_of<T>(r, gated, call));
  cpu::xsa_backward<T>(wanted(kDy, dy), wanted(kDv, dv), wanted(kDgate, dgate), dz.data(), y.data(),
                       v.data(), g, r.N, r.H, r.Hkv, r.D, r.floor, r.eps);
  if (parts & kDy) compare("dy", dy, e.dy, bound);
  if (parts & kDv) compare("dv", dv, e.dv, bound);
  if (parts & kDgate) compare("dgate", dgate, e.dgate, bound);
}

Rows some_rows(Random& random, int64_t H, int64_t Hkv) {
  return random_rows(random, random.whole(1, 4), H, Hkv, random.whole(1, 9));
}
void several(Random& random, int parts) {
  for (int i = 0; i < 20; ++i) {
    const int64_t H = random.whole(1, 3);
    check<double>(some_rows(random, H, H), parts);
  }
}

void forward(Random& random) { several(random, kZ); }
void grad_y(Random& random) { several(random, kDy); }
void grad_v(Random& random) { several(random, kDv); }

// Float rounds at 6e-8; the first token, y = v, leaves exactly nothing.
void in_float(Random& random) {
  for (int i = 0; i < 20; ++i) check<float>(some_rows(random, 2, 2), kAll, false, 2e-6);
  Rows r = random_rows(random, 3, 2, 2, random.whole(2, 40));
  for (double& x : r.v) x = double(float(x + 1e-3));
  r.y = r.v;
  const auto y = as<float>(r.y);
  std::vector<float> z(y.size(), NAN);
  calling(code_of<float>(r, false, "cpu::xsa_forward(z, y, v, "));
  cpu::xsa_forward<float>(z.data(), y.data(), y.data(), nullptr, r.N, r.H, r.Hkv, r.D, 0, 0);
  for (const float x : z)
    if (x != 0) fail_case("y = v, so c should be exactly 1 and z exactly 0");
}

void groups(Random& random) {
  for (int i = 0; i < 20; ++i) {
    const int64_t Hkv = random.whole(1, 3), G = random.whole(2, 3);
    check<double>(some_rows(random, Hkv * G, Hkv), kAll);
  }
}

void gate(Random& random) {
  for (int i = 0; i < 20; ++i) {
    const int64_t H = random.whole(1, 3);
    Rows r = some_rows(random, H, H);
    r.gate = tenths(random, H);
    check<double>(r, kAll | kDgate, true);
  }
}

void denominators(Random& random) {
  for (int i = 0; i < 20; ++i) {
    Rows added = some_rows(random, 2, 2), clamped = some_rows(random, 2, 2);
    added.eps = 0.5;
    check<double>(added, kAll);
    for (std::size_t d = 0; d < std::size_t(clamped.D); ++d) clamped.v[d] /= 10;
    clamped.floor = 4;
    check<double>(clamped, kAll);
  }
}

// No rows, no value, and each gradient asked for alone.
void corners(Random& random) {
  check<double>(random_rows(random, 0, 2, 2, 3), kAll | kDgate);
  Rows r = random_rows(random, 2, 2, 2, 3);
  for (std::size_t d = 3; d < 6; ++d) r.v[d] = 0;
  check<double>(r, kAll);
  for (const int part : {+kDy, +kDv, +kDgate}) check<double>(random_rows(random, 2, 2, 2, 3), part);
}

}  // namespace

const std::vector<Check> kChecks = {
    {"forward", forward},           {"grad_y", grad_y},  {"grad_v", grad_v},
    {"in_float", in_float},         {"groups", groups},  {"gate", gate},
    {"denominators", denominators}, {"corners", corners}};

}  // namespace pellucid::course
