// What this machine can do at most, measured with all threads: the limits that speeds are shares
// of.
#pragma once

namespace pellucid {

// Multiply-adds of float32 in registers, 2 operations each, in operations a second.
double measure_fma_peak();
// Bytes read and bytes written by copying arrays too large for any cache, in bytes a second.
double measure_copy_bandwidth();

}  // namespace pellucid
