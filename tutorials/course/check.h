// What an exercise's test is written with: a table of checks, random cases, and a failure that
// shows code to paste.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace pellucid::course {

// The cases of one check, drawn by splitmix64 from the grading's seed and the check's name.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  int64_t whole(int64_t least, int64_t most);  // both included
  bool chance(int percent) { return whole(0, 99) < percent; }

 private:
  uint64_t state_;
};

struct Check {
  const char* name;  // as in exercise.json; one that wants a refusal ends with "_refuses"
  void (*run)(Random& random);
};

// Every exercise's test.cpp defines it.
extern const std::vector<Check> kChecks;

// Tells the call that comes next, as code to paste: it is shown should the call fail, throw, crash
// or never end.
void calling(const std::string& code);

// Ends the check. `what` tells what the last call gave and should give.
[[noreturn]] void fail_case(const std::string& what);

}  // namespace pellucid::course
