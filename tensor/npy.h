// .npy: one array in NumPy's own format. float32, float64, int64 and bool; little-endian.
#pragma once
#include <string>

#include "tensor/tensor.h"

namespace pellucid {

// Versions 1.0 and 2.0, either order of the elements. Throws std::runtime_error naming the file and
// the fault; nothing is allocated before the header was found to be right.
Tensor load_npy(const std::string& path);
void save_npy(const std::string& path, const Tensor& x);  // version 1.0; atomic (files.h)

}  // namespace pellucid
