// `pellucid inspect`: a trained model's parameters, and the attention similarity of its layers.
#pragma once
#include <string>

namespace pellucid::report {

struct InspectArguments {
  std::string model;       // folder of the run
  std::string data, text;  // what to measure the similarity on, instead of the run's own text
  bool heads = false;      // a line a head too
};
// Prints two tables. Returns the exit code.
int inspect(const InspectArguments& arguments);

}  // namespace pellucid::report
