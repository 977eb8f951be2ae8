#include "tutorials/demos/doctor.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "kernels/gemm.h"
#include "kernels/simd.h"
#include "kernels/thread_pool.h"

namespace pellucid::demos {
namespace {

int shortcomings = 0, faults = 0;

// Wrapped at 80 columns.
void line(const char* what, std::string value) {
  constexpr std::size_t kRoom = 80 - 17;
  while (value.size() > kRoom && value.rfind(' ', kRoom) != std::string::npos) {
    const std::size_t end = value.rfind(' ', kRoom);
    std::printf("%-16s %s\n", what, value.substr(0, end).c_str());
    value.erase(0, end + 1);
    what = "";
  }
  std::printf("%-16s %s\n", what, value.c_str());
}
// Something is missing or slower than need be: what, and the command that mends it.
void shortcoming(const std::string& what, const std::string& repair) {
  ++shortcomings;
  std::printf("%-16s ! %s\n%-16s   mend: %s\n", "", what.c_str(), "", repair.c_str());
}

std::string compiler() {
#if defined(__clang__)
  return std::string("clang ") + __clang_version__;
#else
  return std::string("g++ ") + __VERSION__;
#endif
}

// The instruction sets that matter to the kernels, of the build and of this CPU.
#if defined(__x86_64__)
std::string built_for() {
  std::string sets;
#define FEATURE(name) sets += std::string(sets.empty() ? "" : " ") + (name);
#include "cpu_features.inc"
#undef FEATURE
  return sets.empty() ? "x86-64 (sse2)" : sets;
}
int lanes_of_cpu() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") ? 16 : __builtin_cpu_supports("avx2") ? 8 : 4;
}
#else
std::string built_for() { return "this CPU's baseline"; }
int lanes_of_cpu() { return kLanes<float>; }
#endif

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string text; std::getline(info, text);)
    if (text.rfind("model name", 0) == 0) return text.substr(text.find(':') + 2);
  return "unknown";
}

void check_build() {
  line("compiler", compiler());
  line("built as", PELLUCID_BUILD_TYPE ", -march=" PELLUCID_MARCH);
  if (std::strcmp(PELLUCID_BUILD_TYPE, "Release") != 0)
    shortcoming("not a Release build: many times slower", "rm -r build && ./pellucid doctor");
  line("instructions", built_for());
  line("vector width",
       std::to_string(8 * kVectorBytes) + " bits, " + std::to_string(kLanes<float>) + " floats");
  line("CPU", cpu_name());
  if (lanes_of_cpu() > kLanes<float>)
    shortcoming("this CPU has vectors of " + std::to_string(lanes_of_cpu()) +
                    " floats, the build uses " + std::to_string(kLanes<float>),
                "PELLUCID_MARCH=native ./pellucid doctor");
}

void check_threads() {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  line("threads", std::to_string(num_threads()) + " of " + std::to_string(cores) + " cores");
  if (num_threads() < cores && std::getenv("PELLUCID_NUM_THREADS"))
    shortcoming("PELLUCID_NUM_THREADS keeps some cores idle", "unset PELLUCID_NUM_THREADS");
}

// The largest error of a product on one backend, in units of its rounding bound K u sum |a||b|.
double product_error(GemmBackend backend) {
  constexpr int64_t n = 150;
  std::vector<float> a(n * n), b(n * n), c(n * n);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
    b[i] = static_cast<float>(i * 53 % 103) / 51 - 1;
  }
  const GemmBackend before = gemm_backend();
  set_gemm_backend(backend);
  gemm<float>({c.data(), n, 1}, {a.data(), n, 1}, {b.data(), n, 1}, n, n, n);
  set_gemm_backend(before);
  double worst = 0;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      double sum = 0, size = 0;
      for (std::size_t k = 0; k < n; ++k) {
        const double term = static_cast<double>(a[i * n + k]) * static_cast<double>(b[k * n + j]);
        sum += term, size += std::abs(term);
      }
      const double bound = n * 0x1p-24 * size;
      worst = std::max(worst, std::abs(static_cast<double>(c[i * n + j]) - sum) / bound);
    }
  return worst;
}

void check_product(const char* name, GemmBackend backend) {
  const double error = product_error(backend);
  const bool right = error <= 1;
  if (!right) ++faults;
  line(name, right ? "a 150 x 150 product is right" : "a 150 x 150 product is WRONG");
}

void check_blas() {
  line("matrix product", std::string(gemm_backend_name()) + " (PELLUCID_GEMM=native or openblas)");
  check_product("  native", GemmBackend::kNative);
  if (!openblas_config()) {
    line("OpenBLAS", "not found when this was built");
    shortcoming("no second matrix product to compare with",
                "rm -r build && ./pellucid --yes doctor");
    return;
  }
  const std::string config = openblas_config();
  const bool openmp = config.find("USE_OPENMP") != std::string::npos;
  const bool serial = config.find("SINGLE_THREADED") != std::string::npos;
  line("OpenBLAS", config);
  line("", std::string(openmp   ? "OpenMP"
                       : serial ? "serial"
                                : "pthread") +
               " build, runs its " + openblas_corename() + " kernels");
  check_product("  OpenBLAS", GemmBackend::kOpenBlas);
  if (const char* core = std::getenv("OPENBLAS_CORETYPE"))
    line("", "OPENBLAS_CORETYPE=" + std::string(core) + " chose its kernels, not the CPU");
}

// The place of a program on PATH, or "".
std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string rest = path ? path : "";
  rest += ":/usr/local/cuda/bin";
  for (std::size_t begin = 0; begin <= rest.size();) {
    const std::size_t end = std::min(rest.find(':', begin), rest.size());
    const std::string file = rest.substr(begin, end - begin) + "/" + name;
    if (end > begin && access(file.c_str(), X_OK) == 0) return file;
    begin = end + 1;
  }
  return "";
}

void check_cuda() {
  const std::string nvcc = find_program("nvcc");
  const bool gpu = std::filesystem::exists("/proc/driver/nvidia/version");
  line("CUDA", (nvcc.empty() ? "toolkit not found" : "toolkit found: " + nvcc) +
                   (gpu ? "; NVIDIA driver found" : "; no NVIDIA driver") +
                   "; this build computes on the CPU");
  if (gpu && nvcc.empty())
    shortcoming("a GPU is here but not the CUDA Toolkit", "apt-get install nvidia-cuda-toolkit");
}

void check_benchmark() {
  const bool found = PELLUCID_HAS_BENCHMARK;
  line("Google Benchmark", found ? "found" : "not found when this was built");
  if (!found)
    shortcoming("the kernel benchmarks (target bench) were left out",
                "rm -r build && ./pellucid --yes doctor");
}

}  // namespace

int doctor() {
  std::printf("Pellucid " PELLUCID_VERSION "\n");
  check_build();
  check_threads();
  check_blas();
  check_cuda();
  check_benchmark();
  const auto count = [](int n, const char* what) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
  };
  std::printf("\n%s%s, %s\n", shortcomings + faults ? "" : "Everything is there: ",
              count(shortcomings, "shortcoming").c_str(), count(faults, "fault").c_str());
  return faults ? 1 : 0;
}

}  // namespace pellucid::demos
