// The types of a tensor's elements.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace pellucid {

enum class DType { kFloat32, kFloat64, kInt64, kBool };
using enum DType;

template <class T>
constexpr DType dtype_of() {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> ||
                    std::is_same_v<T, int64_t> || std::is_same_v<T, bool>,
                "a tensor's elements are float, double, int64_t or bool");
  return std::is_same_v<T, float>    ? kFloat32
         : std::is_same_v<T, double> ? kFloat64
         : std::is_same_v<T, bool>   ? kBool
                                     : kInt64;
}
template <class T>
constexpr DType kDTypeOf = dtype_of<T>();

inline const char* name(DType dtype) {
  return dtype == kFloat32   ? "float32"
         : dtype == kFloat64 ? "float64"
         : dtype == kInt64   ? "int64"
                             : "bool";
}
inline std::size_t item_size(DType dtype) { return dtype == kBool ? 1 : dtype == kFloat32 ? 4 : 8; }
inline bool is_floating(DType dtype) { return dtype == kFloat32 || dtype == kFloat64; }

// Calls f.operator()<T>() with the T of dtype.
template <class F>
decltype(auto) visit(DType dtype, F&& f) {
  switch (dtype) {
    case kFloat32:
      return f.template operator()<float>();
    case kFloat64:
      return f.template operator()<double>();
    case kInt64:
      return f.template operator()<int64_t>();
    default:
      return f.template operator()<bool>();
  }
}

}  // namespace pellucid
