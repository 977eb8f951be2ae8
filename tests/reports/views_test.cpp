// Known faults of views, strides, writing in place and aliasing, tested as kinds: every view op,
// every op in place, sizes around the width of a vector register.
#include "autograd/ops.h"
#include "reports.h"

using namespace pellucid;

namespace {

const int64_t kSizes[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 130};

struct InPlace {
  std::string name;
  void (*write)(const Tensor& x);
};
const InPlace kInPlace[] = {
    {"add_", [](const Tensor& x) { add_(x, ones_like(x)); }},
    {"mul_", [](const Tensor& x) { mul_(x, 3); }},
    {"mul_", [](const Tensor& x) { mul_(x, full_like(x, {}, 3)); }},
    {"copy_", [](const Tensor& x) { copy_(x, full_like(x, x.shape(), 7)); }},
    {"fill_", [](const Tensor& x) { fill_(x, 7); }},
    {"zero_", [](const Tensor& x) { zero_(x); }},
};

struct View {
  std::string name;
  Tensor (*of)(const Tensor& x);  // of x (3, 4)
};
const View kViews[] = {
    {"itself", [](const Tensor& x) { return x; }},
    {"identity", [](const Tensor& x) { return identity(x); }},
    {"detach", [](const Tensor& x) { return x.detach(); }},
    {"transpose", [](const Tensor& x) { return transpose(x, 0, 1); }},
    {"permute",
     [](const Tensor& x) {
       return permute(x, {1, 0});
     }},
    {"slice", [](const Tensor& x) { return slice(x, 1, 1, 4, 2); }},
    {"select", [](const Tensor& x) { return select(x, 1, 1); }},
    {"split", [](const Tensor& x) { return split(x, 2, 1)[1]; }},
    {"chunk", [](const Tensor& x) { return chunk(x, 3, 0)[2]; }},
    {"reshape",
     [](const Tensor& x) {
       return reshape(x, {2, 6});
     }},
    {"view", [](const Tensor& x) { return view(x, {12}); }},
    {"unsqueeze", [](const Tensor& x) { return unsqueeze(x, 1); }},
    {"squeeze", [](const Tensor& x) { return squeeze(unsqueeze(x, 0), 0); }},
    {"expand",
     [](const Tensor& x) {
       return expand(x, {1, 3, 4});
     }},
    {"contiguous", [](const Tensor& x) { return contiguous(x); }},
    {"several",
     [](const Tensor& x) {
       return slice(transpose(view(x, {4, 3}), 0, 1), 0, 1, 2);
     }},
};

}  // namespace

TEST_CASE(
    "in place on repeated elements is refused, and nothing is written (pytorch/pytorch#4664, "
    "pytorch/pytorch#17935)") {
  const struct {
    Shape from, to;
  } cases[] = {{{1, 1}, {4, 5}},
               {{}, {2}},
               {{1}, {33}},
               {{3, 1}, {3, 2}},
               {{1, 3}, {2, 3}},
               {{3}, {2, 3}},
               {{2, 1, 3}, {2, 5, 3}},
               {{1, 2, 3}, {7, 2, 3}},
               {{2, 3, 1}, {2, 3, 31}}};
  for (const InPlace& op : kInPlace)
    for (const auto& c : cases) {
      const Tensor base = counted(c.from);
      const Values before = base.to_vector();
      const std::string error = error_of([&] { op.write(expand(base, c.to)); });
      INFO(op.name, " on ", c.from, " expanded to ", c.to, ": ", error);
      CHECK(error.rfind(std::string(op.name) + ": writes to a tensor of shape", 0) == 0);
      CHECK(error.find("expand") != std::string::npos);
      CHECK(base.to_vector() == before);
      CHECK(base.storage().version == 0);
    }
  // A repeat of one is none, and neither is one of nothing.
  for (const InPlace& op : kInPlace) {
    op.write(expand(counted({3}), {1, 3}));
    op.write(expand(counted({1, 3}), {0, 3}));
  }
}

TEST_CASE(
    "a product with a repeated batch equals that of a copy (huggingface/candle#3744, "
    "huggingface/candle#1948)") {
  // Every way to repeat an operand (stride 0), in every dimension of the batch.
  const Shape kBatches[] = {{1}, {1, 1}, {2, 1}, {1, 3}, {2, 3}};
  for (const int64_t n : {1, 2, 16, 17, 31, 32, 33})
    for (const Shape& batch : kBatches) {
      const auto operand = [&](uint64_t seed, bool turned) {
        Shape shape = batch;
        shape.push_back(n), shape.push_back(n);
        const Tensor x = normal(shape, seed, kFloat32);
        Shape wide = batch.dim() == 1 ? Shape{3, n, n} : Shape{2, 3, n, n};
        return expand(turned ? transpose(x, -1, -2) : x, wide);
      };
      for (const bool turned : {false, true}) {
        const Tensor a = operand(1, turned), b = operand(2, !turned);
        CAPTURE(n);
        CHECK(same_bits(matmul(a, b), matmul(contiguous(a), contiguous(b))));
        CHECK(same_bits(matmul(a, slice(contiguous(b), 0, 0, 1)),
                        matmul(contiguous(a), expand(slice(contiguous(b), 0, 0, 1), b.shape()))));
      }
    }
}

TEST_CASE(
    "strides of size-1 dimensions do not matter, repeats are never taken for contiguous "
    "(huggingface/candle#1948, huggingface/candle#1991)") {
  // One row of many is a matrix whose rows are far apart.
  for (const int64_t K : {1, 3, 17, 64}) {
    const Tensor w = normal({5, K}, 1);
    for (const int64_t at : {0, 3, 7}) {
      const Tensor rows = normal({1, 8, K}, 2);
      const Tensor row = reshape(slice(rows, 1, at, at + 1), {1, K});
      CHECK(same_bits(matmul(row, transpose(w, 0, 1)),
                      matmul(contiguous(row) * 1.0, transpose(w, 0, 1))));
      CHECK(same_bits(linear(slice(rows, 1, at, at + 1), w, Tensor()),
                      linear(slice(rows, 1, at, at + 1) * 1.0, w, Tensor())));
      const Tensor strange = alias(rows.detach(), {1, K}, {16384 + at, 1}, at * K);
      CHECK(strange.is_contiguous());
      CHECK(same_bits(matmul(strange, transpose(w, 0, 1)), matmul(row, transpose(w, 0, 1))));
    }
  }
  // Casts of what was repeated, along each axis, to every dtype.
  const DType kTypes[] = {kFloat32, kFloat64, kInt64, kBool};
  const Shape kShapes[] = {{13, 1}, {1, 13}, {13}, {1, 13, 1}};
  for (const DType from : kTypes)
    for (const DType to : kTypes)
      for (const Shape& shape : kShapes) {
        const Tensor x = astype(arange(13), from);
        const Tensor wide = expand(reshape(x, shape), {2, 13, 13});
        CHECK_FALSE(wide.is_contiguous());
        const Tensor cast = astype(wide, to), copied = astype(packed(wide.detach()), to);
        CHECK(cast.is_contiguous());
        CHECK(same_bits(cast, copied));
      }
}

TEST_CASE("a matrix assigned its own transpose keeps every value (xtensor-stack/xtensor#389)") {
  for (const int64_t n : kSizes) {
    const Values values = counted({n}).to_vector();
    for (Tensor x : {counted({1, n}), counted({n, 1})}) {
      const Shape turned{x.size(1), x.size(0)};
      x = transpose(x, 0, 1);
      CHECK(x.shape() == turned);
      CHECK(x.to_vector() == values);
      CHECK(contiguous(x).to_vector() == values);
    }
    // Written onto itself, where source and target share all their memory.
    const Tensor square = counted({n, n}), turned = contiguous(transpose(square, 0, 1)) * 1.0;
    copy_(square, transpose(square, 0, 1));
    CHECK(same_bits(square, turned));
    add_(square, transpose(square, 0, 1));
    CHECK(same_bits(square, turned + transpose(turned, 0, 1)));
  }
}

TEST_CASE(
    "a view is reshaped by its own order, not by memory's (HomericIntelligence/Odyssey#4084, "
    "Ivorforce/NumDot#175, vllm-project/vllm#11978)") {
  CHECK(reshape(transpose(counted({3, 4}), 0, 1), {12}).to_vector() ==
        Values{1, 5, 9, 2, 6, 10, 3, 7, 11, 4, 8, 12});
  for (const int64_t rows : kSizes)
    for (const int64_t columns : {1, 3, 8, 33}) {
      const Tensor x = counted({rows, columns});
      Values wanted;
      for (int64_t j = 0; j < columns; ++j)
        for (int64_t i = 0; i < rows; ++i) wanted.push_back(double(i * columns + j + 1));
      CHECK(reshape(transpose(x, 0, 1), {rows * columns}).to_vector() == wanted);
      wanted.clear();
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 1; j < columns; j += 2) wanted.push_back(double(i * columns + j + 1));
      CHECK(reshape(slice(x, 1, columns > 1 ? 1 : 0, columns > 1 ? columns : 0, 2), {-1, 1, 1})
                .to_vector() == wanted);
    }
}

TEST_CASE("copies into and out of a part touch that part only (davisking/dlib#205)") {
  for (const int64_t n : kSizes)
    for (const int64_t offset : {0, 1, 3, 7, 50})
      for (const int64_t step : {1, 2, 3}) {
        const int64_t whole = offset + n * step + 5;
        const Tensor x = neg(counted({whole})), part = counted({n});
        copy_(slice(x, 0, offset, offset + (n - 1) * step + 1, step), part);
        const Values found = x.to_vector();
        int wrong = 0;
        for (int64_t i = 0; i < whole; ++i) {
          const bool inside = i >= offset && (i - offset) % step == 0 && (i - offset) / step < n;
          wrong += found[std::size_t(i)] != double(inside ? (i - offset) / step + 1 : -(i + 1));
        }
        const Tensor out = zeros({n}, kFloat64);
        copy_(out, slice(x, 0, offset, offset + (n - 1) * step + 1, step));
        wrong += !same_bits(out, part);
        CHECK_MESSAGE(wrong == 0, n, " elements from ", offset, " in steps of ", step);
      }
  // Along each axis of three.
  for (const int axis : {0, 1, 2}) {
    const Tensor x = zeros({5, 6, 7}, kFloat64);
    Shape shape = x.shape();
    shape[axis] = 2;
    copy_(slice(x, axis, 1, 3), counted(shape));
    CHECK(same_bits(contiguous(slice(x, axis, 1, 3)), counted(shape)));
    CHECK(sum(x).item() == sum(counted(shape)).item());
  }
}

TEST_CASE(
    "backward notices a write through any view of what it saved (pytorch/pytorch#197887, "
    "pytorch/pytorch#18523)") {
  const Tensor w = random_leaf({3, 4}, 1);
  for (const InPlace& op : kInPlace)
    for (const View& view_of : kViews) {
      const Tensor x = counted({3, 4});
      // The view is taken before the op that saves, or after; through itself or through its base.
      const Tensor early = view_of.of(x);
      const Tensor y = sum(w * x);
      op.write(early);
      const std::string error = error_of([&] { y.backward(); });
      INFO(op.name, " through ", view_of.name, ": ", error);
      CHECK(error.find("mul: needs for its backward a tensor of shape (3, 4)") == 0);
      CHECK(error.find(op.name) != std::string::npos);

      const Tensor base = counted({3, 4}), late = view_of.of(base);
      const Tensor u = sum(late * random_leaf(late.shape(), 2));
      op.write(base);
      const std::string through_base = error_of([&] { u.backward(); });
      INFO(through_base);
      CHECK(through_base.find(op.name) != std::string::npos);
    }
  // Reading is no writing.
  for (const View& view_of : kViews) {
    const Tensor x = counted({3, 4}), y = sum(w * x);
    view_of.of(x).to_vector();
    y.backward();
  }
}
