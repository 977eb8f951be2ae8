// Files that a learner could hand in for exercise 01, and a search in what is said of them.
#pragma once
#include "demos/program.h"

inline const std::string kSource = PELLUCID_SOURCE_DIR;
inline const std::string kStub = kSource + "/tutorials/01-tensors/exercise/strides.cpp";
inline const std::string kLibrary = kSource + "/tensor/strides.cpp";

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The library's file with one mistake.
inline std::string mistaken() {
  std::string text = slurp(kLibrary);
  const std::string right = "index[d] * strides[d]";
  text.replace(text.find(right), right.size(), "index[d] + strides[d]");
  return text;
}
