// The table of ops, one row an op and set of options. A row drives every check that an op gets:
// gradcheck over layouts, second order, float32 against float64, threads, leaks, error messages
// (tests/autograd/op_table_test.cpp). Each family's rows are in tests/op_rows_FAMILY.cpp.
//
//   {.name = "rms_norm",
//    .op = [](L x) { return rms_norm(x[0], x[1], 1e-5); },
//    .samples = {{in({2, 3, 5}), in({5})}, {in({0, 4}), in({4})}, {in({1, 1}, 0.5, 2), in({1})}},
//    .y = relative(6), .dx = terms(9),
//    .errors = {{[] { rms_norm(ones, w, 1e-5); }, "rms_norm: weight must ..."}}},
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "autograd/gradcheck.h"

namespace pellucid {

using L = const TensorList&;

// A differentiable argument: uniform random numbers in [low, high), then `map` if there is one.
// Choose them away from kinks and poles: gradcheck steps by 0.002 max(1, |x|). A sample with more
// than 300 elements gets no finite differences, but every other check: good for threads and lanes.
struct Input {
  Shape shape;
  double low = -1, high = 1;
  std::function<double(double)> map = nullptr;
};
inline Input in(const Shape& shape, double low = -1, double high = 1,
                std::function<double(double)> map = nullptr) {
  return {shape, low, high, std::move(map)};
}
using Sample = std::vector<Input>;

// What a float32 result is judged by: |float32 - float64| <= 2^-24 G, with G >= 0 for each element
// from the rules of rounding, never from trying. (2^-149 for denormals is added by the test.)
// Both runs start from the same float32 numbers; everything in Call is float64.
struct Call {
  const std::function<Tensor(L)>& op;
  TensorList x;
  Tensor y, dy;       // dy: the cotangent, undefined when y itself is judged
  TensorList result;  // what is judged: {y}, or the gradients of x (undefined for none)
};
using Gauge = std::function<TensorList(const Call&)>;  // G for each tensor of call.result

Gauge exact();             // G = 0: copies, +, -, *, /, sqrt of single elements
Gauge relative(double k);  // G = k |result|; one correct rounding is k = 1, n ulp are k = 2n
Gauge terms(double k);  // G = k times the result for |x| and |dy|: the sum of all |terms| where the
                        // result is a sum of products (sum, matmul, broadcast gradients)
Gauge both(Gauge a, Gauge b);  // the sum of both
// |x|, for a Gauge of your own.
Tensor magnitude(const Tensor& x);

// One input of each shape.
std::vector<Sample> shapes(const std::vector<Shape>& list, double low = -1, double high = 1);
// For references: reduces the dimensions of dims with a loop; f gets the elements of each group, in
// order.
using Fold = std::function<double(const std::vector<double>&)>;
Tensor folded(const Tensor& x, const Dims& dims, bool keepdim, const Fold& f);

struct ErrorSample {
  std::function<void()> call;
  std::string message;  // the whole of what()
};

// How the op meets a NaN or an infinity among its inputs (tests/autograd/lanes_test.cpp).
enum class Lanes {
  kNone,
  kEach,  // element by element: what is at one place changes nothing at another
  kRows,  // row by row: what is in one row changes nothing in another
};

struct OpRow {
  // The op's name in ops.h; after a space, words that tell two rows of one op apart: "slice step".
  std::string name = "";
  // Index tensors, options and generators are made inside, of x's dtype where they are floating;
  // two calls with equal x give equal bytes. An op in place works on a copy: add_(x[0] * 1.0,
  // x[1]).
  std::function<Tensor(L)> op = nullptr;
  std::vector<Sample> samples = {};
  Gauge y = nullptr, dx = nullptr;
  // The same in float64 by other means (plain::NAME, or loops over to_vector()); judged by y with
  // 2^-45 for 2^-24. Without it float32 is compared with the op's own float64 run.
  std::function<Tensor(L)> reference = nullptr;
  std::vector<ErrorSample> errors = {};
  Lanes lanes = Lanes::kNone;
  // For kRows, of n columns: each input that is judged has 3 rows in its first dimension. kEach
  // takes the first sample's ranges in shape (n).
  std::function<Sample(int64_t n)> lane_sample = nullptr;
  // Reasons for leaving a check out; empty where it is made.
  std::string no_gradient = "";          // the result has no history (equal, argmax, adamw_)
  std::string no_second_order = "";      // the gradient is not differentiable
  std::string no_float32 = "";           // no bound is known
  std::string zero_gradient = "";        // by some input it is 0 for all samples
  std::string layout_changes_bits = "";  // another layout is summed in another order
  std::string nan_lost = "";             // a NaN in x need not make y NaN
  std::string no_dtypes = "";            // what the row adds to the op takes no int64 or bool
};

// One a line, so that families are added side by side.
std::vector<OpRow> rows_elementwise();
std::vector<OpRow> rows_choice();
std::vector<OpRow> rows_activation();
std::vector<OpRow> rows_inplace();
std::vector<OpRow> rows_reduce();
std::vector<OpRow> rows_reduce_choices();
std::vector<OpRow> rows_shape();
std::vector<OpRow> rows_join();
std::vector<OpRow> rows_index();
std::vector<OpRow> rows_fused();
std::vector<OpRow> rows_products();
std::vector<OpRow> rows_attention();
std::vector<OpRow> rows_optim();
std::vector<OpRow> rows_conv();
std::vector<OpRow> rows_loss();
std::vector<OpRow> all_rows();

}  // namespace pellucid
