// Known faults of big sizes and of indices, tested as kinds: every way to make a tensor, every
// place of a bad index, offsets beyond 2^31 without the memory for them.
#include "autograd/ops.h"
#include "reports.h"

using namespace pellucid;

namespace {

constexpr int64_t kHuge = int64_t{1} << 40;

// Neither a tensor nor an error of another sort; and nothing was asked of the system for it.
template <class Call>
bool refused_without_memory(Call call) {
  const int64_t before = memory_stats().system_allocations;
  const int64_t blocks = memory_stats().blocks_in_use;
  bool refused = false;
  try {
    call();
  } catch (const std::invalid_argument&) {
    refused = true;
  } catch (const OutOfMemory&) {  // bytes that 64 bits count, but no machine has
    refused = true;
  }
  return refused && memory_stats().system_allocations == before &&
         memory_stats().blocks_in_use == blocks;
}

}  // namespace

TEST_CASE(
    "a size that 64 bits cannot count is refused before any memory (pytorch/pytorch PR#43755)") {
  Generator rng;
  for (const Shape& shape : {Shape{2, 2, 1, 2305843009213693952}, Shape{int64_t{1} << 62, 2},
                             Shape{int64_t{1} << 32, int64_t{1} << 31}, Shape{INT64_MAX, 2},
                             Shape{0, int64_t{1} << 62, 2}, Shape{2, INT64_MAX, 0}}) {
    CAPTURE(shape);
    for (const DType dtype : {kFloat32, kFloat64, kInt64, kBool}) {
      CHECK(refused_without_memory([&] { empty(shape, dtype); }));
      CHECK(refused_without_memory([&] { zeros(shape, dtype); }));
      CHECK(refused_without_memory([&] { ones(shape, dtype); }));
      CHECK(refused_without_memory([&] { full(shape, 1, dtype); }));
    }
    CHECK(error_of([&] { zeros(shape); }).rfind("numel overflow: shape", 0) == 0);
    CHECK(refused_without_memory([&] { rand(shape, rng); }));
    CHECK(refused_without_memory([&] { randn(shape, rng); }));
    CHECK(refused_without_memory([&] { from_vector(Values{}, shape); }));
    CHECK(refused_without_memory([&, x = ones({1})] { expand(x, shape); }));
    CHECK(refused_without_memory([&, x = ones({1})] { reshape(x, shape); }));
    CHECK(refused_without_memory([&, x = ones({1})] { view(x, shape); }));
    CHECK(refused_without_memory([&, x = ones({1})] { alias(x, shape, shape); }));
  }
  // As many elements as 64 bits count, but not as many bytes.
  for (const DType dtype : {kFloat64, kInt64})
    CHECK(refused_without_memory([&] { empty({int64_t{1} << 61}, dtype); }));
  CHECK(refused_without_memory([&] { empty({INT64_MAX}, kFloat32); }));
  CHECK(rng.offset == 0);
}

TEST_CASE(
    "a result that 64 bits cannot count is refused before any memory (pytorch/pytorch PR#43755)") {
  const Tensor row = expand(ones({1, 1}), {1, kHuge}), column = expand(ones({1, 1}), {kHuge, 1});
  const Tensor yes = greater(ones({1, 1}), zeros({1, 1}));
  CHECK(refused_without_memory([&] { row + column; }));
  CHECK(refused_without_memory([&] { row* column; }));
  CHECK(refused_without_memory([&] { row / column; }));
  CHECK(refused_without_memory([&] { equal(row, column); }));
  CHECK(refused_without_memory([&] { where(yes, row, column); }));
  CHECK(refused_without_memory([&, a = ones({0})] {
    matmul(expand(reshape(a, {1, 0}), {kHuge, 0}), expand(reshape(a, {0, 1}), {0, kHuge}));
  }));
  CHECK(refused_without_memory([&, x = ones({2, 2})] { unslice(x, 0, INT64_MAX, 0); }));
  CHECK(refused_without_memory(
      [&, x = ones({0, 2}), ids = ids_of({})] { scatter_add_rows(x, ids, INT64_MAX); }));
}

TEST_CASE(
    "offsets beyond 2^31 are counted in 64 bits, also where only a product passes it "
    "(karpathy/llama2.c#164, tinygrad/tinygrad#3961, pytorch/pytorch#154168, "
    "pytorch/pytorch#188467, tensorflow#127164)") {
  // 46342 * 46341 = 2^31 + 50974 elements; only the pages that are touched take memory.
  constexpr int64_t M = 46342, N = 46341;
  static_assert(M * N > (int64_t{1} << 31));
  {
    const Tensor x = empty({M, N}, kBool), yes = ones({1, 1}, kBool);
    const Tensor corner = slice(slice(x, 0, M - 1, M), 1, N - 1, N);
    copy_(corner, yes);
    CHECK(x.at({M - 1, N - 1}) == 1);
    CHECK(transpose(x, 0, 1).at({N - 1, M - 1}) == 1);
    CHECK(view(x, {-1}).at({M * N - 1}) == 1);
    CHECK(slice(view(x, {-1}), 0, M * N - 1, M * N).item() == 1);
    copy_(corner, zeros({1, 1}, kBool));
    CHECK(view(x, {-1}).at({M * N - 1}) == 0);
    // A column, each element 46 MB from the next.
    const Tensor column = slice(slice(x, 1, N - 1, N), 0, 341, M, 1000);
    copy_(column, expand(yes, column.shape()));
    CHECK(x.at({M - 1, N - 1}) == 1);
    CHECK(column.to_vector() == Values(47, 1));
    CHECK(sum(astype(column, kFloat64)).item() == 47);
  }
  release_cached();
  // A row of a table, and a row of a product, that lie 8 GB into their operand.
  try {
    const Tensor table = empty({M, N});
    const Tensor last = slice(table, 0, M - 1, M);
    copy_(last, reshape(astype(arange(N), kFloat32), {1, N}));
    const Tensor rows = embedding(table, ids_of({M - 1, M - 1}));
    CHECK(rows.at({1, N - 1}) == double(N - 1));
    CHECK(same_bits(rows, expand(last, {2, N})));
    const Tensor one = zeros({1, N});
    copy_(slice(one, 1, N - 1, N), ones({1, 1}));
    CHECK(matmul(last, transpose(one, 0, 1)).item() == double(N - 1));
    CHECK(sum(slice(last, 1, 0, 3)).item() == 3);
  } catch (const OutOfMemory&) {
    MESSAGE("left out: this process may not map 9 GB");
  }
  release_cached();
}

TEST_CASE("long: more than 2^31 elements are all summed (tinygrad/tinygrad#3961)") {
  CHECK(sum(expand(ones({1}), {46342, 46341})).item() == float(int64_t{46342} * 46341));
  CHECK(sum(expand(ones({1}, kFloat64), {46342, 46341})).item() == double(int64_t{46342} * 46341));
}

TEST_CASE(
    "an index outside the table is refused at every place, nothing is read or written "
    "(tinygrad/tinygrad PR#5873, pytorch/pytorch#183608, openvino PR#37125, "
    "FluxML/NNlib.jl PR#705, ml-explore/mlx PR#3091)") {
  constexpr int64_t V = 8, C = 3;
  const Tensor table = counted({V, C}).set_requires_grad(true);
  for (const int64_t n : {1, 2, 7, 16, 33})
    for (int64_t at = 0; at < n; ++at)
      for (const int64_t bad : {int64_t{-1}, V, int64_t{100}, int64_t{-1000}, int64_t{1} << 32,
                                (int64_t{1} << 61) + 1, INT64_MAX, INT64_MIN}) {
        Ids ids(std::size_t(n), V - 1);
        ids[std::size_t(at)] = bad;
        const std::string says = std::to_string(bad) + ", outside [0, 8)";
        const std::string place = "ids(" + std::to_string(at) + ") is ";
        CHECK(error_of([&] { embedding(table, ids_of(ids)); }) == "embedding: " + place + says);
        CHECK(error_of([&] {
                scatter_add_rows(counted({n, C}), ids_of(ids), V);
              }) == "scatter_add_rows: " + place + says);
      }
  // In any layout, by its own index; and in a table without rows.
  const Tensor ids = reshape(ids_of({0, 1, 2, 3, 8, 5}), {2, 3});
  CHECK(error_of([&] { embedding(table, transpose(ids, 0, 1)); }) ==
        "embedding: ids(1, 1) is 8, outside [0, 8)");
  CHECK(error_of([&] {
          embedding(table, expand(ids_of({9}), {2, 3}));
        }) == "embedding: ids(0, 0) is 9, outside [0, 8)");
  CHECK(error_of([&] {
          embedding(ones({0, C}), ids_of({0}));
        }) == "embedding: ids(0) is 0, outside [0, 0)");
  // Indices that change between forward and backward are noticed, not followed.
  const Tensor changing = ids_of({1, 2});
  const Tensor y = sum(embedding(table, changing));
  copy_(changing, ids_of({1000000, -5}));
  CHECK(error_of([&] { y.backward(); }).find("embedding: needs for its backward") == 0);
}

TEST_CASE(
    "repeated indices add up, in any number and order (pytorch/pytorch#1631, "
    "pytorch/pytorch#1528)") {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Generator rng{.seed = seed};
    const int64_t V = 1 + rng.below(9), C = rng.below(5), n = rng.below(40);
    Ids ids;
    for (int64_t i = 0; i < n; ++i) ids.push_back(rng.below(V));
    const Tensor table = counted({V, C}).set_requires_grad(true), dy = counted({n, C});
    Values wanted(std::size_t(V * C));
    for (int64_t i = 0; i < n; ++i)
      for (int64_t c = 0; c < C; ++c)
        wanted[std::size_t(ids[std::size_t(i)] * C + c)] += double(i * C + c + 1);
    CHECK(grad(embedding(table, ids_of(ids)), {table}, dy)[0].to_vector() == wanted);
    CHECK(scatter_add_rows(dy, ids_of(ids), V).to_vector() == wanted);
  }
  const Tensor x = full({1, 1}, 0.1, kFloat64).set_requires_grad(true);
  CHECK(grad(embedding(x, ids_of({0, 0})), {x}, from_vector({0.2, 0.3}, {2, 1}, kFloat64))[0]
            .item() == 0.5);
}

namespace {

struct Indexed {
  std::string name;
  std::string what;  // the argument's name in the message
  Tensor (*op)(const Tensor& x, int dim, const Tensor& index);  // index (N), x (N, N) or larger
};
const Indexed kIndexed[] = {
    {"index_select", "ids", index_select},
    {"index_add", "ids",
     [](const Tensor& x, int dim, const Tensor& index) {
       Shape shape = x.shape();
       shape[dim] = index.numel();
       return index_add(x, dim, index, ones(shape, x.dtype()));
     }},
    {"gather", "index",
     [](const Tensor& x, int dim, const Tensor& index) {
       return gather(x, dim, dim == 0 ? unsqueeze(index, 1) : unsqueeze(index, 0));
     }},
    {"scatter_add", "index",
     [](const Tensor& x, int dim, const Tensor& index) {
       const Tensor wide = dim == 0 ? unsqueeze(index, 1) : unsqueeze(index, 0);
       return scatter_add(x, dim, wide, ones(wide.shape(), x.dtype()));
     }},
    {"take_along", "index",
     [](const Tensor& x, int dim, const Tensor& index) {
       return take_along(x, dim == 0 ? unsqueeze(index, 1) : unsqueeze(index, 0), dim);
     }},
};

}  // namespace

TEST_CASE(
    "gather, scatter and their kin refuse an index outside at every place, along every axis "
    "(FluxML/NNlib.jl PR#705, ml-explore/mlx PR#3091, openvino PR#37125, pytorch/pytorch#183608)") {
  constexpr int64_t V = 5;
  for (const Indexed& op : kIndexed)
    for (const int dim : {0, 1})
      for (const int64_t n : {1, 3, 17})
        for (int64_t at = 0; at < n; ++at)
          for (const int64_t bad : {int64_t{-1}, V, int64_t{-1000}, int64_t{1} << 32,
                                    (int64_t{1} << 61) + 1, INT64_MAX, INT64_MIN}) {
            Ids ids(std::size_t(n), V - 1);
            ids[std::size_t(at)] = bad;
            Shape shape{20, 20};
            shape[dim] = V;
            const Tensor x = counted(shape);
            const Values before = x.to_vector();
            const std::string error = error_of([&] { op.op(x, dim, ids_of(ids)); });
            const bool good = error.rfind(std::string(op.name) + ": ", 0) == 0 &&
                              error.find(op.what) != std::string::npos &&
                              error.find(std::to_string(bad)) != std::string::npos &&
                              error.find("[0, 5)") != std::string::npos && x.to_vector() == before;
            if (!good) FAIL_CHECK(op.name, ", place ", at, ", index ", bad, ": ", error);
          }
  CHECK(refused_by("one_hot", [] { one_hot(ids_of({0, 3}), 3); }));
  CHECK(refused_by("one_hot", [] { one_hot(ids_of({-1}), 3); }));
  CHECK(refused_by("gather", [] { gather(counted({2, 3}), 1, reshape(ids_of({1, 4}), {1, 2})); }));
}

TEST_CASE(
    "gather and scatter along every axis: repeated indices add up, in both directions "
    "(pytorch/pytorch#1631, pytorch/pytorch#1528)") {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Generator rng{.seed = seed};
    const int dim = int(rng.below(3));
    Shape shape, small;
    for (int d = 0; d < 3; ++d) shape.push_back(1 + rng.below(4));
    for (int d = 0; d < 3; ++d) small.push_back(d == dim ? rng.below(7) : 1 + rng.below(shape[d]));
    Ids ids;
    for (int64_t i = 0; i < small.numel(); ++i) ids.push_back(rng.below(shape[dim]));
    const Tensor index = from_vector(ids, small), x = counted(shape).set_requires_grad(true);
    const Tensor src = (counted(small) * 3.0).detach().set_requires_grad(true);

    // By loops: element i of index stands at (a, b, c), and names (a, ids[i], c) for dim = 1.
    Values taken, added = x.to_vector(), back(std::size_t(shape.numel()));
    const Values from = x.to_vector(), put = src.to_vector();
    Ids named;
    for (int64_t i = 0; i < small.numel(); ++i) {
      int64_t place[] = {i / (small[1] * small[2]), i / small[2] % small[1], i % small[2]};
      place[dim] = ids[std::size_t(i)];
      named.push_back((place[0] * shape[1] + place[1]) * shape[2] + place[2]);
      taken.push_back(from[std::size_t(named.back())]);
      added[std::size_t(named.back())] += put[std::size_t(i)];
      back[std::size_t(named.back())] += double(i + 1);
    }
    const Tensor y = gather(x, dim, index), z = scatter_add(x, dim, index, src);
    CHECK(y.to_vector() == taken);
    CHECK(z.to_vector() == added);
    CHECK(grad(y, {x}, counted(small))[0].to_vector() == back);
    const TensorList g = grad(z, {x, src}, counted(shape));
    Values of_src;
    for (const int64_t at : named) of_src.push_back(double(at + 1));
    CHECK(same_bits(g[0], counted(shape)));
    CHECK(g[1].to_vector() == of_src);
  }
}
