// What the program's commands share to declare their options, over CLI11 in its own words: values
// are checked while the line is read, and every message says what was wanted and what was got.
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace pellucid::demos {

// Each command's function is called after the whole line has been parsed; it returns the exit code.
using Command = std::function<int()>;

// Words of a command line, for a message: one line, in quotes.
std::string in_quotes(const std::string& text);

// A whole number, in decimal: CLI11 alone reads octal too, and takes 2^64 for 2^64 - 1.
CLI::Validator whole(uint64_t least, uint64_t most);
constexpr uint64_t kMost = uint64_t{1} << 40;
// CLI::Range takes NaN for every range's.
CLI::Validator number(double least, double most);
CLI::Validator not_empty();
CLI::Validator one_of(const std::vector<std::string>& choices);

template <class T>
std::string text_of(const T& x) {
  std::ostringstream text;
  text << x;
  return text.str();
}

// --help shows "name shape   text (default: ...)"; a value of 0 or "" is no default.
template <class T>
CLI::Option* option(CLI::App* c, const char* name, T& value, const char* shape, std::string text) {
  if (value != T{}) text += " (default: " + text_of(value) + ")";
  return c->add_option(name, value, text)->option_text(shape)->type_name("value");
}
CLI::Option* path(CLI::App* c, const char* name, std::string& value, const char* shape,
                  const std::string& text);
// As many names as stand there.
CLI::Option* paths(CLI::App* c, const char* name, std::vector<std::string>& values,
                   const char* shape, const std::string& text);
CLI::Option* seed_option(CLI::App* c, uint64_t& seed, const char* text);

// The least number of letters to insert, drop or change, as a share of the longer word.
double spelling_distance(const std::string& a, const std::string& b);

// Parses the line; returns -1 to go on, or an exit code: 0 after --help, 2 for a wrong line, which
// one line on stderr tells, with where help is.
int parse(CLI::App& app, int argc, char** argv);
// At a command's end: its exit code, or that of SIGPIPE where nobody reads the output on, as
// `| head`. Throws if the output could not be written otherwise.
int finished(int code);
// Says on stderr what is wrong with the line, and where help is; returns 2.
int wrong(const std::string& what, const std::vector<std::string>& help);

}  // namespace pellucid::demos
