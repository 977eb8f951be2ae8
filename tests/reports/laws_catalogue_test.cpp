// Laws of the ops that join, cut, reduce, choose and slide, each tried on 200 random cases
// (laws.h).
#include "laws.h"

using namespace pellucid;

TEST_CASE("laws of joining and cutting") {
  holds("cat of the splits = id; chunk, stack and select too", [](Draw& d) {
    const Tensor x = d.whole(d.shape(1, 4, 9));
    const int at = d.axis(x);
    const int64_t size = 1 + d.below(5);
    TensorList rows;
    for (int64_t i = 0; i < x.size(at); ++i) rows.push_back(select(x, at, i));
    return same_bits(cat(split(x, size, at), at), x) && same_bits(cat(chunk(x, size, at), at), x) &&
           (rows.empty() || same_bits(stack(rows, at), x));
  });
  holds("cat goes with the parts' order and with slices", [](Draw& d) {
    const Shape s = d.shape(1, 3);
    const int at = int(d.below(s.dim()));
    const Tensor a = d.whole(s, kFloat64), b = d.whole(s, kFloat64);
    const Tensor y = cat({a, b}, at);
    return same_bits(contiguous(slice(y, at, 0, s[at])), contiguous(a) * 1.0) &&
           same_bits(contiguous(slice(y, at, s[at], kEnd)), contiguous(b) * 1.0) &&
           same_bits(sum(y, at) + 0.0, sum(a, at) + sum(b, at) + 0.0);
  });
  holds("flip twice = id; pad, then slice = id; repeat = expand", [](Draw& d) {
    const Tensor x = d.whole(d.shape(1, 3), kFloat32);
    const int at = d.axis(x);
    const int64_t before = d.below(4), after = d.below(4), n = x.size(-1), times = 1 + d.below(3);
    Shape counts{times}, wide{times};
    for (const int64_t size : x.shape()) counts.push_back(1), wide.push_back(size);
    return same_bits(flip(flip(x, at), at), x) &&
           same_bits(contiguous(slice(pad(x, {{before, after}}, 7), -1, before, before + n)),
                     contiguous(x)) &&
           same_bits(repeat(x, counts), contiguous(expand(x, wide)));
  });
  holds("tril + triu above it = id", [](Draw& d) {
    const Tensor x = d.whole(d.shape(2, 4, 9), kFloat32);
    const int64_t k = d.below(13) - 6;
    return same_bits(tril(x, k) + triu(x, k + 1), x + 0.0);
  });
  holds("slices from the end = slices from the start", [](Draw& d) {
    const Tensor x = d.whole(d.shape(1, 3, 9));
    const int at = d.axis(x);
    const int64_t n = x.size(at), from = d.below(n + 1), to = from + d.below(n - from + 1);
    return (from == n || to == n ||
            same_bits(slice(x, at, from - n, to - n), slice(x, at, from, to))) &&
           same_bits(slice(x, at, from, kEnd), slice(x, at, from, n));
  });
}

TEST_CASE("laws of further reductions") {
  holds("max = -min(-x), amax over all = max, one at a time = together", [](Draw& d) {
    const Tensor x = d.whole(d.shape(1, 3), kFloat32);
    if (x.numel() == 0) return true;
    const int at = d.axis(x);
    return same_bits(max(x), neg(min(neg(x)))) && same_bits(amax(x), max(x)) &&
           same_bits(amax(amax(x, at)), max(x)) && same_bits(max(x, at), amax(x, at)) &&
           same_bits(argmax(x, at), argmin(neg(x), at)) &&
           same_bits(max(x, at, true), take_along(contiguous(x), argmax(x, at, true), at));
  });
  holds("cumsum: its last = the sum, its steps = x, its adjoint runs backwards", [](Draw& d) {
    const Tensor x = d.whole(d.shape(1, 3), kFloat64), y = d.whole(x.shape(), kFloat64);
    const int at = d.axis(x);
    const int64_t n = x.size(at);
    if (n == 0) return cumsum(x, at).numel() == 0;
    const Tensor c = cumsum(x, at);
    return same_bits(contiguous(slice(c, at, n - 1, n)) + 0.0, sum(x, at, true) + 0.0) &&
           same_bits(slice(c, at, 1, n) - slice(c, at, 0, n - 1),
                     contiguous(slice(x, at, 1, n)) + 0.0) &&
           dot(c, y) == dot(x, flip(cumsum(flip(y, at), at), at));
  });
  holds("prod goes with a split, var with a shift, norm with a scale by 2^k", [](Draw& d) {
    const Tensor x = d.whole(d.shape(1, 3, 5), kFloat64);
    const int at = d.axis(x);
    const int64_t n = x.size(at), k = d.below(n + 1);
    const double scale = std::exp2(double(d.below(20) - 10));
    const Tensor parts = prod(slice(x, at, 0, k), at) * prod(slice(x, at, k, n), at);
    return same_bits(parts + 0.0, prod(x, at) + 0.0) &&
           (n < 2 || same_bits(var(x, at), var(x + 64.0, at))) &&
           same_bits(norm(x, at) * scale, norm(x * scale, at));
  });
}

TEST_CASE("laws of indices and windows") {
  holds("gather and scatter_add are adjoint", [](Draw& d) {
    Shape s = d.shape(1, 3, 5), small = s;
    const int at = int(d.below(s.dim()));
    for (int i = 0; i < s.dim(); ++i) small[i] = i == at ? d.below(8) : d.below(s[i] + 1);
    if (s[at] == 0) small[at] = 0;
    Ids ids;
    for (int64_t i = 0; i < small.numel(); ++i) ids.push_back(d.below(s[at]));
    const Tensor x = d.whole(s, kFloat64), y = d.whole(small, kFloat64);
    const Tensor index = d.layout(from_vector(ids, small));
    return dot(gather(x, at, index), y) == dot(x, scatter_add(zeros(s, kFloat64), at, index, y));
  });
  holds("index_select = gather of whole rows; index_add is its adjoint", [](Draw& d) {
    const Tensor x = d.whole(d.shape(1, 3, 5), kFloat64);
    const int at = d.axis(x);
    Ids ids;
    if (x.size(at) > 0)
      for (int64_t n = d.below(8); n > 0; --n) ids.push_back(d.below(x.size(at)));
    const Tensor y = index_select(x, at, ids_of(ids));
    const Tensor w = d.whole(y.shape(), kFloat64);
    return dot(y, w) == dot(x, index_add(zeros_like(x), at, ids_of(ids), w));
  });
  holds("unfold2d and fold2d are adjoint; conv2d is linear in both", [](Draw& d) {
    const int64_t N = d.size(2), C = 1 + d.below(2), H = 3 + d.below(5), W = 3 + d.below(5);
    const Size2d kernel(1 + d.below(3), 1 + d.below(3));
    const Conv2dOptions options{.stride = Size2d(1 + d.below(3), 1 + d.below(3)),
                                .padding = Size2d(d.below(2), d.below(2))};
    const Tensor x = d.whole({N, C, H, W}, kFloat64);
    const Tensor columns = unfold2d(x, kernel, options);
    const Tensor y = d.whole(columns.shape(), kFloat64);
    const Tensor w = d.whole({2, C, kernel.h, kernel.w}, kFloat64);
    const Tensor v = d.whole(w.shape(), kFloat64);
    return dot(columns, y) == dot(x, fold2d(y, Size2d(H, W), kernel, options)) &&
           same_bits(conv2d(x, w + v, Tensor(), options) + 0.0,
                     conv2d(x, w, Tensor(), options) + conv2d(x, v, Tensor(), options) + 0.0);
  });
  holds("a convolution with a 1 x 1 kernel is a product", [](Draw& d) {
    const int64_t N = 1 + d.below(2), C = 1 + d.below(3), O = 1 + d.below(3), H = 1 + d.below(6);
    const Tensor x = d.whole({N, C, H, 3}, kFloat32), w = d.whole({O, C, 1, 1}, kFloat32);
    const Tensor y = matmul(reshape(w, {O, C}), reshape(x, {N, C, H * 3}));
    return same_bits(conv2d(x, w, Tensor()) + 0.0, reshape(y, {N, O, H, 3}) + 0.0);
  });
}
