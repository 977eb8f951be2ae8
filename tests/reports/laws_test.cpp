// Laws that hold for every tensor, each tried on 200 random shapes, layouts and values (laws.h).
#include "laws.h"

#include "nn/tokenizer.h"

using namespace pellucid;

TEST_CASE("laws of arithmetic and broadcasting") {
  holds("a + b = b + a, a b = b a", [](Draw& d) {
    const Shape s = d.shape(0, 4);
    const Tensor a = d.whole(s, kFloat32), b = d.whole(d.broadcasting_to(s), kFloat32);
    return same_bits(a + b, b + a) && same_bits(a * b, b * a) && same_bits(a - b, neg(b - a) + 0.0);
  });
  holds("broadcasting = expanding first", [](Draw& d) {
    const Shape s = d.shape(0, 4);
    const Tensor a = d.whole(s, kFloat64), b = d.whole(d.broadcasting_to(s), kFloat64);
    return same_bits(a * b, a * expand(b, s)) && same_bits(a + b, a + contiguous(expand(b, s)));
  });
  holds("(a + b) c = a c + b c", [](Draw& d) {
    const Shape s = d.shape(0, 3);
    const Tensor a = d.whole(s, kFloat32), b = d.whole(s, kFloat32),
                 c = d.whole(d.broadcasting_to(s), kFloat32);
    return same_bits((a + b) * c + 0.0, a * c + b * c + 0.0);
  });
  holds("where(c, a, b) + where(c, b, a) = a + b", [](Draw& d) {
    const Shape s = d.shape(0, 3);
    const Tensor a = d.whole(s, kFloat32), b = d.whole(s, kFloat32),
                 c = greater(d.whole(d.broadcasting_to(s), kFloat32), full({}, 0));
    return same_bits(where(c, a, b) + where(c, b, a), a + b);
  });
}

TEST_CASE("laws of views") {
  holds("reshape there and back = id", [](Draw& d) {
    const Tensor x = d.whole(d.shape(0, 4));
    Shape s;
    int64_t rest = x.numel();
    while (rest > 1 && s.dim() < 6) {
      int64_t f = 1 + d.below(6);
      if (rest % f != 0) f = 1;
      s.push_back(f), rest /= f;
    }
    s.push_back(rest);
    return same_bits(reshape(reshape(x, s), x.shape()), x) &&
           reshape(x, s).to_vector() == x.to_vector();
  });
  holds("permute, then its inverse = id; two permutations = their product", [](Draw& d) {
    const Tensor x = d.whole(d.shape(1, 5, 3));
    const std::vector<int> p = d.order(x.dim()), q = d.order(x.dim());
    std::vector<int> product;
    for (const int at : q) product.push_back(p[std::size_t(at)]);
    return same_bits(permute(permute(x, p), inverse(p)), x) &&
           same_bits(permute(permute(x, p), q), permute(x, product));
  });
  holds("transpose twice = id, and is a permutation", [](Draw& d) {
    const Tensor x = d.whole(d.shape(2, 4));
    const int a = d.axis(x), b = d.axis(x);
    std::vector<int> p;
    for (int i = 0; i < x.dim(); ++i) p.push_back(i == a ? b : i == b ? a : i);
    return same_bits(transpose(transpose(x, a, b), b, a), x) &&
           same_bits(transpose(x, a, b), permute(x, p));
  });
  holds("squeeze after unsqueeze = id", [](Draw& d) {
    const Tensor x = d.whole(d.shape(0, 4));
    const int at = int(d.below(x.dim() + 1));
    return same_bits(squeeze(unsqueeze(x, at), at), x);
  });
  holds("a slice of a slice = one slice", [](Draw& d) {
    const Tensor x = d.whole(d.shape(1, 3, 20));
    const int at = d.axis(x);
    const int64_t n = x.size(at), from = d.below(n + 1), step = 1 + d.below(3);
    const Tensor y = slice(x, at, from, n, step);
    const int64_t m = y.size(at), again = d.below(m + 1), step2 = 1 + d.below(3);
    if (again == m) return slice(y, at, again, m, step2).numel() == 0 || m == 0;
    return same_bits(slice(y, at, again, m, step2),
                     slice(x, at, from + again * step, n, step * step2));
  });
  holds("elementwise ops commute with views", [](Draw& d) {
    const Tensor x = d.whole(d.shape(1, 4), kFloat32);
    const std::vector<int> p = d.order(x.dim());
    return same_bits(exp(permute(x, p)), permute(exp(x), p)) &&
           same_bits(tanh(reshape(x, {x.numel()})), reshape(tanh(x), {x.numel()}));
  });
}

TEST_CASE("laws of sums") {
  holds("the sum over a split = the sum", [](Draw& d) {
    const Tensor x = d.whole(d.shape(1, 4, 9));
    const int at = d.axis(x);
    const int64_t k = d.below(x.size(at) + 1);
    return same_bits(sum(slice(x, at, 0, k), at) + sum(slice(x, at, k, x.size(at)), at),
                     sum(x, at) + 0.0);
  });
  holds("one dimension after the other, in any order = all at once", [](Draw& d) {
    const Tensor x = d.whole(d.shape(1, 4));
    Tensor y = x;
    while (y.dim() > 0) y = sum(y, d.axis(y));
    return same_bits(y, sum(x));
  });
  holds("sum_to = the adjoint of expand", [](Draw& d) {
    const Shape s = d.shape(0, 4), small = d.broadcasting_to(s);
    const Tensor a = d.whole(small, kFloat64), b = d.whole(s, kFloat64);
    return dot(expand(a, s), b) == dot(a, sum_to(b, small));
  });
  holds("a sum goes with a permutation", [](Draw& d) {
    const Tensor x = d.whole(d.shape(1, 4));
    const std::vector<int> p = d.order(x.dim());
    const int at = d.axis(x);
    return same_bits(sum(permute(x, p), at, true), permute(sum(x, p[std::size_t(at)], true), p));
  });
}

TEST_CASE("laws of linear ops: <A x, y> = <x, A^T y>, A^T by backward and by name") {
  const auto adjoint_by_backward = [](Draw& d, const Tensor& x, auto op) {
    const Tensor leaf = x.detach().set_requires_grad(true);
    const Tensor y = op(leaf);
    const Tensor w = d.whole(y.shape(), x.dtype());
    return dot(y.detach(), w) == dot(x, grad(y, {leaf}, contiguous(w))[0]);
  };
  holds("slice and unslice", [&](Draw& d) {
    const Tensor x = d.whole(d.shape(1, 3, 9), kFloat64);
    const int at = d.axis(x);
    const int64_t n = x.size(at), from = d.below(n + 1), to = from + d.below(n - from + 1);
    const int64_t step = 1 + d.below(3);
    const Tensor part = slice(x, at, from, to, step), y = d.whole(part.shape(), kFloat64);
    return dot(part, y) == dot(x, unslice(y, at, n, from, step)) &&
           adjoint_by_backward(d, x, [&](const Tensor& a) { return slice(a, at, from, to, step); });
  });
  holds("views and sums", [&](Draw& d) {
    const Tensor x = d.whole(d.shape(1, 4), kFloat64);
    const std::vector<int> p = d.order(x.dim());
    const int at = d.axis(x);
    Shape wide{3};
    for (const int64_t size : x.shape()) wide.push_back(size);
    return adjoint_by_backward(d, x, [&](const Tensor& a) { return permute(a, p); }) &&
           adjoint_by_backward(d, x, [&](const Tensor& a) { return sum(a, at, true); }) &&
           adjoint_by_backward(d, x, [&](const Tensor& a) { return expand(a, wide); }) &&
           adjoint_by_backward(d, x, [&](const Tensor& a) { return reshape(a, {-1}); });
  });
  holds("embedding and scatter_add_rows", [&](Draw& d) {
    const int64_t V = 1 + d.below(6), C = d.size(5), n = d.below(12);
    Ids ids;
    for (int64_t i = 0; i < n; ++i) ids.push_back(d.below(V));
    const Tensor w = d.whole({V, C}, kFloat64), x = d.whole({n, C}, kFloat64), at = ids_of(ids);
    return dot(embedding(w, at), x) == dot(w, scatter_add_rows(x, at, V)) &&
           adjoint_by_backward(d, w, [&](const Tensor& a) { return embedding(a, at); }) &&
           adjoint_by_backward(d, x, [&](const Tensor& a) { return scatter_add_rows(a, at, V); });
  });
  holds("matmul and linear, by either operand", [&](Draw& d) {
    const int64_t M = d.size(9), K = d.size(9), N = d.size(9), B = d.size(3);
    const Tensor a = d.whole({B, M, K}, kFloat64), b = d.whole({K, N}, kFloat64);
    return adjoint_by_backward(d, a, [&](const Tensor& x) { return matmul(x, b); }) &&
           adjoint_by_backward(d, b, [&](const Tensor& x) { return matmul(a, x); }) &&
           adjoint_by_backward(
               d, a, [&](const Tensor& x) { return linear(x, transpose(b, 0, 1), Tensor()); });
  });
  holds("dropout, where", [&](Draw& d) {
    const Tensor x = d.whole(d.shape(1, 3), kFloat64);
    const Tensor c = greater(d.whole(x.shape(), kFloat64), full({}, 0, kFloat64));
    const Generator from{.seed = uint64_t(d.below(1000))};
    return adjoint_by_backward(d, x,
                               [&](const Tensor& a) {  // 1 / (1 - 1/2) = 2 is exact
                                 Generator rng = from;
                                 return dropout(a, 0.5, rng);
                               }) &&
           adjoint_by_backward(d, x, [&](const Tensor& a) { return where(c, a, neg(a)); });
  });
  holds("backward is linear in what arrives", [](Draw& d) {
    const Tensor x = d.whole(d.shape(1, 3), kFloat64).detach().set_requires_grad(true);
    const Tensor u = d.whole(x.shape(), kFloat64), y = tanh(x * x) * exp(x);
    const Tensor once = grad(y, {x}, contiguous(u), {.retain_graph = true})[0];
    return same_bits(grad(y, {x}, contiguous(u * 4.0))[0], once * 4.0);
  });
}

TEST_CASE("laws of products") {
  holds("(A B)^T = B^T A^T", [](Draw& d) {
    const int64_t M = d.size(20), K = d.size(20), N = d.size(20);
    const Tensor a = d.whole({M, K}, kFloat32), b = d.whole({K, N}, kFloat32);
    return same_bits(transpose(matmul(a, b), 0, 1) + 0.0,
                     matmul(transpose(b, 0, 1), transpose(a, 0, 1)) + 0.0);
  });
  holds("A (B + C) = A B + A C, (A B) C = A (B C)", [](Draw& d) {
    const int64_t M = d.size(9), K = d.size(9), N = d.size(9), P = d.size(9);
    const Tensor a = d.whole({M, K}, kFloat32), b = d.whole({K, N}, kFloat32),
                 c = d.whole({K, N}, kFloat32), e = d.whole({N, P}, kFloat32);
    return same_bits(matmul(a, b + c) + 0.0, matmul(a, b) + matmul(a, c) + 0.0) &&
           same_bits(matmul(matmul(a, b), e) + 0.0, matmul(a, matmul(b, e)) + 0.0);
  });
  holds("a batch = its matrices one at a time; a split of K adds up", [](Draw& d) {
    const int64_t B = 1 + d.below(4), M = d.size(20), K = d.size(40), N = d.size(20);
    const Tensor a = d.whole({B, M, K}, kFloat32), b = d.whole({B, K, N}, kFloat32);
    const Tensor y = matmul(a, b);
    for (int64_t i = 0; i < B; ++i)
      if (!same_bits(contiguous(slice(y, 0, i, i + 1)),
                     matmul(slice(a, 0, i, i + 1), slice(b, 0, i, i + 1))))
        return false;
    const int64_t k = d.below(K + 1);
    return same_bits(matmul(slice(a, 2, 0, k), slice(b, 1, 0, k)) +
                         matmul(slice(a, 2, k, K), slice(b, 1, k, K)) + 0.0,
                     y + 0.0);
  });
  holds("the identity changes nothing", [](Draw& d) {
    const int64_t M = d.size(40), K = d.size(40);
    const Tensor a = d.whole({M, K}, kFloat32);
    return same_bits(matmul(a, eye(K)) + 0.0, a + 0.0) &&
           same_bits(matmul(eye(M), a) + 0.0, a + 0.0);
  });
}

TEST_CASE("laws of rows") {
  holds("softmax does not see a shift of its row", [](Draw& d) {
    const Tensor x = d.whole(d.shape(1, 3, 40), kFloat32) / 8.0;
    if (x.size(-1) == 0) return true;
    Shape column = x.shape();
    column[-1] = 1;
    return same_bits(softmax(x), softmax(x + d.whole(column, kFloat32) * 64.0));
  });
  holds("softmax adds up to 1, and goes with a permutation of its row", [](Draw& d) {
    const int64_t n = 1 + d.below(100);
    const Tensor x = d.whole({n}, kFloat64), ids = ids_of(permutation(n, d.rng));
    const Values y = softmax(x).to_vector();
    double total = 0, worst = 0;
    for (const double p : y) total += p;
    // n terms, each within exp's and the sum's error; so are two orders of the sum.
    const double bound = (3 * double(n) + 8) * 0x1p-53;
    const Values moved = softmax(reshape(embedding(reshape(x, {n, 1}), ids), {n})).to_vector();
    const Values at = ids.to_vector();
    for (std::size_t i = 0; i < y.size(); ++i)
      worst = std::max(worst, std::abs(moved[i] / y[std::size_t(at[i])] - 1));
    return std::abs(total - 1) <= bound && worst <= bound;
  });
  holds("layer_norm does not see a shift, rms_norm no scale by 2^k", [](Draw& d) {
    Shape s = d.shape(1, 3, 40);
    if (s[-1] == 0) s[-1] = 4;
    const Tensor x = d.whole(s, kFloat64), weight = d.whole({s[-1]}, kFloat64);
    const double k = std::exp2(double(d.below(20) - 10));
    return same_bits(rms_norm(x, weight, 0.5), rms_norm(x * k, weight, 0.5 * k * k)) &&
           // 64 n is exact in the mean of n whole numbers: the deviations are the same.
           (s[-1] & (s[-1] - 1) ? true
                                : same_bits(layer_norm(x, weight, Tensor(), 0.5),
                                            layer_norm(x + 64.0, weight, Tensor(), 0.5)));
  });
  holds("rows do not see each other", [](Draw& d) {
    const int64_t N = 2 + d.below(5), C = 1 + d.below(70), at = d.below(N);
    const Tensor x = d.whole({N, C}, kFloat32), w = d.whole({C}, kFloat32);
    const auto row = [&](const Tensor& y) { return contiguous(slice(y, 0, at, at + 1)); };
    return same_bits(row(softmax(x)), softmax(row(x))) &&
           same_bits(row(layer_norm(x, w, w, 0.1)), layer_norm(row(x), w, w, 0.1)) &&
           same_bits(row(rms_norm(x, w, 0.1)), rms_norm(row(x), w, 0.1)) &&
           same_bits(row(xsa(reshape(x, {N, 1, C}), reshape(x * x, {N, 1, C}))),
                     xsa(reshape(row(x), {1, 1, C}), reshape(row(x * x), {1, 1, C})));
  });
  holds("the loss of a batch = the mean of its rows' losses, in any order", [](Draw& d) {
    const int64_t N = 1 + d.below(12), V = 1 + d.below(40);
    const Tensor x = d.whole({N, V}, kFloat64);
    Ids targets, order = permutation(N, d.rng), moved;
    for (int64_t n = 0; n < N; ++n) targets.push_back(d.below(V));
    for (const int64_t n : order) moved.push_back(targets[std::size_t(n)]);
    double mean_of_rows = 0, terms = 0;
    for (int64_t n = 0; n < N; ++n) {
      const double one =
          cross_entropy(slice(x, 0, n, n + 1), ids_of({targets[std::size_t(n)]})).item();
      mean_of_rows += one / double(N), terms += std::abs(one) / double(N);
    }
    const double whole = cross_entropy(x, ids_of(targets)).item();
    const double bound = 2 * double(N + 2) * 0x1p-53 * terms;
    return std::abs(whole - mean_of_rows) <= bound &&
           std::abs(whole - cross_entropy(embedding(x, ids_of(order)), ids_of(moved)).item()) <=
               bound;
  });
}

TEST_CASE("laws of tokens") {
  holds("decode after encode = id on any bytes of the vocabulary", [](Draw& d) {
    std::string vocabulary, text;
    for (int64_t n = 1 + d.below(300); n > 0; --n) vocabulary.push_back(char(d.below(256)));
    for (int64_t n = d.below(500); n > 0; --n)
      text.push_back(vocabulary[std::size_t(d.below(std::ssize(vocabulary)))]);
    const nn::CharTokenizer tokenizer(vocabulary);
    const Ids ids = tokenizer.encode(text);
    return ids.size() == text.size() && tokenizer.decode(ids) == text &&
           nn::CharTokenizer::from_json(tokenizer.to_json()).encode(text) == ids;
  });
  holds("rows of a table: a slice of the ids = a slice of the rows", [](Draw& d) {
    const int64_t V = 1 + d.below(9), C = d.size(9), n = 1 + d.below(20), k = d.below(n + 1);
    Ids ids;
    for (int64_t i = 0; i < n; ++i) ids.push_back(d.below(V));
    const Tensor w = d.whole({V, C}), at = ids_of(ids);
    return same_bits(embedding(w, slice(at, 0, k, n)),
                     contiguous(slice(embedding(w, at), 0, k, n)));
  });
}
