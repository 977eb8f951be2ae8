// safetensors: named tensors in one file, as Hugging Face's library writes and reads them.
//
//   8 bytes   N, the header's length, little-endian
//   N bytes   JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...,
//             "__metadata__": {"key": "text", ...}}
//   the rest  the tensors' bytes, row-major; the offsets count from here and tile it exactly
#pragma once
#include <map>
#include <string>

#include "tensor/tensor.h"

namespace pellucid {

struct SafeTensors {
  std::map<std::string, Tensor> tensors;  // float32, float64, int64, bool
  std::map<std::string, std::string> metadata;
};

// Both throw std::runtime_error naming the file and the fault. Nothing is allocated for a tensor
// before the whole header was found to be right.
SafeTensors load_safetensors(const std::string& path);
void save_safetensors(const std::string& path, const SafeTensors& file);  // atomic (files.h)

}  // namespace pellucid
