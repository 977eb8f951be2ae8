// OpenBLAS behind the seam of gemm.h, and the choice between it and our own kernel. Without
// PELLUCID_OPENBLAS there is no choice.
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/gemm.h"
#include "kernels/thread_pool.h"
#ifdef PELLUCID_OPENBLAS
#include <cblas.h>
#endif

namespace pellucid {
namespace {

#ifdef PELLUCID_OPENBLAS
constexpr bool kHasOpenBlas = true;
#else
constexpr bool kHasOpenBlas = false;
#endif

GemmBackend backend_by_default() {
  const char* text = std::getenv("PELLUCID_GEMM");
  const std::string name = text ? text : "";
  if (name.empty() || name == "native") return GemmBackend::kNative;
  if (name != "openblas")
    throw std::invalid_argument("PELLUCID_GEMM: wanted native or openblas; got \"" + name + "\"");
  if (!kHasOpenBlas)
    throw std::invalid_argument(
        "PELLUCID_GEMM=openblas: this build has no OpenBLAS; install libopenblas-dev and build "
        "again, or unset PELLUCID_GEMM");
  return GemmBackend::kOpenBlas;
}

std::atomic<GemmBackend>& backend() {
  static std::atomic<GemmBackend> chosen{backend_by_default()};
  return chosen;
}

// OpenBLAS's own functions, which another BLAS with the same cblas.h does not have.
template <class F>
F* find(const char* symbol) {
  return kHasOpenBlas ? reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, symbol)) : nullptr;
}

const char* ask(const char* symbol) {
  if (!kHasOpenBlas) return nullptr;
  auto* const answer = find<char*()>(symbol);
  return answer ? answer() : "unknown";
}

}  // namespace

GemmBackend gemm_backend() { return backend().load(std::memory_order_relaxed); }

void set_gemm_backend(GemmBackend wanted) {
  if (wanted == GemmBackend::kOpenBlas && !kHasOpenBlas)
    throw std::invalid_argument("set_gemm_backend: this build has no OpenBLAS");
  backend() = wanted;
}

const char* gemm_backend_name() {
  return gemm_backend() == GemmBackend::kOpenBlas ? "openblas" : "native";
}

const char* openblas_config() { return ask("openblas_get_config"); }
const char* openblas_corename() { return ask("openblas_get_corename"); }

#ifdef PELLUCID_OPENBLAS

namespace {

void product(int ta, int tb, int M, int N, int K, const float* a, int lda, const float* b, int ldb,
             float beta, float* c, int ldc) {
  cblas_sgemm(CblasRowMajor, CBLAS_TRANSPOSE(ta), CBLAS_TRANSPOSE(tb), M, N, K, 1, a, lda, b, ldb,
              beta, c, ldc);
}
void product(int ta, int tb, int M, int N, int K, const double* a, int lda, const double* b,
             int ldb, double beta, double* c, int ldc) {
  cblas_dgemm(CblasRowMajor, CBLAS_TRANSPOSE(ta), CBLAS_TRANSPOSE(tb), M, N, K, 1, a, lda, b, ldb,
              beta, c, ldc);
}

// OpenBLAS's threads are ours too: as many, and not more.
void set_thread_budget() {
  static const auto set = find<void(int)>("openblas_set_num_threads");
  static std::atomic<int> budget{0};
  const int threads = num_threads();
  if (set && budget.exchange(threads) != threads) set(threads);
}

// An operand as BLAS takes it: one stride 1, the other at least the extent of its rows.
template <class T>
struct BlasOperand {
  const T* data;
  int transpose, apart;
};

template <class T>
BlasOperand<T> blas_operand(std::vector<T>& copy, Matrix<const T> x, int64_t rows, int64_t cols) {
  const auto fits = [](int64_t apart, int64_t extent, int64_t count) {
    return (apart >= extent || count == 1) && apart <= INT32_MAX;
  };
  if ((x.col == 1 || cols == 1) && fits(x.row, cols, rows))
    return {x.data, CblasNoTrans, int(std::max(x.row, cols))};
  if ((x.row == 1 || rows == 1) && fits(x.col, rows, cols))
    return {x.data, CblasTrans, int(std::max(x.col, rows))};
  copy.resize(std::size_t(rows * cols));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) copy[i * cols + j] = *x.at(0, i, j).data;
  return {copy.data(), CblasNoTrans, int(cols)};
}

}  // namespace

template <class T>
void detail::gemm_openblas(Matrix<T> c, Matrix<const T> a, Matrix<const T> b, int64_t M, int64_t N,
                           int64_t K, int64_t batch, bool add, const Epilogue& epilogue) {
  // Columns of c contiguous: c^T = b^T a^T.
  if (N == 1) c.col = 1;
  if (c.col != 1) {
    const Epilogue swapped = [&](int64_t s, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
      epilogue(s, j0, j1, i0, i1);
    };
    return gemm_openblas(c.transposed(), b.transposed(), a.transposed(), N, M, K, batch, add,
                         epilogue ? swapped : epilogue);
  }

  // One b for the whole batch and rows that follow each other: one tall product.
  if (M == 1) c.row = c.batch, a.row = a.batch;
  if (b.batch == 0 && a.batch == M * a.row && c.batch == M * c.row && !epilogue &&
      M * batch <= INT32_MAX) {
    M *= batch;
    batch = 1;
  }

  set_thread_budget();
  std::vector<T> copy_a, copy_b;
  for (int64_t s = 0; s < batch; ++s) {
    const auto x = blas_operand(copy_a, a.at(s, 0, 0), M, K);
    const auto y = blas_operand(copy_b, b.at(s, 0, 0), K, N);
    product(x.transpose, y.transpose, int(M), int(N), int(K), x.data, x.apart, y.data, y.apart,
            T(add), c.at(s, 0, 0).data, int(std::max(c.row, N)));
    if (epilogue) parallel_for(M, 64, [&](int64_t i0, int64_t i1) { epilogue(s, i0, i1, 0, N); });
  }
}

#else

template <class T>
void detail::gemm_openblas(Matrix<T>, Matrix<const T>, Matrix<const T>, int64_t, int64_t, int64_t,
                           int64_t, bool, const Epilogue&) {
  throw std::logic_error("gemm: this build has no OpenBLAS");
}

#endif

#define INSTANTIATE_GEMM(T)                                                                 \
  template void detail::gemm_openblas(Matrix<T>, Matrix<const T>, Matrix<const T>, int64_t, \
                                      int64_t, int64_t, int64_t, bool, const Epilogue&)
INSTANTIATE_GEMM(float);
INSTANTIATE_GEMM(double);

}  // namespace pellucid
