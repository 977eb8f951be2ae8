// Which lines of the program called: taken cheaply, turned into text only when it is printed.
#pragma once
#include <string>
#include <vector>

namespace pellucid {

using CallStack = std::vector<void*>;  // return addresses, the innermost first

CallStack call_stack();

// "\n  at fit.cpp:12, in main": the first line outside this library's floors, after the lines of nn
// that lie between. Where lines are not known, what is, and how to get them.
std::string lines_of(const CallStack& stack);

}  // namespace pellucid
