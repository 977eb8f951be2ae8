// `pellucid demo`: a small GPT learns to tell stories from an embedded grammar (stories.h), whose
// best possible loss is known, beside a 5-gram that has read the same characters.
#pragma once
#include <cstdint>
#include <string>

namespace pellucid::demos {

struct DemoArguments {
  std::string attention = "xsa";
  uint64_t seed = 1;
  double minutes = 4;   // of training; what is measured before and after takes some seconds more
  std::string out;      // a folder to keep the run in (demo_run.h); "": none
  std::string command;  // the line that begins it, quoted for a shell
};

int demo(const DemoArguments& arguments);  // returns the exit code

}  // namespace pellucid::demos
