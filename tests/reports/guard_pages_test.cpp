// A row kernel that reads past its row (ggml-org/llama.cpp PR#3194), tested as a kind: each kernel,
// row lengths beside the width of a vector register, with pages that may not be touched directly
// before or behind every operand and NaN in what is left of the pages between.
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <type_traits>

#include "kernels/adamw.h"
#include "kernels/attention.h"
#include "kernels/cross_entropy.h"
#include "kernels/dropout.h"
#include "kernels/elementwise.h"
#include "kernels/embedding.h"
#include "kernels/gelu.h"
#include "kernels/gemm.h"
#include "kernels/layer_norm.h"
#include "kernels/random.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "kernels/rows.h"
#include "kernels/softmax.h"
#include "kernels/sum.h"
#include "kernels/xsa.h"
#include "reports.h"

using namespace pellucid;

namespace {

const int64_t kLengths[] = {1, 3, 31, 33, 1023};

// Where an operand lies: with neighbours of 0, or NaN between pages that may not be touched, as
// near as can be to the one behind or to the one before it.
enum class Place { kClean, kBeforeGuard, kBehindGuard };

class Block {
 public:
  Block(std::size_t bytes, Place place) {
    const auto page = std::size_t(sysconf(_SC_PAGESIZE));
    inside_ = (bytes / page + 1) * page;
    mapped_ = inside_ + 2 * page;
    base_ = static_cast<unsigned char*>(
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(base_ != MAP_FAILED);
    first_ = base_ + page;
    if (place != Place::kClean) {
      std::memset(first_, kFill, inside_);  // all ones: a NaN of either type
      mprotect(base_, page, PROT_NONE);
      mprotect(first_ + inside_, page, PROT_NONE);
    }
    fill_ = place == Place::kClean ? 0 : kFill;
    data_ = place == Place::kBeforeGuard ? first_ + inside_ - bytes : first_;
    bytes_ = bytes;
  }
  ~Block() { munmap(base_, mapped_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  unsigned char* data() { return data_; }
  std::vector<unsigned char> bytes() const { return {data_, data_ + bytes_}; }
  bool neighbours_intact() const {
    for (const unsigned char* p = first_; p < first_ + inside_; ++p)
      if ((p < data_ || p >= data_ + bytes_) && *p != fill_) return false;
    return true;
  }

 private:
  static constexpr unsigned char kFill = 0xff;
  unsigned char *base_, *first_, *data_, fill_;
  std::size_t inside_, mapped_, bytes_;
};

// The operands of one call. The same calls give the same numbers whatever the place.
template <class T>
class Memory {
 public:
  explicit Memory(Place place) : place_(place) {}

  const T* in(int64_t n, double low = -1, double high = 1) {
    T* x = block<T>(n);
    for (int64_t i = 0; i < n; ++i) x[i] = T(low + (high - low) * rng_.uniform());
    return x;
  }
  template <class U = T>
  U* out(int64_t n, double fill = -77) {
    U* y = block<U>(n);
    std::fill_n(y, n, U(fill));
    return y;
  }
  const int64_t* ids(int64_t n, int64_t V) {
    int64_t* x = block<int64_t>(n);
    for (int64_t i = 0; i < n; ++i) x[i] = rng_.below(V);
    return x;
  }
  std::vector<std::vector<unsigned char>> all() const {
    std::vector<std::vector<unsigned char>> bytes;
    for (const auto& b : blocks_) bytes.push_back(b->bytes());
    return bytes;
  }
  bool neighbours_intact() const {
    for (const auto& b : blocks_)
      if (!b->neighbours_intact()) return false;
    return true;
  }

 private:
  template <class U>
  U* block(int64_t n) {
    blocks_.push_back(std::make_unique<Block>(std::size_t(n) * sizeof(U), place_));
    return reinterpret_cast<U*>(blocks_.back()->data());
  }
  Place place_;
  Generator rng_{.seed = 11};
  std::vector<std::unique_ptr<Block>> blocks_;
};

// Runs the call in each place: every operand's bytes are the same, and nothing beside them changes.
template <class T, class Call>
void check(const char* name, int64_t N, int64_t C, Call call) {
  INFO(name, ", ", N, " rows of ", C, ", ", sizeof(T), " bytes an element");
  std::vector<std::vector<unsigned char>> clean;
  for (const Place place : {Place::kClean, Place::kBeforeGuard, Place::kBehindGuard}) {
    Memory<T> m(place);
    call(m, N, C);
    if (place == Place::kClean) clean = m.all();
    CHECK(m.all() == clean);
    CHECK(m.neighbours_intact());
  }
}

template <class T>
Strided<T> strided(T* data, const Shape& sizes, const Shape& strides) {
  Strided<T> s{data, sizes.numel(), {}, {}, sizes.dim(), strides == row_major(sizes)};
  std::copy_n(sizes.begin(), sizes.dim(), s.sizes);
  std::copy_n(strides.begin(), strides.dim(), s.strides);
  return s;
}
template <class T>
Strided<T> rows(T* data, const Shape& sizes) {
  return strided(data, sizes, row_major(sizes));
}

template <class F>
void for_all_sizes(F f) {
  for (const int64_t C : kLengths)
    for (const int64_t N : {1, 3}) f(N, C);
}

}  // namespace

TEST_CASE_TEMPLATE("guard pages: norms and softmax (ggml-org/llama.cpp PR#3194)", T, float,
                   double) {
  for_all_sizes([](int64_t rows_n, int64_t length) {
    check<T>("softmax", rows_n, length, [](Memory<T>& m, int64_t N, int64_t C) {
      T* y = m.out(N * C);
      cpu::softmax_forward<T>(y, m.in(N * C, -9, 9), N, C);
      cpu::softmax_backward<T>(m.out(N * C), m.in(N * C), y, N, C);
    });
    check<T>("layer_norm", rows_n, length, [](Memory<T>& m, int64_t N, int64_t C) {
      T *y = m.out(N * C), *mean = m.out(2 * N), *rstd = m.out(N);
      const T *x = m.in(N * C), *w = m.in(C);
      cpu::layer_norm_forward<T>(y, mean, rstd, x, w, m.in(C), N, C, 1e-5);
      cpu::layer_norm_backward<T>(m.out(N * C), m.out(C), m.out(C), m.out(row_blocks(N) * 2 * C),
                                  m.in(N * C), x, w, mean, rstd, N, C);
      cpu::layer_norm_forward<T>(y, mean, rstd, x, w, nullptr, N, C, 1e-5);
      cpu::layer_norm_backward<T>(m.out(N * C), nullptr, nullptr, nullptr, m.in(N * C), x, w, mean,
                                  rstd, N, C);
    });
    check<T>("rms_norm", rows_n, length, [](Memory<T>& m, int64_t N, int64_t C) {
      T *y = m.out(N * C), *rstd = m.out(N);
      const T *x = m.in(N * C), *w = m.in(C);
      cpu::rms_norm_forward<T>(y, rstd, x, w, N, C, 1e-5);
      cpu::rms_norm_backward<T>(m.out(N * C), m.out(C), m.out(row_blocks(N) * C), m.in(N * C), x, w,
                                rstd, N, C);
    });
  });
}

TEST_CASE_TEMPLATE("guard pages: loss, rows of a table (ggml-org/llama.cpp PR#3194)", T, float,
                   double) {
  for_all_sizes([](int64_t rows_n, int64_t length) {
    check<T>("cross_entropy", rows_n, length, [](Memory<T>& m, int64_t N, int64_t C) {
      T *loss = m.out(1), *lse = m.out(2 * N);
      const T* x = m.in(N * C, -9, 9);
      const int64_t* targets = m.ids(N, C);
      cpu::cross_entropy_forward<T>(loss, m.template out<double>(N), lse, x, targets, N, C, -1, 0.1,
                                    double(N));
      cpu::cross_entropy_backward<T>(m.out(N * C), m.in(1), x, targets, lse, N, C, -1, 0.1,
                                     double(N));
    });
    check<T>("embedding", rows_n, length, [](Memory<T>& m, int64_t N, int64_t C) {
      const int64_t* ids = m.ids(N, 5);
      cpu::embedding<T>(m.out(N * C), m.in(5 * C), ids, N, C);
      cpu::scatter_add_rows<T>(m.out(5 * C), m.in(N * C), ids, N, C, 5);
    });
  });
}

TEST_CASE_TEMPLATE("guard pages: rows of heads (ggml-org/llama.cpp PR#3194)", T, float, double) {
  for_all_sizes([](int64_t rows_n, int64_t length) {
    check<T>("xsa", rows_n, length, [](Memory<T>& m, int64_t N, int64_t D) {
      constexpr int64_t H = 4, Hkv = 2;
      const T *y = m.in(N * H * D), *v = m.in(N * Hkv * D), *gate = m.in(H);
      cpu::xsa_forward<T>(m.out(N * H * D), y, v, gate, N, H, Hkv, D, 0, 1e-6);
      cpu::xsa_backward<T>(m.out(N * H * D), m.out(N * Hkv * D), m.out(H), m.in(N * H * D), y, v,
                           gate, N, H, Hkv, D, 0, 1e-6);
    });
    check<T>("rope", rows_n, 2 * length, [](Memory<T>& m, int64_t N, int64_t D) {
      for (const bool adjacent : {false, true})
        cpu::rope<T>(m.out(N * (D + 3)), m.in(N * (D + 3)), 1, N, D + 3, 1, D, adjacent, 10000, 7,
                     false);
    });
  });
  for (const int64_t D : {1, 3, 31, 33, 64})
    for (const int64_t length : {1, 3, 31, 33})
      check<T>("attention", length, D, [](Memory<T>& m, int64_t length_T, int64_t head) {
        constexpr int64_t H = 2;
        const int64_t n = length_T * H * head;
        const Shape shape{1, length_T, H, head};
        const T *q = m.in(n), *k = m.in(n), *v = m.in(n), *gate = m.in(H), *sink = m.in(H);
        T *z = m.out(n), *lse = m.out(H * length_T), *c = m.out(H * length_T);
        cpu::attention_forward<T>(z, lse, c, rows(q, shape), rows(k, shape), rows(v, shape), gate,
                                  sink, true, 0.3, 0, 1e-6);
        T *dq = m.out(n), *dk = m.out(n), *dv = m.out(n), *dgate = m.out(H), *dsink = m.out(H);
        cpu::attention_backward<T>(rows(dq, shape), rows(dk, shape), rows(dv, shape), dgate, dsink,
                                   m.in(n), z, lse, c, rows(q, shape), rows(k, shape),
                                   rows(v, shape), gate, sink, true, 0.3, 0, 1e-6);
      });
}

TEST_CASE_TEMPLATE("guard pages: elementwise kernels and sums (ggml-org/llama.cpp PR#3194)", T,
                   float, double) {
  using Unary = void (*)(Strided<T>, Strided<const T>);
  using Binary = void (*)(Strided<T>, Strided<const T>, Strided<const T>);
  const Unary unary[] = {cpu::neg<T>,   cpu::exp<T>,  cpu::log<T>, cpu::sqrt<T>,
                         cpu::rsqrt<T>, cpu::tanh<T>, cpu::erf<T>, cpu::copy<T>};
  const Binary binary[] = {cpu::add<T>, cpu::sub<T>, cpu::mul<T>, cpu::div<T>};
  for_all_sizes([&](int64_t rows_n, int64_t length) {
    for (const Unary kernel : unary)
      check<T>("unary", rows_n, length, [=](Memory<T>& m, int64_t N, int64_t C) {
        kernel(rows(m.out(N * C), {N, C}), rows(m.in(N * C, 0.5, 2), {N, C}));
        // A transposed operand, and one element of three.
        kernel(rows(m.out(N * C), {C, N}), strided(m.in(N * C, 0.5, 2), {C, N}, {1, C}));
        kernel(rows(m.out(N * C), {N, C}),
               strided(m.in(3 * N * C - 2, 0.5, 2), {N, C}, {3 * C, 3}));
      });
    for (const Binary kernel : binary)
      check<T>("binary", rows_n, length, [=](Memory<T>& m, int64_t N, int64_t C) {
        const T *row = m.in(C, 1, 2), *column = m.in(N, 1, 2), *all = m.in(N * C, 1, 2);
        kernel(rows(m.out(N * C), {N, C}), rows(all, {N, C}), rows(all, {N, C}));
        kernel(rows(m.out(N * C), {N, C}), rows(all, {N, C}), strided(row, {N, C}, {0, 1}));
        kernel(rows(m.out(N * C), {N, C}), strided(column, {N, C}, {1, 0}), rows(all, {N, C}));
        kernel(strided(m.out(N * C), {C, N}, {1, C}), strided(row, {C, N}, {1, 0}),
               strided(column, {C, N}, {0, 1}));
      });
    check<T>("gelu", rows_n, length, [](Memory<T>& m, int64_t N, int64_t C) {
      cpu::gelu_forward<T>(m.out(N * C), m.in(N * C), N * C);
      cpu::gelu_backward<T>(m.out(N * C), m.in(N * C), m.in(N * C), N * C);
      cpu::gelu_tanh_forward<T>(m.out(N * C), m.in(N * C), N * C);
      cpu::gelu_tanh_backward<T>(m.out(N * C), m.in(N * C), m.in(N * C), N * C);
    });
    check<T>("sum", rows_n, length, [](Memory<T>& m, int64_t N, int64_t C) {
      cpu::sum<T>(m.out(N), rows(m.in(N * C), {N, C}), N, C);
      cpu::sum<T>(m.out(C), strided(m.in(N * C), {C, N}, {1, C}), C, N);
      cpu::sum<T>(m.out(1), rows(m.in(N * C), {N, C}), 1, N * C);
    });
    check<T>("adamw", rows_n, length, [](Memory<T>& m, int64_t N, int64_t C) {
      cpu::adamw<T>(m.out(N * C, 1), m.out(N * C, 0), m.out(N * C, 0), m.in(N * C), N * C, 1e-2,
                    0.9, 0.999, 1e-8, 0.1, 1, 1);
      cpu::sum_squares<T>(m.template out<double>(1), m.in(N * C), N * C, 0.5);
    });
    check<T>("random", rows_n, length, [](Memory<T>& m, int64_t N, int64_t C) {
      cpu::dropout<T>(m.out(N * C), m.in(N * C), N * C, 0.5, 1, 2, 3);
      cpu::uniform<T>(m.out(N * C), N * C, 1, 2, 3);
      cpu::normal<T>(m.out(N * C), N * C, 1, 2, 3);
    });
  });
}

TEST_CASE_TEMPLATE("guard pages: products (ggml-org/llama.cpp PR#3194)", T, float, double) {
  for (const int64_t M : {1, 3, 31, 33})
    for (const int64_t N : {1, 3, 31, 33})
      for (const int64_t K : {1, 3, 31, 33, 1023})
        for (const bool turned : {false, true}) {
          check<T>("gemm", M, N, [=](Memory<T>& m, int64_t, int64_t) {
            const T *a = m.in(M * K), *b = m.in(K * N);
            const Matrix<const T> left =
                turned ? Matrix<const T>{a, 1, M} : Matrix<const T>{a, K, 1};
            const Matrix<const T> right =
                turned ? Matrix<const T>{b, 1, K} : Matrix<const T>{b, N, 1};
            gemm<T>({m.out(M * N), N, 1}, left, right, M, N, K);
            gemm<T>({m.out(M * N, 2), 1, M}, left, right, M, N, K, 1, true);
          });
        }
}

TEST_CASE("guard pages: the guards guard (ggml-org/llama.cpp PR#3194)") {
  // A kernel that writes beside its operand is seen by the neighbours; one that reads there gets a
  // NaN for the 0 of clean ones.
  Memory<float> m(Place::kBehindGuard);
  float* y = m.out(3);
  CHECK(m.neighbours_intact());
  CHECK(std::isnan(y[3]));
  y[3] = 0;
  CHECK_FALSE(m.neighbours_intact());
  Memory<double> before(Place::kBeforeGuard);
  CHECK(std::isnan(before.out(3)[-1]));
  CHECK(Memory<double>(Place::kClean).out(3)[3] == 0);
}
