// Anomaly mode: the op that first makes a NaN or an infinity, forward or backward, throws a
// std::invalid_argument that names the op, the shapes, the element and the line that called the op.
//
//   AnomalyGuard guard;      // in this thread, while it lives; around forward and backward
//   model.loss(x).backward();
//
//   log made -inf at (1, 2) of its result of shape (2, 3), from inputs of shape (2, 3) without
//     at fit.cpp:12, in loss
//
// A NaN is made where no input has one, an infinity where every input is finite: what came as a
// constant, as masked_fill's value does, was not made by an op. The lines need
// addr2line (binutils; on macOS atos) and a program compiled with -g1 or -g; tail calls hide theirs
// without -fno-optimize-sibling-calls. Every tensor is looked at, so the mode is slow; off, it
// costs one thread-local test an op.
#pragma once

namespace pellucid {

enum class Anomaly { kOff, kNan, kNanOrInf };  // what throws: nothing, a NaN, either

struct AnomalyGuard {
  explicit AnomalyGuard(Anomaly what = Anomaly::kNanOrInf);  // kOff: an exception inside a guard
  ~AnomalyGuard();
  AnomalyGuard(const AnomalyGuard&) = delete;
  const Anomaly before;  // so that it cannot be assigned either
};

}  // namespace pellucid
