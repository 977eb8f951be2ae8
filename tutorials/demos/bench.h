// `pellucid bench`: how fast this machine multiplies matrices and trains, as shares of its limits.
#pragma once

namespace pellucid::demos {

int run_bench(bool quick);  // returns the exit code

}  // namespace pellucid::demos
