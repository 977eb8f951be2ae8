// Anomaly mode: who made the first NaN or infinity, forward and backward, and which line called it.
#include "autograd/anomaly.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <limits>
#include <thread>

#include "autograd/gradcheck.h"
#include "tensor/allocator.h"

using namespace pellucid;

using Values = std::vector<double>;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <class F>
static std::string error_of(F f) {
  try {
    f();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}
// Without the lines that follow the first.
template <class F>
static std::string first_line(F f) {
  const std::string text = error_of(f);
  return text.substr(0, text.find('\n'));
}
static Tensor leaf(const Values& x) {
  return from_vector(x, {static_cast<int64_t>(x.size())}, kFloat64).set_requires_grad(true);
}

// Where a marked line of this file is: "anomaly_test.cpp:40".
static std::string here(int line) { return "anomaly_test.cpp:" + std::to_string(line); }

static int log_line = 0;
[[gnu::noinline]] static Tensor log_of(const Tensor& x) {
  log_line = __LINE__ + 1;
  Tensor y = log(x);
  return y;
}
static bool possible() {
  return std::system("command -v addr2line >/dev/null 2>&1 || command -v atos >/dev/null 2>&1") ==
         0;
}

TEST_CASE("forward: op, value, element, shapes, and the line of this file" *
          doctest::skip(!possible()) * doctest::description("needs addr2line or atos")) {
  const Tensor x = from_vector(Values{1, 2, 3, 4, 0, 6}, {2, 3}, kFloat64);
  const AnomalyGuard guard;
  const std::string text = error_of([&] { log_of(x); });
  INFO(text);
  CHECK(text.rfind("log made -inf at (1, 1) of its result of shape (2, 3), from inputs of shape "
                   "(2, 3) without\n  at ",
                   0) == 0);
  CHECK(text.find(here(log_line) + ", in ") != std::string::npos);
  CHECK(text.find("kernels/") == std::string::npos);
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
  const int line = __LINE__ + 1;
  const std::string sugar = error_of([&] { x / 0.0; });  // through an inline operator of ops.h
  INFO(sugar);
  CHECK(sugar.find(here(line)) != std::string::npos);
}

TEST_CASE("backward: the line is the one that called the op" * doctest::skip(!possible()) *
          doctest::description("needs addr2line or atos")) {
  const AnomalyGuard guard;
  const Tensor x = leaf({4, 0});
  const int line = __LINE__ + 1;
  const Tensor y = sqrt(x);
  const std::string text = error_of([&] { sum(y).backward(); });
  INFO(text);
  CHECK(text.rfind("the backward of sqrt made inf at (1) of the gradient of its input 0 of shape "
                   "(2), from a gradient of shape (2) without; the op was called\n  at ",
                   0) == 0);
  CHECK(text.find(here(line)) != std::string::npos);
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
}

TEST_CASE("a backward whose forward was not watched says how to see more") {
  const Tensor x = leaf({4, 0}), y = sqrt(x);
  const AnomalyGuard guard;
  CHECK(error_of([&] { sum(y).backward(); }) ==
        "the backward of sqrt made inf at (1) of the gradient of its input 0 of shape (2), from a "
        "gradient of shape (2) without; to see who called the op, let the AnomalyGuard begin "
        "before it");
}

TEST_CASE("without a symboliser the message says what is missing") {
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nowhere", 1);
  const AnomalyGuard guard;
  const std::string text = error_of([] { log_of(zeros({1})); });
  setenv("PATH", path.c_str(), 1);
  INFO(text);
  CHECK(text.rfind("log made -inf at (0) of its result of shape (1), from inputs of shape (1) "
                   "without\n",
                   0) == 0);
  CHECK(text.find("compile it with -g1 and install addr2line") != std::string::npos);
}

TEST_CASE("what was there before was not made: the first op is named, and only it") {
  const AnomalyGuard guard;
  const Tensor a = from_vector(Values{1, kInf}, {2}), b = from_vector(Values{1, kNaN}, {2});
  CHECK(error_of([&] { a * 2.0 + 1.0; }) == "no error");
  CHECK(error_of([&] { b / 0.0; }) == "no error");
  CHECK(error_of([&] { exp(a); }) == "no error");
  CHECK(first_line([&] { a - a; }) ==
        "sub made NaN at (1) of its result of shape (2), from inputs of shape (2) (2) without");
  // A mask of -inf, as attention has, is a constant.
  const Tensor mask = from_vector(Values{1, 0}, {2}, kBool);
  const auto scores = [&] { return where(mask, leaf({1, 2}), full({}, -kInf, kFloat64)); };
  CHECK(error_of([&] { sum(softmax(scores())).backward(); }) == "no error");
  CHECK(error_of([&] {
          sum(softmax(scores() * 1.0) * from_vector(Values{3, 4}, {2}, kFloat64)).backward();
        }) == "no error");
}

TEST_CASE("NaN alone; off inside; off again outside; each thread's own") {
  const Tensor zero = zeros({1});
  CHECK(error_of([&] { log(zero); }) == "no error");
  {
    const AnomalyGuard nan_only(Anomaly::kNan);
    CHECK(error_of([&] { log(zero); }) == "no error");
    CHECK(first_line([&] { zero / zero; }).rfind("div made NaN at (0)", 0) == 0);
    {
      const AnomalyGuard off(Anomaly::kOff);
      CHECK(error_of([&] { zero / zero; }) == "no error");
    }
    CHECK(first_line([&] { zero / zero; }).rfind("div made NaN at (0)", 0) == 0);
    std::string elsewhere;
    std::thread([&] { elsewhere = error_of([&] { zero / zero; }); }).join();
    CHECK(elsewhere == "no error");
  }
  CHECK(error_of([&] { zero / zero; }) == "no error");
}

TEST_CASE("in place: judged by what was there before it was written") {
  const AnomalyGuard guard;
  CHECK(first_line([] {
          mul_(full({2}, 1e30), 1e30);
        }).rfind("mul_ made inf at (0) of its result of shape (2)", 0) == 0);
  const Tensor had = from_vector(Values{1, kInf}, {2});
  CHECK(error_of([&] { mul_(had, 2); }) == "no error");
  CHECK(first_line([] { add_(full({2}, 3e38), full({2}, 3e38)); }).rfind("add_ made inf", 0) == 0);
}

TEST_CASE("no gradient, create_graph and second order: the op that the user called is named") {
  const AnomalyGuard guard;
  {
    const NoGradGuard no_grad;
    CHECK(first_line([] { log(zeros({})); }) ==
          "log made -inf at () of its result of shape (), from inputs of shape () without");
  }
  const Tensor x = leaf({0});
  const Tensor root = sqrt(x);
  CHECK(first_line([&] {
          grad(root, {x}, {}, {.create_graph = true});
        }).rfind("the backward of sqrt made inf at (0)", 0) == 0);
  // The first derivative, 3/2 sqrt(x), is finite at 0; the second is not.
  const Tensor y = x * sqrt(x);
  const AnomalyGuard off(Anomaly::kOff);
  const Tensor dx = grad(exp(y), {y}, {}, {.create_graph = true})[0];
  CHECK(dx.item() == 1);
}

TEST_CASE("traces go with their nodes") {
  const int64_t nodes = Node::alive, blocks = memory_stats().blocks_in_use;
  {
    const AnomalyGuard guard;
    const Tensor x = leaf({1, 2});
    for (int i = 0; i < 3; ++i) sum(exp(x) * x).backward();
  }
  CHECK(Node::alive == nodes);
  CHECK(memory_stats().blocks_in_use == blocks);
}
