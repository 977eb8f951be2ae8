// gemm against a wider reference, element by element:
//   |c - c_ref| <= gamma_n (|c_old| + sum_k |a_ik| |b_kj|),  gamma_n = n u / (1 - n u),  n = K + 2,
// which holds for any order of the sums (Higham, Accuracy and Stability, section 3.1), and from 64
// terms on <= 8 u (...), which holds for random numbers and several partial sums. The reference is
// double for float and long double for double. Every operand touches a forbidden page, the gaps of
// its layout are NaN, and those of c must still be NaN afterwards.
#include "kernels/gemm.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "kernels/simd.h"
#include "kernels/thread_pool.h"

using namespace pellucid;

namespace {

struct Threads {
  int before = num_threads();
  explicit Threads(int n) { set_num_threads(n); }
  ~Threads() { set_num_threads(before); }
};
struct Backend {
  GemmBackend before = gemm_backend();
  explicit Backend(GemmBackend b) { set_gemm_backend(b); }
  ~Backend() { set_gemm_backend(before); }
};

// ThreadSanitizer cannot see how OpenBLAS's threads wait for each other.
#if defined(__SANITIZE_THREAD__)
constexpr bool kTryOpenBlas = false;
#else
constexpr bool kTryOpenBlas = true;
#endif
const std::vector<GemmBackend>& backends() {
  static const std::vector<GemmBackend> all =
      kTryOpenBlas && openblas_config() ? std::vector{GemmBackend::kNative, GemmBackend::kOpenBlas}
                                        : std::vector{GemmBackend::kNative};
  return all;
}

// Memory between two forbidden pages; the data touch the upper one, or the lower one.
template <class T>
class Guarded {
 public:
  Guarded(int64_t count, bool at_end) {
    const size_t page = size_t(sysconf(_SC_PAGESIZE)), bytes = size_t(count) * sizeof(T);
    size_ = (bytes + page - 1) / page * page + 2 * page;
    base_ = static_cast<char*>(
        mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_, page, PROT_NONE);
    mprotect(base_ + size_ - page, page, PROT_NONE);
    data = reinterpret_cast<T*>(at_end ? base_ + size_ - page - bytes : base_ + page);
    std::fill_n(data, count, std::numeric_limits<T>::quiet_NaN());
  }
  ~Guarded() { munmap(base_, size_); }
  Guarded(const Guarded&) = delete;
  T* data;

 private:
  char* base_;
  size_t size_;
};

uint64_t state = 1;
double uniform() {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return double(int64_t(state >> 11)) / double(int64_t{1} << 52) - 1;
}

// Layouts of one operand: rows contiguous, columns contiguous, each with or without a gap, and a
// view with neither stride 1.
struct Layout {
  bool columns;
  int64_t gap, inner;
};
const Layout kPlain{false, 0, 1}, kColumns{true, 0, 1};
const Layout kLayouts[] = {kPlain, kColumns, {false, 3, 1}, {true, 5, 1}, {false, 1, 2}};

template <class T>
struct Operand {
  Matrix<T> m;
  int64_t count = 1;
  Operand(int64_t batch, int64_t rows, int64_t cols, Layout l, bool broadcast) {
    const int64_t inner = l.columns ? rows : cols, outer = l.columns ? cols : rows;
    const int64_t step = std::max<int64_t>(1, inner * l.inner + l.gap);
    m = {nullptr, l.columns ? l.inner : step, l.columns ? step : l.inner,
         broadcast ? 0 : step * outer + l.gap};
    if (batch > 0 && rows > 0 && cols > 0)
      count = (batch - 1) * m.batch + (rows - 1) * m.row + (cols - 1) * m.col + 1;
  }
};

struct Sizes {
  int64_t batch, M, N, K;
};

double worst = 0;  // |c - c_ref| / (u G), of the products with at least 64 terms in float

template <class T>
void check(Sizes sizes, Layout la, Layout lb, Layout lc, bool add, bool broadcast_b) {
  using Wide = std::conditional_t<sizeof(T) == 4, double, long double>;
  const auto [batch, M, N, K] = sizes;
  const bool at_end = state & 4096;
  Operand<T> a(batch, M, K, la, false), b(batch, K, N, lb, broadcast_b), c(batch, M, N, lc, false);
  Guarded<T> am(a.count, at_end), bm(b.count, at_end), cm(c.count, at_end);
  a.m.data = am.data, b.m.data = bm.data, c.m.data = cm.data;
  for (int64_t s = 0; s < batch; ++s) {
    for (int64_t i = 0; i < M; ++i)
      for (int64_t k = 0; k < K; ++k) *a.m.at(s, i, k).data = T(uniform());
    for (int64_t k = 0; k < K; ++k)
      for (int64_t j = 0; j < N; ++j) *b.m.at(s, k, j).data = T(uniform());
    for (int64_t i = 0; i < M; ++i)
      for (int64_t j = 0; j < N; ++j) *c.m.at(s, i, j).data = add ? T(uniform()) : T(NAN);
  }
  const std::vector<T> before(cm.data, cm.data + c.count);
  gemm<T>(c.m, {am.data, a.m.row, a.m.col, a.m.batch}, {bm.data, b.m.row, b.m.col, b.m.batch}, M, N,
          K, batch, add);

  const Wide u = std::numeric_limits<T>::epsilon() / 2, n = Wide(K + 2);
  const Wide gamma = K < 64 ? n * u / (1 - n * u) : std::min(8 * u, n * u / (1 - n * u));
  std::vector<bool> inside(size_t(c.count), false);
  int64_t wrong = 0, touched = 0;
  for (int64_t s = 0; s < batch; ++s)
    for (int64_t i = 0; i < M; ++i)
      for (int64_t j = 0; j < N; ++j) {
        const int64_t at = c.m.at(s, i, j).data - cm.data;
        Wide sum = add ? Wide(before[size_t(at)]) : 0, size = std::abs(sum);
        for (int64_t k = 0; k < K; ++k) {
          const Wide term = Wide(*a.m.at(s, i, k).data) * Wide(*b.m.at(s, k, j).data);
          sum += term, size += std::abs(term);
        }
        inside[size_t(at)] = true;
        const Wide error = std::abs(Wide(cm.data[at]) - sum);
        wrong += !(error <= gamma * size);
        if (sizeof(T) == 4 && K >= 64) worst = std::max(worst, double(error / (u * size)));
      }
  for (int64_t i = 0; i < c.count; ++i) touched += !inside[size_t(i)] && !std::isnan(cm.data[i]);

  INFO(gemm_backend_name(), ", ", sizeof(T), " bytes, batch ", batch, ", ", M, " x ", N, " x ", K);
  INFO("strides a ", a.m.row, " ", a.m.col, ", b ", b.m.row, " ", b.m.col, ", c ", c.m.row, " ",
       c.m.col, add ? ", added" : "");
  CHECK(wrong == 0);
  CHECK(touched == 0);
}

// Sizes near the tile with pairs of layouts: all of them, or the next of them for each size.
template <class T>
void check_near_tile(bool all) {
  int64_t at = 0;
  for (int64_t M : {0, 1, 2, 5, 7, 8, 9, 15, 29})
    for (int64_t N : {0, 1, 3, 8, 17, 33, 65})
      for (int64_t K : {0, 1, 2, 7, 16, 19, 67})
        for (int64_t pair = 0; pair < (all ? 25 : 2); ++pair, ++at) {
          const int64_t p = all ? pair : at * 7 % 25;
          check<T>({1, M, N, K}, kLayouts[p % 5], kLayouts[p / 5], kPlain, (M + N + K) % 2, false);
        }
}

// Column-contiguous and padded c, batches, one b for the whole batch.
template <class T>
void check_batches() {
  for (const Layout& lc : {kPlain, kColumns, Layout{false, 3, 1}, Layout{true, 2, 1}})
    for (int64_t batch : {0, 1, 2, 3, 9})
      for (int64_t M : {1, 6, 31})
        for (int64_t N : {1, 4, 40})
          for (bool broadcast : {false, true}) {
            check<T>({batch, M, N, 21}, kPlain, kColumns, lc, false, broadcast);
            check<T>({batch, M, N, 21}, kPlain, kPlain, lc, true, broadcast);
            check<T>({batch, M, N, 21}, kColumns, kPlain, lc, true, broadcast);
          }
}

// More than one block in every direction; long K; strides that are multiples of 4096 bytes.
template <class T>
void check_blocks(bool all) {
  bool add = false;
  for (const Layout& la : {kPlain, kColumns})
    for (const Layout& lb : {kPlain, kColumns})
      for (int repeat = 0; repeat < (all ? 2 : 1); ++repeat, add = !add)
        for (Sizes s : {Sizes{1, 231, 401, 523},
                        {1, 37, 45, 2500},
                        {1, 64, 70, 1024},
                        {1, 1024, 70, 64},
                        {1, 3, 700, 300},
                        {1, 700, 3, 300}})
          check<T>(s, la, lb, kPlain, add, false);
}

template <class T>
std::vector<T> random_numbers(int64_t count) {
  std::vector<T> x(static_cast<size_t>(count));
  for (T& v : x) v = T(uniform());
  return x;
}

}  // namespace

TEST_CASE_TEMPLATE("gemm is right near the tile's size in every layout", T, float, double) {
  for (GemmBackend backend : backends()) {
    const Backend use(backend);
    check_near_tile<T>(false);
  }
}

TEST_CASE_TEMPLATE("gemm is right for batches and for any layout of c", T, float, double) {
  for (GemmBackend backend : backends())
    for (int threads : {1, 2}) {
      const Backend use(backend);
      const Threads of(threads);
      check_batches<T>();
    }
}

TEST_CASE_TEMPLATE("gemm is right for many blocks and a long K", T, float, double) {
  for (GemmBackend backend : backends()) {
    const Backend use(backend);
    worst = 0;
    check_blocks<T>(false);
    if (sizeof(T) == 4)
      std::printf("FIGURE | gemm (%s), worst error over K >= 64 random terms | %.2f u G, limit 8\n",
                  gemm_backend_name(), worst);
  }
}

TEST_CASE_TEMPLATE("long: gemm, all sizes with all layouts", T, float, double) {
  for (GemmBackend backend : backends())
    for (int threads : {1, 2}) {
      const Backend use(backend);
      const Threads of(threads);
      check_near_tile<T>(true);
      check_blocks<T>(true);
    }
}

TEST_CASE_TEMPLATE("gemm gives the same bytes for any number of threads", T, float, double) {
  const Backend native(GemmBackend::kNative);
  for (Sizes s : {Sizes{1, 128, 128, 2048},
                  {1, 131, 77, 4099},
                  {1, 384, 1152, 700},
                  {1, 2048, 128, 384},
                  {1, 3, 1000, 700},
                  {5, 33, 65, 129},
                  {40, 17, 9, 31}}) {
    const auto [batch, M, N, K] = s;
    const std::vector<T> a = random_numbers<T>(batch * M * K), b = random_numbers<T>(batch * K * N);
    for (bool ta : {false, true})
      for (bool tb : {false, true}) {
        std::vector<T> first;
        for (int threads : {1, 2, 3, 7, 2}) {
          const Threads of(threads);
          std::vector<T> c(size_t(batch * M * N), T(NAN));
          gemm<T>({c.data(), N, 1, M * N}, {a.data(), ta ? 1 : K, ta ? M : 1, M * K},
                  {b.data(), tb ? 1 : N, tb ? K : 1, K * N}, M, N, K, batch);
          if (first.empty()) first = c;
          INFO(threads, " threads, ", batch, " of ", M, " x ", N, " x ", K);
          CHECK(!std::memcmp(first.data(), c.data(), c.size() * sizeof(T)));
        }
      }
  }
}

TEST_CASE("the epilogue sees every element once, complete") {
  const Threads of(3);
  struct Case {
    Sizes sizes;
    bool columns;
  };
  for (GemmBackend backend : backends())
    for (Case each : {Case{{1, 300, 500, 600}, false},
                      {{1, 40, 50, 3000}, false},
                      {{5, 4, 300, 64}, false},
                      {{11, 30, 20, 10}, false},
                      {{2, 60, 70, 80}, true},
                      {{1, 300, 4, 64}, false},
                      {{2, 3, 4, 0}, false}}) {
      const Backend use(backend);
      const auto [batch, M, N, K] = each.sizes;
      std::vector<float> a(size_t(batch * M * K), 0.5f), b(size_t(batch * K * N), 2.0f),
          c(size_t(batch * M * N));
      const Matrix<float> out{c.data(), each.columns ? 1 : N, each.columns ? M : 1, M * N};
      gemm<float>(out, {a.data(), K, 1, M * K}, {b.data(), 1, K, K * N}, M, N, K, batch, false,
                  [&](int64_t z, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
                    for (int64_t i = i0; i < i1; ++i)
                      for (int64_t j = j0; j < j1; ++j) *out.at(z, i, j).data += float(i - j);
                  });
      int64_t wrong = 0;
      for (int64_t z = 0; z < batch; ++z)
        for (int64_t i = 0; i < M; ++i)
          for (int64_t j = 0; j < N; ++j) wrong += *out.at(z, i, j).data != float(K + i - j);
      INFO(gemm_backend_name(), ", ", batch, " of ", M, " x ", N, " x ", K);
      CHECK(wrong == 0);
    }
}

TEST_CASE("two callers at once do not disturb each other") {
  const Threads of(3);
  for (GemmBackend backend : backends()) {
    const Backend use(backend);
    auto caller = [](bool* right) {
      std::vector<float> a(90 * 90, 1), b(90 * 400, 1), c(90 * 400);
      for (int repeat = 0; repeat < 100; ++repeat) {
        gemm<float>({c.data(), 400, 1}, {a.data(), 90, 1}, {b.data(), 400, 1}, 90, 400, 90);
        for (float x : c) *right = *right && x == 90.0f;
      }
    };
    bool right[2] = {true, true};
    std::thread x(caller, &right[0]), y(caller, &right[1]);
    x.join(), y.join();
    CHECK(right[0]);
    CHECK(right[1]);
  }
}

TEST_CASE("gemm serves from inside a block, whatever the backend") {
  const Threads of(2);
  for (GemmBackend backend : backends()) {
    const Backend use(backend);
    const std::vector<float> a(64 * 64, 1);
    std::vector<float> c(8 * 64 * 64);
    parallel_for(8, 1, [&](int64_t s, int64_t) {
      gemm<float>({&c[s * 64 * 64], 64, 1}, {a.data(), 64, 1}, {a.data(), 64, 1}, 64, 64, 64);
    });
    CHECK(std::all_of(c.begin(), c.end(), [](float x) { return x == 64.0f; }));
  }
}

TEST_CASE("no terms: zeros, or what was there") {
  for (bool add : {false, true}) {
    std::vector<float> c(3 * 2 * 3, 7.0f), none(1);
    gemm<float>({c.data(), 3, 1, 6}, {none.data(), 0, 1}, {none.data(), 3, 1}, 2, 3, 0, 3, add);
    CHECK(std::all_of(c.begin(), c.end(), [&](float x) { return x == (add ? 7.0f : 0.0f); }));
  }
}
