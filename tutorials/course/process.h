// Other programs run by the grader: the tools that build, and the exercise's own program, which
// may crash, loop, flood, hoard or leave children behind.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace pellucid::course {

// The place of a program on PATH, or "".
std::string find_program(const std::string& name);

struct ToolRun {
  int code = -1;       // the exit code, or 128 + the signal
  std::string output;  // stdout and stderr
};
// What a tool and each that it starts may take at most; 0: as much as there is.
struct ToolLimits {
  double cpu_seconds = 0;
  int64_t memory = 0, file = 0;  // bytes
};
// A tool that is trusted. After `seconds` it gets SIGTERM, as ninja and compilers understand it.
ToolRun run_tool(const std::vector<std::string>& words, double seconds = 600,
                 const ToolLimits& limits = {});

struct Limits {
  double seconds = 1;  // of CPU time between two lines of results; 20 times as many by the clock
  double cpu_seconds = 60;  // altogether
  int64_t memory = int64_t{300} << 20;
  std::size_t output = std::size_t{1} << 20;
};

struct LimitedRun {
  enum Stop { kNone, kTime, kMemory, kOutput };
  Stop stop = kNone;  // which limit ended it
  int code = -1;      // the exit code, or 128 + the signal
  // What it wrote on descriptor 3, in lines that begin with the key. Of lines "KEY call TEXT" only
  // the last TEXT is kept, until another line comes, and they give it no more time.
  std::vector<std::string> lines;
  std::string call;
  std::string printed;  // stdout and stderr
};

// Runs a program that is not trusted, in a process group of its own. What breaks a limit gets
// SIGABRT, on which AddressSanitizer tells the line, and then SIGKILL, as does all that it started.
// The first word of `input` is the key.
LimitedRun run_limited(const std::vector<std::string>& words, const std::string& input,
                       const Limits& limits);

}  // namespace pellucid::course
