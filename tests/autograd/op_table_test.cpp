// Walks the table of ops (op_table.h): each row through every check. PELLUCID_OP=NAME in the
// environment walks the rows of one op.
#include "op_table.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "kernels/thread_pool.h"
#include "tensor/allocator.h"

using namespace pellucid;

// Finite differences cost 4 calls an element, second order far more: beyond these sizes a sample
// gets the other checks only. The long cases take larger ones.
constexpr int64_t kDifferences = 300, kSecondOrder = 100, kSecondOrderLong = 300;

// ---- Inputs in every layout.

enum Layout { kContiguous, kTransposed, kStepTwo, kOffset, kOddOnes };
constexpr Layout kLayouts[] = {kContiguous, kTransposed, kStepTwo, kOffset, kOddOnes};
static const char* const kLayoutNames[] = {"contiguous", "transposed", "step 2", "offset",
                                           "odd ones"};

static std::vector<double> numbers_of(const Input& input, uint64_t seed) {
  std::vector<double> x = random_leaf(input.shape, seed).to_vector();  // in [-1, 1)
  for (double& v : x) {
    v = input.low + (v + 1) / 2 * (input.high - input.low);
    if (input.map) v = input.map(v);
    v = static_cast<float>(v);  // float32 and float64 runs start from the same numbers
  }
  return x;
}

static void write(const Tensor& x, int64_t element, double value) {
  int64_t at = 0;
  for (int d = x.dim() - 1; d >= 0; --d)
    at += element % x.size(d) * x.stride(d), element /= x.size(d);
  if (x.dtype() == kFloat32)
    static_cast<float*>(x.data())[at] = static_cast<float>(value);
  else
    static_cast<double*>(x.data())[at] = value;
}

// A leaf of the given layout. What lies between its elements is NaN.
static Tensor laid_out(const std::vector<double>& values, const Shape& shape, Layout layout,
                       DType dtype) {
  Shape strides = row_major(shape);
  int64_t offset = layout == kOffset ? 3 : 0;
  if (layout == kTransposed) {
    for (int64_t d = 0, stride = 1; d < shape.dim(); stride *= shape[static_cast<int>(d++)])
      strides[static_cast<int>(d)] = stride;
  }
  if (layout == kStepTwo) {
    for (int d = 0; d < shape.dim(); ++d) strides[d] *= 2;
    offset = 1;
  }
  if (layout == kOddOnes)
    for (int d = 0; d < shape.dim(); ++d)
      if (shape[d] == 1) strides[d] = 1 + 2 * shape.numel();
  const Tensor base = full({2 * shape.numel() + 8}, std::nan(""), dtype);
  const Tensor x = alias(base, shape, strides, offset);
  for (int64_t i = 0; i < shape.numel(); ++i) write(x, i, values[static_cast<std::size_t>(i)]);
  return x.set_requires_grad(true);
}

// Each input in another layout: the first in kLayouts[turn], and so on around.
static TensorList mixed_leaves(const Sample& sample, std::size_t turn) {
  TensorList x;
  for (std::size_t i = 0; i < sample.size(); ++i)
    x.push_back(laid_out(numbers_of(sample[i], i + 1), sample[i].shape,
                         kLayouts[(i + turn) % std::size(kLayouts)], kFloat64));
  return x;
}

static bool has_size_one(const Sample& sample) {
  for (const Input& input : sample)
    for (int d = 0; d < input.shape.dim(); ++d)
      if (input.shape[d] == 1) return true;
  return false;
}

static TensorList leaves(const Sample& sample, Layout layout, DType dtype) {
  TensorList x;
  for (std::size_t i = 0; i < sample.size(); ++i)
    x.push_back(laid_out(numbers_of(sample[i], i + 1), sample[i].shape, layout, dtype));
  return x;
}

// May this input be repeated along its first dimension? (Not a row, which would become constant.)
static bool expandable(const Input& input) {
  return input.shape.dim() >= 2 && input.shape[0] > 1 && input.shape.numel() > 0;
}
static Input without_repeat(Input input) {
  if (expandable(input)) input.shape[0] = 1;
  return input;
}

static int64_t elements(const Sample& sample) {
  int64_t n = 0;
  for (const Input& input : sample) n += input.shape.numel();
  return n;
}

// ---- The walk.

static std::string op_of(const OpRow& row) { return row.name.substr(0, row.name.find(' ')); }

// Calls check(row, sample) for each sample of each row; an exception fails that sample only.
template <class Check>
static void for_each_sample(Check check) {
  const char* only = std::getenv("PELLUCID_OP");
  for (const OpRow& row : all_rows()) {
    if (only && op_of(row) != only) continue;
    for (std::size_t s = 0; s < row.samples.size(); ++s) {
      INFO("row ", row.name, ", sample ", s);
      try {
        check(row, row.samples[s]);
      } catch (const std::exception& error) {
        FAIL_CHECK(std::string(error.what()));
      }
    }
  }
}

static void figure(const char* what, int64_t value) {
  std::printf("FIGURE | %s | %lld\n", what, static_cast<long long>(value));
}

struct Run {
  Tensor y;
  TensorList dx;
};

static Tensor cotangent(const Tensor& y, Layout layout = kContiguous) {
  return laid_out(numbers_of(in(y.shape()), 77), y.shape(), layout, y.dtype()).detach();
}

static Run run(const OpRow& row, const TensorList& x, Layout layout_of_dy = kContiguous) {
  Run r{row.op(x), {}};
  if (row.no_gradient.empty())
    r.dx = r.dx = grad(r.y, x, cotangent(r.y, layout_of_dy), {.allow_unused = true});
  return r;
}

static bool same_bytes(const Tensor& a, const Tensor& b) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  const std::vector<double> p = a.to_vector(), q = b.to_vector();
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         (p.empty() || std::memcmp(p.data(), q.data(), p.size() * sizeof(double)) == 0);
}

static void check_same(const char* what, const Run& a, const Run& b) {
  CHECK_MESSAGE(same_bytes(a.y, b.y), std::string(what), ": y has other bytes");
  for (std::size_t i = 0; i < a.dx.size(); ++i)
    CHECK_MESSAGE(same_bytes(a.dx[i], b.dx[i]), std::string(what), ": the gradient of input ", i,
                  " has other bytes");
}

// ---- Against finite differences.

TEST_CASE("gradcheck: every row, every sample, every layout") {
  int64_t cases = 0, compared = 0;
  std::map<std::string, std::set<std::size_t>> inputs, moved;  // with a derivative other than 0
  for_each_sample([&](const OpRow& row, const Sample& sample) {
    if (!row.no_gradient.empty()) {
      const Tensor y = row.op(leaves(sample, kContiguous, kFloat64));
      CHECK_MESSAGE(!y.requires_grad(), "the row says that there is no gradient");
      return;
    }
    if (elements(sample) > kDifferences) return;
    const auto check = [&](const std::function<Tensor(L)>& f, const TensorList& x,
                           const char* what) {
      const GradcheckResult r = gradcheck(f, x, {.refuse_zero = false});
      CHECK_MESSAGE(r.passed, std::string(what), ": ", r.message());
      CHECK_MESSAGE(r.kinks == 0, std::string(what), ": ", r.message());
      ++cases, compared += r.elements;
      const auto& zero = r.zero_inputs;
      for (std::size_t i = 0; i < x.size(); ++i) {
        inputs[op_of(row)].insert(i);
        if (x[i].numel() > 0 && x[i].requires_grad() &&
            std::find(zero.begin(), zero.end(), i) == zero.end())
          moved[op_of(row)].insert(i);
      }
    };
    for (Layout layout : kLayouts)
      if (layout != kOddOnes || has_size_one(sample))
        check(row.op, leaves(sample, layout, kFloat64), kLayoutNames[layout]);

    // Several inputs: in different layouts, and each alone while the others are frozen.
    for (std::size_t i = 0; sample.size() > 1 && i < std::size(kLayouts); ++i)
      check(row.op, mixed_leaves(sample, i), "mixed layouts");
    for (std::size_t i = 0; sample.size() > 1 && i < sample.size(); ++i) {
      TensorList x = leaves(sample, kContiguous, kFloat64);
      for (std::size_t k = 0; k < x.size(); ++k)
        if (k != i) x[k] = x[k].detach();
      if (row.op(x).requires_grad()) check(row.op, x, "one input alone");
    }

    // Expanded: the differentiable input is the part that is repeated.
    Sample parts;
    bool any = false;
    for (const Input& input : sample) {
      parts.push_back(without_repeat(input));
      any = any || expandable(input);
    }
    const auto repeated = [&](L x) {
      TensorList whole;
      for (std::size_t i = 0; i < x.size(); ++i) whole.push_back(expand(x[i], sample[i].shape));
      return row.op(whole);
    };
    if (any) check(repeated, leaves(parts, kContiguous, kFloat64), "expanded");
  });
  std::map<std::string, std::string> reasons;
  for (const OpRow& row : all_rows()) reasons[op_of(row)] += row.zero_gradient;
  for (const auto& [op, all] : inputs)
    CHECK_MESSAGE((moved[op] == all) == reasons[op].empty(), "the rows of ", op,
                  ": by some input each derivative is 0: choose other samples or give a reason");
  figure("gradcheck, cases", cases);
  figure("gradcheck, derivatives compared", compared);
}

static void second_order(int64_t limit) {
  int64_t cases = 0, compared = 0;
  std::string row_before;
  for_each_sample([&](const OpRow& row, const Sample& sample) {
    if (!row.no_gradient.empty() || !row.no_second_order.empty()) return;
    const int64_t n = elements(sample);
    const bool first_of_row = row.name != row_before && n <= kDifferences;
    if (n > limit && !first_of_row) return;
    row_before = row.name;
    for (Layout layout : {kContiguous, kTransposed, kStepTwo}) {
      const GradcheckResult r = gradgradcheck(row.op, leaves(sample, layout, kFloat64));
      CHECK_MESSAGE(r.passed, std::string(kLayoutNames[layout]), ": second order: ", r.message());
      ++cases, compared += r.elements;
    }
  });
  figure("second order, cases", cases);
  figure("second order, derivatives compared", compared);
}
TEST_CASE("second order, and create_graph's gradient is the fused one") {
  second_order(kSecondOrder);
}
TEST_CASE("long: second order of larger samples") { second_order(kSecondOrderLong); }

// ---- Against float64.

static int64_t judged = 0;
static double worst_share = 0;

static void judge(const std::string& what, const Tensor& got, const Tensor& wanted, const Tensor& G,
                  double u) {
  REQUIRE_MESSAGE((got.defined() && G.defined()), what, ": no result or no bound");
  REQUIRE_MESSAGE((got.shape() == wanted.shape() && G.shape() == wanted.shape()), what,
                  ": the shapes differ: got ", got.shape(), ", wanted ", wanted.shape(), ", bound ",
                  G.shape());
  const std::vector<double> a = got.to_vector(), b = wanted.to_vector(), g = G.to_vector();
  std::size_t bad = a.size();
  for (std::size_t i = 0; i < a.size(); ++i) {
    ++judged;
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    const double error = std::abs(a[i] - b[i]), allowed = u * g[i] + 0x1p-149;
    if (error <= allowed)
      worst_share = std::max(worst_share, error / allowed);
    else
      bad = i;
  }
  if (bad < a.size()) {
    std::ostringstream text;
    text.precision(12);
    text << what << ", element " << bad << " of " << wanted.shape() << ": " << a[bad] << ", wanted "
         << b[bad] << "; the error is " << std::abs(a[bad] - b[bad]) / (u * g[bad] + 0x1p-149)
         << " times the bound";
    FAIL_CHECK(text.str());
  }
}

TEST_CASE("float32 is within the row's bounds of float64, forward and backward") {
  judged = 0, worst_share = 0;
  for_each_sample([](const OpRow& row, const Sample& sample) {
    if (!row.no_float32.empty()) return;
    const TensorList x32 = leaves(sample, kContiguous, kFloat32),
                     x64 = leaves(sample, kContiguous, kFloat64);
    const Run r32 = run(row, x32), r64 = run(row, x64);
    if (r64.y.dtype() != kFloat64) {  // comparisons, places
      CHECK_MESSAGE(same_bytes(r32.y, r64.y), "float32 and float64 disagree");
      if (row.reference)
        CHECK_MESSAGE(same_bytes(r64.y, row.reference(x64)), "the reference disagrees");
      return;
    }
    CHECK(r32.y.dtype() == kFloat32);
    REQUIRE_MESSAGE(row.y, "the row has no bound for y and no reason for that");
    const Tensor Gy = row.y({row.op, x64, r64.y, {}, {r64.y}}).at(0);
    const Tensor truth = row.reference ? row.reference(x64) : r64.y;
    judge("y in float32", r32.y, truth, Gy, 0x1p-24);
    // 256 roundings instead of 1: sums in double, which cost float32 nothing, cost float64 some.
    judge("y in float64", r64.y, truth, Gy, 0x1p-45);
    if (!row.no_gradient.empty()) return;
    REQUIRE_MESSAGE(row.dx, "the row has no bound for dx and no reason for that");
    const TensorList G = row.dx({row.op, x64, r64.y, cotangent(r64.y), r64.dx});
    for (std::size_t i = 0; i < x64.size(); ++i) {
      CHECK(r32.dx[i].defined() == r64.dx[i].defined());
      if (!r64.dx[i].defined()) continue;
      CHECK(r32.dx[i].dtype() == kFloat32);
      judge("gradient of input " + std::to_string(i), r32.dx[i], r64.dx[i], G.at(i), 0x1p-24);
    }
  });
  figure("float32 against float64, elements", judged);
  std::printf("FIGURE | float32 against float64, largest share of the bound used | %.2f\n",
              worst_share);
}

// ---- The same bytes.

TEST_CASE("another layout of inputs or cotangent gives the same bytes") {
  int64_t cases = 0;
  for_each_sample([&](const OpRow& row, const Sample& sample) {
    if (!row.layout_changes_bits.empty()) return;
    for (const DType dtype : {kFloat32, kFloat64}) {
      const TensorList x = leaves(sample, kContiguous, dtype);
      const Run wanted = run(row, x);
      for (Layout layout : kLayouts) {
        check_same(kLayoutNames[layout], run(row, leaves(sample, layout, dtype)), wanted);
        if (row.no_gradient.empty()) check_same("cotangent", run(row, x, layout), wanted);
        ++cases;
      }
      // Elements that share memory, against a copy of them.
      TensorList shared, copies;
      for (std::size_t i = 0; i < sample.size(); ++i) {
        const Input part = without_repeat(sample[i]);
        const Tensor one =
            laid_out(numbers_of(part, i + 1), part.shape, kContiguous, dtype).detach();
        shared.push_back(alias(expanded(one, sample[i].shape)).set_requires_grad(true));
        copies.push_back(alias(packed(shared[i])).set_requires_grad(true));
      }
      check_same("expanded", run(row, shared), run(row, copies));
    }
  });
  figure("layouts with the same bytes", cases);
}

TEST_CASE("1, 2, 3 and 7 threads give the same bytes") {
  const int before = num_threads();
  for_each_sample([&](const OpRow& row, const Sample& sample) {
    const TensorList x = leaves(sample, kContiguous, kFloat32);
    set_num_threads(1);
    const Run wanted = run(row, x);
    for (const int threads : {2, 3, 7}) {
      set_num_threads(threads);
      check_same("threads", run(row, x), wanted);
    }
  });
  set_num_threads(before);
}

TEST_CASE("a gradient is the same whether others are wanted or not") {
  for_each_sample([](const OpRow& row, const Sample& sample) {
    if (!row.no_gradient.empty() || sample.size() < 2) return;
    const TensorList x = leaves(sample, kContiguous, kFloat64);
    const Run all = run(row, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      TensorList frozen;
      for (std::size_t k = 0; k < x.size(); ++k) frozen.push_back(k == i ? x[k] : x[k].detach());
      const Tensor y = row.op(frozen);
      if (!all.dx[i].defined()) continue;
      CHECK_MESSAGE(same_bytes(grad(y, {x[i]}, cotangent(y))[0], all.dx[i]),
                    "the gradient of input ", i, " alone has other bytes");
    }
  });
}

// ---- What an op may not do.

static bool has_poison(const Tensor& x) {
  if (!x.defined() || x.dtype() != kFloat32) return false;
  for (const float value : x.to_vector<float>()) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    if (bits == kPoison) return true;
  }
  return false;
}

TEST_CASE("an op reads no memory that it has not written, changes no input, and leaks nothing") {
  set_poison(true);
  for_each_sample([](const OpRow& row, const Sample& sample) {
    const int64_t nodes = Node::alive, blocks = memory_stats().blocks_in_use;
    {
      const TensorList x = leaves(sample, kContiguous, kFloat32),
                       before = leaves(sample, kContiguous, kFloat32);
      const Run r = run(row, x);
      CHECK_MESSAGE(!has_poison(r.y), "y holds memory that nobody wrote");
      for (const Tensor& dx : r.dx)
        CHECK_MESSAGE(!has_poison(dx), "a gradient holds memory that nobody wrote");
      for (std::size_t i = 0; i < x.size(); ++i)
        CHECK_MESSAGE(same_bytes(x[i], before[i]), "input ", i, " has changed");
      if (row.no_gradient.empty() && row.no_second_order.empty()) {
        const Tensor y = row.op(x);
        for (const Tensor& dx :
             grad(y, x, cotangent(y), {.create_graph = true, .allow_unused = true}))
          if (dx.defined() && dx.requires_grad()) sum(dx).backward(true);
        const Tensor never_run = row.op(x);
      }
    }
    CHECK_MESSAGE(Node::alive == nodes, "nodes are left");
    CHECK_MESSAGE(memory_stats().blocks_in_use == blocks, "memory is left");
  });
  set_poison(std::getenv("PELLUCID_POISON") != nullptr);
}

TEST_CASE("an op under NoGradGuard records nothing and gives the same bytes") {
  for_each_sample([](const OpRow& row, const Sample& sample) {
    const TensorList x = leaves(sample, kContiguous, kFloat32);
    const Tensor recorded = row.op(x);
    const NoGradGuard no_grad;
    const int64_t nodes = Node::alive;
    const Tensor y = row.op(x);
    CHECK(Node::alive == nodes);
    CHECK(same_bytes(y, recorded));
  });
}

TEST_CASE("each error says exactly what the row promises") {
  int64_t messages = 0;
  for (const OpRow& row : all_rows())
    for (const ErrorSample& sample : row.errors) {
      std::string got = "no error";
      try {
        sample.call();
      } catch (const std::exception& error) {
        got = error.what();
      }
      ++messages;
      CHECK_MESSAGE(got == sample.message, "row ", row.name, ":\n  got    ", got, "\n  wanted ",
                    sample.message);
    }
  figure("op table, error messages", messages);
}

// ---- Nothing is forgotten.

TEST_CASE("every row has an error sample") {
  std::string missing;
  for (const OpRow& row : all_rows())
    if (row.errors.empty()) missing += "\n  " + row.name;
  CHECK_MESSAGE(missing.empty(), "no error sample for:", missing);
}

TEST_CASE("every op of ops.h has a row, and every row an op") {
  std::ifstream file(PELLUCID_SOURCE_DIR "/autograd/ops.h");
  const std::regex declaration(R"(^(?:Tensor|TensorList|void|double) (\w+)\(.*)");
  std::set<std::string> ops, rows;
  bool in_plain = false;
  for (std::string line; std::getline(file, line);) {
    std::smatch found;
    if (line.rfind("namespace plain {", 0) == 0) in_plain = true;
    if (line.rfind("}", 0) == 0) in_plain = false;
    if (!in_plain && std::regex_match(line, found, declaration)) ops.insert(found[1]);
  }
  CHECK(ops.size() >= 40);
  int64_t samples = 0, table = 0;
  for (const OpRow& row : all_rows()) {
    const std::string op = op_of(row);
    rows.insert(op);
    CHECK_MESSAGE(ops.count(op), "no op of ops.h has the name of row ", row.name);
    CHECK_MESSAGE(!row.samples.empty(), "row ", row.name, " has no sample");
    samples += static_cast<int64_t>(row.samples.size()), ++table;
  }
  const char* only = std::getenv("PELLUCID_OP");
  CHECK_MESSAGE((!only || rows.count(only)), "PELLUCID_OP names no row");
  std::string missing;
  for (const std::string& op : ops)
    if (!rows.count(op)) missing += " " + op;
  CHECK_MESSAGE(missing.empty(), "no row for:", missing);
  figure("op table, ops of ops.h", static_cast<int64_t>(ops.size()));
  figure("op table, rows", table);
  figure("op table, samples", samples);
}
