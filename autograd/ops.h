// The catalogue of differentiable ops: one declaration, one line of maths and shapes each.
// "..." is any number of leading dimensions. An argument that may be undefined is Tensor(), or {}.
// Arithmetic wants float32 or float64, sums too: count what is true by sum(astype(x, kFloat32)).
// Shapes, indices and comparisons take every dtype. Operands have one dtype; nothing is converted
// but numbers. What does not fit is a std::invalid_argument that begins with the op's name (only an
// undefined tensor is refused before an op knows of it).
#pragma once
#include "autograd/engine.h"
#include "tensor/random.h"

namespace pellucid {

// Elementwise, broadcasting.
Tensor add(const Tensor& a, const Tensor& b);  // a + b
Tensor sub(const Tensor& a, const Tensor& b);  // a - b
Tensor mul(const Tensor& a, const Tensor& b);  // a b
Tensor div(const Tensor& a, const Tensor& b);  // a / b
Tensor neg(const Tensor& x);                   // -x
Tensor exp(const Tensor& x);                   // e^x
Tensor expm1(const Tensor& x);                 // e^x - 1, right near 0 too
Tensor log(const Tensor& x);                   // natural logarithm
Tensor log1p(const Tensor& x);                 // log(1 + x), right near 0 too
Tensor sqrt(const Tensor& x);                  // square root; its gradient is 0 where dy is 0
Tensor rsqrt(const Tensor& x);                 // 1 / sqrt(x)
Tensor reciprocal(const Tensor& x);            // 1 / x
Tensor sin(const Tensor& x);                   // x in radians
Tensor cos(const Tensor& x);
Tensor tanh(const Tensor& x);  // hyperbolic tangent
Tensor erf(const Tensor& x);   // 2 / sqrt(pi) times the integral of e^(-t^2), 0 to x
// a^b, either may be a number; 1 for b = 0. The gradient for b is 0 where a is 0 and b >= 0.
Tensor pow(const Tensor& a, const Tensor& b);
Tensor abs(const Tensor& x);  // |x|; its gradient at 0 is 0
// min(max(x, low), high), either may be infinite; NaN stays. On a bound the gradient is dy.
Tensor clamp(const Tensor& x, double low, double high);
// The larger, the smaller; NaN if either is. Equal a and b share the gradient, half each.
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);

// Elementwise. Up to where() the result has no history, hence no gradient.
Tensor sign(const Tensor& x);   // -1, 0, 1 or NaN
Tensor floor(const Tensor& x);  // to a whole number below
Tensor ceil(const Tensor& x);   // above
Tensor round(const Tensor& x);  // the nearest, the even one of two
Tensor isnan(const Tensor& x);  // bool, as all below
Tensor isinf(const Tensor& x);
Tensor isfinite(const Tensor& x);  // neither NaN nor infinite
// Of any dtype, broadcasting; with a NaN only not_equal is true. A number is rounded to a's dtype.
Tensor equal(const Tensor& a, const Tensor& b);  // a == b
Tensor equal(const Tensor& a, double b);
Tensor not_equal(const Tensor& a, const Tensor& b);  // a != b
Tensor not_equal(const Tensor& a, double b);
Tensor greater(const Tensor& a, const Tensor& b);  // a > b
Tensor greater(const Tensor& a, double b);
Tensor greater_equal(const Tensor& a, const Tensor& b);  // a >= b
Tensor greater_equal(const Tensor& a, double b);
Tensor less(const Tensor& a, const Tensor& b);  // a < b
Tensor less(const Tensor& a, double b);
Tensor less_equal(const Tensor& a, const Tensor& b);  // a <= b
Tensor less_equal(const Tensor& a, double b);
Tensor logical_and(const Tensor& a, const Tensor& b);  // of bools, broadcasting
Tensor logical_or(const Tensor& a, const Tensor& b);
Tensor logical_xor(const Tensor& a, const Tensor& b);
Tensor logical_not(const Tensor& x);
// condition ? a : b, condition of bools.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);

// In place: x changes, its version goes up, x is returned.
Tensor add_(const Tensor& x, const Tensor& y);   // x <- x + y; y broadcasts to x
Tensor mul_(const Tensor& x, const Tensor& y);   // x <- x y; y broadcasts to x, or is a number
Tensor copy_(const Tensor& x, const Tensor& y);  // x <- y; y broadcasts to x
Tensor fill_(const Tensor& x, double value);     // x <- value
Tensor zero_(const Tensor& x);                   // x <- 0

// Which dimensions: Dims() is all of them, Dims(0), or just 0, is one, {0, -1} are two. Negative
// ones count from the end.
struct Dims {
  Dims() : all(true) {}
  Dims(int dim) : list{dim} {}
  Dims(std::initializer_list<int> dims) : list(dims) {}
  bool all = false;
  std::vector<int> list;
  // Bit d says that dimension d of x is named. One outside x, or named twice, is an error of op.
  unsigned mask(const char* op, const Tensor& x) const;
};
// The dimension that dim names, counted from 0, or an error of op.
int axis(const char* op, int dim, const Tensor& x);

// Reductions. The dimensions go, or stay with size 1 if keepdim.
Tensor sum(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor sum_to(const Tensor& x, const Shape& shape);  // sums what expand repeated
Tensor mean(const Tensor& x, const Dims& dims = {}, bool keepdim = false);  // NaN if of none
Tensor prod(const Tensor& x, const Dims& dims = {}, bool keepdim = false);  // 1 if of none
// sum (x - mean)^2 / (n - correction), x / 0 if n <= correction; and its root (std is a namespace)
Tensor var(const Tensor& x, const Dims& dims = {}, bool keepdim = false, double correction = 1);
Tensor stddev(const Tensor& x, const Dims& dims = {}, bool keepdim = false, double correction = 1);
// (sum |x|^p)^(1/p), p = 1, 2 or inf; its gradient is 0 where it is 0
Tensor norm(const Tensor& x, const Dims& dims = {}, bool keepdim = false, double p = 2);
Tensor logsumexp(const Tensor& x, const Dims& dims = {}, bool keepdim = false);  // log sum e^x
// The largest and the smallest, NaN if there is one. Of equals, amax, amin, max(x) and min(x) give
// each an even share of the gradient, max and min over a dimension all of it to the first.
Tensor amax(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor amin(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor max(const Tensor& x);
Tensor min(const Tensor& x);
Tensor max(const Tensor& x, int dim, bool keepdim = false);
Tensor min(const Tensor& x, int dim, bool keepdim = false);
// Where they are, among the elements that were reduced in row-major order: int64, the first of
// equals, the first NaN.
Tensor argmax(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor argmin(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor all(const Tensor& x, const Dims& dims = {}, bool keepdim = false);  // bool: no x is 0
Tensor any(const Tensor& x, const Dims& dims = {}, bool keepdim = false);  // bool: not all x are 0
Tensor cumsum(const Tensor& x, int dim);                                   // y_i = x_0 + ... + x_i

// Shapes. Negative dimensions count from the end.
Tensor identity(const Tensor& x);                     // x, as a node of its own
Tensor expand(const Tensor& x, const Shape& shape);   // repeats x by broadcasting; a view
Tensor reshape(const Tensor& x, const Shape& shape);  // a view if it can be, else a copy; one -1
Tensor view(const Tensor& x, const Shape& shape);     // a view, or an error; one -1
Tensor transpose(const Tensor& x, int a, int b);      // swaps two dimensions; a view
Tensor permute(const Tensor& x,
               const std::vector<int>& order);  // y.size(d) = x.size(order[d]); a view
Tensor squeeze(const Tensor& x, int dim);       // drops a dimension of size 1; a view
Tensor unsqueeze(const Tensor& x, int dim);     // adds a dimension of size 1; a view
// Elements start, start + step, ... below end of one dimension; a view. Negative ones count from
// the end, kEnd is the end; one outside is an error, not cut to fit.
constexpr int64_t kEnd = INT64_MAX;
Tensor slice(const Tensor& x, int dim, int64_t start, int64_t end, int64_t step = 1);
Tensor select(const Tensor& x, int dim, int64_t index);  // one index of dim, which goes; a view
// The adjoint of slice: zeros of size `size` in dim, with x at start, start + step, ...
Tensor unslice(const Tensor& x, int dim, int64_t size, int64_t start, int64_t step = 1);
Tensor contiguous(const Tensor& x);  // x, or a row-major copy

// Tensors from tensors.
Tensor cat(const TensorList& list, int dim = 0);               // one after another along dim
Tensor stack(const TensorList& list, int dim = 0);             // the same along a new dimension
TensorList split(const Tensor& x, int64_t size, int dim = 0);  // views; the last may be shorter
TensorList chunk(const Tensor& x, int64_t n,
                 int dim = 0);  // split by size / n rounded up: at most n
// Adds `value` around x: a pair {before, after} a dimension, for the last dimensions in their
// order.
Tensor pad(const Tensor& x, const std::vector<std::pair<int64_t, int64_t>>& sizes,
           double value = 0);
Tensor flip(const Tensor& x, const Dims& dims);       // in reverse order
Tensor repeat(const Tensor& x, const Shape& counts);  // x side by side; more counts: in front
Tensor tril(const Tensor& x, int64_t diagonal = 0);   // x_ij where j <= i + diagonal, else 0
Tensor triu(const Tensor& x, int64_t diagonal = 0);   // x_ij where j >= i + diagonal, else 0
Tensor masked_fill(const Tensor& x, const Tensor& mask, double value);  // value where mask, else x

// Products.
Tensor matmul(const Tensor& a, const Tensor& b);  // (..., M, K) (..., K, N) -> (..., M, N)
// x w^T + b: x (..., K), w (N, K), b (N) or undefined -> (..., N)
Tensor linear(const Tensor& x, const Tensor& w, const Tensor& b = {});
Tensor outer(const Tensor& a, const Tensor& b);  // a (M), b (N) -> (M, N): a[i] b[j]

// Windows of images: a size, a step or a margin for height and width; one number is both.
struct Size2d {
  int64_t h, w;
  constexpr Size2d(int64_t both) : h(both), w(both) {}
  constexpr Size2d(int64_t height, int64_t width) : h(height), w(width) {}
};
struct Conv2dOptions {
  Size2d stride = 1, padding = 0, dilation = 1;  // padding: zeros on each side
};
// y[n, o, p, q] = sum_cij w[o, c, i, j] x[n, c, p stride + i dilation - padding, the same of q and
// j] + b[o]; x (N, C, H, W), w (O, C, kh, kw), b (O) or undefined -> (N, O, OH, OW),
// OH = floor((H + 2 padding - dilation (kh - 1) - 1) / stride) + 1.
Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& b = {},
              const Conv2dOptions& options = {});
// What each window reads, as a column: (N, C, H, W) -> (N, C kh kw, OH OW).
Tensor unfold2d(const Tensor& x, Size2d kernel, const Conv2dOptions& options = {});
// The adjoint of unfold2d, which sums what the windows share: -> (N, C, image.h, image.w).
Tensor fold2d(const Tensor& columns, Size2d image, Size2d kernel,
              const Conv2dOptions& options = {});
// The largest element of each window, its gradient to the first of equals; a NaN is the largest.
// (N, C, H, W) -> (N, C, OH, OW). The padding, at most half of the kernel, has no elements. Without
// a stride the windows stand side by side.
Tensor max_pool2d(const Tensor& x, Size2d kernel, Size2d stride, Size2d padding = 0);
// The mean of each window: of kh kw elements, zeros of the padding among them, or of those inside.
Tensor avg_pool2d(const Tensor& x, Size2d kernel, Size2d stride, Size2d padding = 0,
                  bool count_include_pad = true);
inline Tensor max_pool2d(const Tensor& x, Size2d kernel) { return max_pool2d(x, kernel, kernel); }
inline Tensor avg_pool2d(const Tensor& x, Size2d kernel) { return avg_pool2d(x, kernel, kernel); }

// Rows of a table and their adjoint: y[i] = weight[ids[i]]; weight (V, C), ids (...) -> (..., C).
Tensor embedding(const Tensor& weight, const Tensor& ids);
// y[ids[i]] += x[i]: x (..., C), ids (...) -> (V, C); equal ids add up, in order.
Tensor scatter_add_rows(const Tensor& x, const Tensor& ids, int64_t V);
// The same in one dimension of any x, for ids (N): y[.., n, ..] = x[.., ids[n], ..].
Tensor index_select(const Tensor& x, int dim, const Tensor& ids);
// y = x, then y[.., ids[n], ..] += src[.., n, ..].
Tensor index_add(const Tensor& x, int dim, const Tensor& ids, const Tensor& src);
// y[i, j, k] = x[i, index[i, j, k], k] for dim = 1; index is no larger than x but in dim.
Tensor gather(const Tensor& x, int dim, const Tensor& index);
// y = x, then y[i, index[i, j, k], k] += src[i, j, k]; equal indices add up, in order.
Tensor scatter_add(const Tensor& x, int dim, const Tensor& index, const Tensor& src);
// gather, of x and index broadcast to one shape but in dim.
Tensor take_along(const Tensor& x, const Tensor& index, int dim);
// y[.., c] = ids[..] == c: (...) -> (..., classes); no gradient.
Tensor one_hot(const Tensor& ids, int64_t classes, DType dtype = kFloat32);

// Each element is 0 with probability p, else x / (1 - p); takes numel random numbers from rng.
Tensor dropout(const Tensor& x, double p, Generator& rng);

// Activations.
Tensor relu(const Tensor& x);  // max(x, 0); its gradient at 0 is 0; a NaN stays, there too
Tensor leaky_relu(const Tensor& x, double slope = 0.01);  // x > 0 ? x : slope x
Tensor elu(const Tensor& x, double alpha = 1);            // x > 0 ? x : alpha (e^x - 1)
Tensor sigmoid(const Tensor& x);                          // 1 / (1 + e^-x)
Tensor softplus(const Tensor& x);                         // log(1 + e^x)
Tensor silu(const Tensor& x);                             // x sigmoid(x); 0 at -inf; fused
Tensor swiglu(const Tensor& gate, const Tensor& up);      // silu(gate) up, broadcasting; fused

// Fused: one kernel each way.
Tensor softmax(const Tensor& x, int dim = -1);      // e^x / sum e^x; NaN in a row of -inf
Tensor log_softmax(const Tensor& x, int dim = -1);  // x - log sum e^x
Tensor gelu(const Tensor& x);                       // x/2 (1 + erf(x / sqrt(2)))
Tensor gelu_tanh(const Tensor& x);                  // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
// (x - mean) / sqrt(var + eps) * weight + bias over the last dimension; weight (C), bias (C) or
// none
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps);
// x / sqrt(mean(x^2) + eps) * weight over the last dimension; weight (C)
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps);

// Losses: () for the mean or the sum, or the shape of what was compared for kNone.
enum class Reduction { kMean, kSum, kNone };
struct CrossEntropyOptions {
  int64_t ignore_index = -100;  // rows with this target do not count; it may lie anywhere
  double label_smoothing = 0;   // e: the target is 1 - e of its class and e / V of every class
  Reduction reduction = Reduction::kMean;
};
// -log softmax(logits)[target] for each row, logits (..., V), targets (...) int64. The mean is over
// the rows that count; of none it is 0, with zero gradients. Fused.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                     const CrossEntropyOptions& options = {});
// -log_probs[target], otherwise the same.
Tensor nll_loss(const Tensor& log_probs, const Tensor& targets,
                Reduction reduction = Reduction::kMean, int64_t ignore_index = -100);
// (x - y)^2, of one shape.
Tensor mse_loss(const Tensor& x, const Tensor& y, Reduction reduction = Reduction::kMean);
// -t log sigmoid(x) - (1 - t) log(1 - sigmoid(x)), finite for every finite logit x.
Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& targets,
                                        Reduction reduction = Reduction::kMean);
// q (log q - log_p), 0 where q is 0. The mean divergence of N distributions is kSum's / N.
Tensor kl_div(const Tensor& log_p, const Tensor& q, Reduction reduction = Reduction::kMean);

// Which pairs of a head's elements RoPE turns: (i, i + D/2), or (2i, 2i + 1).
enum class RopeLayout { kHalves, kAdjacent };
struct RopeOptions {
  RopeLayout layout = RopeLayout::kHalves;
  double base = 10000;
  int64_t position = 0;  // of the first row
  bool inverse = false;  // turn back: the adjoint
};
// Turns pair i of the first `heads` heads of row t by (position + t) base^(-2i/D).
// x (B, T, W), W >= heads D; the rest of a row is copied.
Tensor rope(const Tensor& x, int64_t heads, int64_t D, const RopeOptions& options = {});

// XSA's denominator d of c = (y.v)/d: v.v with c = 0 where v = 0; v.v + eps; max(v.v, eps^2).
enum class XsaDenominator { kExact, kAddEps, kClampNorm };
struct XsaOptions {
  XsaDenominator denominator = XsaDenominator::kExact;
  double eps = 0;
};
// Exclusive Self Attention's projection of each row, z = y - g c v; y (..., H, D), v (..., Hkv, D),
// whose head h serves the heads [h G, (h + 1) G) of y, G = H / Hkv; gate (H), or undefined for g
// = 1.
Tensor xsa(const Tensor& y, const Tensor& v, const Tensor& gate = {},
           const XsaOptions& options = {});

enum class AttentionKind { kSA, kXSA };
struct AttentionOptions {
  AttentionKind kind = AttentionKind::kSA;
  bool causal = true;
  double scale = 0;  // of q.k; 0 is 1 / sqrt(D)
  XsaOptions xsa = {};
};
// softmax(scale q k^T + mask) v for each head, then XSA's projection. qkv (B, T, (H + 2 Hkv) D)
// holds the heads of q, then of k, then of v -> (B, T, H D). Head h reads key head h / (H / Hkv).
// gate (H) is XSA's, or undefined. sink (H), or undefined: a logit a head that shares in the
// softmax and gives nothing, p_j = exp(s_j) / (exp(sink) + sum_j exp(s_j)). -inf is no sink; +inf
// or NaN makes the head NaN. plain::attention, below, takes any mask.
Tensor attention(const Tensor& qkv, const Tensor& gate, int64_t H, int64_t Hkv,
                 const AttentionOptions& options, const Tensor& sink = {});
// The same for separate views, without a gradient: decoding with cached keys and values.
// q (B, Tq, H, D), k and v (B, Tk, Hkv, D), Tq <= Tk: query i is at position Tk - Tq + i.
Tensor attention_decode(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& gate,
                        const AttentionOptions& options, const Tensor& sink = {});

// Not differentiable: the optimizer's step and the norm of all gradients (ops_optim.cpp).
struct AdamWOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  double grad_scale =
      1;             // the gradient is multiplied by it first: clipping without a pass of its own
  int64_t step = 1;  // counted from 1, for the bias correction
};
// w, m, v change in place; g is read: all of one shape. kernels/adamw.h has the formula.
void adamw_(const Tensor& w, const Tensor& g, const Tensor& m, const Tensor& v,
            const AdamWOptions& options);
struct SGDOptions {
  double lr = 1e-2, momentum = 0;
  bool nesterov = false;
  double weight_decay = 0, grad_scale = 1;
};
// w and m change in place; m may be undefined without momentum. kernels/sgd.h has the formula.
void sgd_(const Tensor& w, const Tensor& g, const Tensor& m, const SGDOptions& options);
double grad_norm(const TensorList& grads);  // sqrt of the sum of all squares, without overflow

// The same, defined in plain ops.
namespace plain {
Tensor silu(const Tensor& x);
Tensor swiglu(const Tensor& gate, const Tensor& up);
Tensor softmax(const Tensor& x, int dim = -1);
Tensor log_softmax(const Tensor& x, int dim = -1);
Tensor gelu(const Tensor& x);
Tensor gelu_tanh(const Tensor& x);
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps);
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps);
Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                     const CrossEntropyOptions& options = {});
Tensor xsa(const Tensor& y, const Tensor& v, const Tensor& gate, const XsaOptions& options);
// {dy, dv, dgate}, the last undefined where gate is.
TensorList xsa_backward(const Tensor& dz, const Tensor& y, const Tensor& v, const Tensor& gate,
                        const XsaOptions& options);
// mask is added to the scaled scores; it broadcasts to (B, H, T, T). -inf hides a key: the query
// does not read it, even if it is NaN (nor, in XSA, its own value); a query that sees none gives 0.
// The memory it takes is that of B H T T numbers, under a mask of B H T T D.
Tensor attention(const Tensor& qkv, const Tensor& gate, int64_t H, int64_t Hkv,
                 const AttentionOptions& options, const Tensor& sink = {}, const Tensor& mask = {});
}  // namespace plain

// With numbers for tensors of one element.
inline Tensor pow(const Tensor& x, double p) { return pow(x, number_like("pow", x, p)); }
inline Tensor pow(double base, const Tensor& y) { return pow(number_like("pow", y, base), y); }
inline Tensor mul_(const Tensor& x, double s) { return mul_(x, number_like("mul_", x, s)); }
inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator-(const Tensor& x) { return neg(x); }
inline Tensor operator+(const Tensor& a, double s) { return add(a, number_like("add", a, s)); }
inline Tensor operator+(double s, const Tensor& a) { return add(number_like("add", a, s), a); }
inline Tensor operator-(const Tensor& a, double s) { return sub(a, number_like("sub", a, s)); }
inline Tensor operator-(double s, const Tensor& a) { return sub(number_like("sub", a, s), a); }
inline Tensor operator*(const Tensor& a, double s) { return mul(a, number_like("mul", a, s)); }
inline Tensor operator*(double s, const Tensor& a) { return mul(number_like("mul", a, s), a); }
inline Tensor operator/(const Tensor& a, double s) { return div(a, number_like("div", a, s)); }
inline Tensor operator/(double s, const Tensor& a) { return div(number_like("div", a, s), a); }

}  // namespace pellucid
