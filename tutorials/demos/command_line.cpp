#include "tutorials/demos/command_line.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "tensor/files.h"

namespace pellucid::demos {

std::string in_quotes(const std::string& text) {
  std::string line = text;
  std::replace(line.begin(), line.end(), '\n', ' ');
  return "\"" + line + "\"";
}

CLI::Validator whole(uint64_t least, uint64_t most) {
  return CLI::Validator(
      [=](std::string& text) {
        uint64_t value = 0;
        const char* end = text.data() + text.size();
        const auto [at, error] = std::from_chars(text.data(), end, value);
        if (error != std::errc() || at != end || value < least || value > most)
          return "wanted a whole number from " + std::to_string(least) + " to " +
                 std::to_string(most) + "; got " + in_quotes(text);
        text = std::to_string(value);
        return std::string();
      },
      "");
}
CLI::Validator number(double least, double most) {
  return CLI::Validator(
      [=](std::string& text) {
        double value = NAN;
        if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most)
          return std::string();
        return "wanted a number from " + text_of(least) + " to " + text_of(most) + "; got " +
               in_quotes(text);
      },
      "");
}

CLI::Validator not_empty() {
  return CLI::Validator(
      [](std::string& text) { return std::string(text.empty() ? "the value is empty" : ""); }, "");
}

CLI::Validator one_of(const std::vector<std::string>& choices) {
  std::string names;
  for (const std::string& choice : choices) names += (names.empty() ? "" : " or ") + choice;
  return CLI::Validator(
      [choices, names](std::string& text) {
        const bool fits = std::count(choices.begin(), choices.end(), text) > 0;
        return fits ? std::string() : "wanted " + names + "; got " + in_quotes(text);
      },
      "");
}

CLI::Option* path(CLI::App* c, const char* name, std::string& value, const char* shape,
                  const std::string& text) {
  return option(c, name, value, shape, text)->check(not_empty());
}
CLI::Option* paths(CLI::App* c, const char* name, std::vector<std::string>& values,
                   const char* shape, const std::string& text) {
  return c->add_option(name, values, text)
      ->option_text(shape)
      ->type_name("value")
      ->check(not_empty());
}
CLI::Option* seed_option(CLI::App* c, uint64_t& seed, const char* text) {
  return option(c, "--seed", seed, "N", text)
      ->transform(whole(0, std::numeric_limits<uint64_t>::max()));
}

double spelling_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t k = 0; k < b.size(); ++k) {
      const std::size_t change = diagonal + (a[i] != b[k]);
      diagonal = row[k + 1];
      row[k + 1] = std::min({change, diagonal + 1, row[k] + 1});
    }
  }
  return static_cast<double>(row.back()) / static_cast<double>(std::max(a.size(), b.size()));
}

int finished(int code) {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return code;
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  if (poll(&out, 1, 0) > 0 && (out.revents & (POLLERR | POLLHUP))) return 128 + SIGPIPE;
  throw std::runtime_error("the output could not be written: is the disk full?");
}

int wrong(const std::string& what, const std::vector<std::string>& help) {
  std::string line = what;
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::fprintf(stderr, "pellucid: %s; see %s\n", line.c_str(), shell_command(help).c_str());
  return 2;
}

// CLI11's message without what it says of its own insides.
static std::string in_our_words(const CLI::ParseError& error) {
  std::string text = error.what();
  if (text.ends_with("override")) text = "--" + text;  // this one lacks the dashes
  for (const auto& [theirs, ours] :
       {std::pair<std::string, std::string>{"At Most 1 required but received", "wanted once; got"},
        {" was given a disallowed flag override", " takes no value"}})
    if (const std::size_t at = text.find(theirs); at != std::string::npos)
      text.replace(at, theirs.size(), ours);
  return text;
}

int parse(CLI::App& app, int argc, char** argv) {
  std::string names;
  bool known = false;
  for (CLI::App* c : app.get_subcommands({})) {
    known |= argc > 1 && c->get_name() == argv[1];
    names += c->get_name() + ", ";
    for (CLI::Option* flag : c->get_options())  // CLI11 takes --quick=7
      if (flag->get_items_expected_max() == 0) flag->disable_flag_override();
  }
  if (argc < 2) {
    std::fputs(app.help().c_str(), stderr);
    return 2;
  }
  if (!known && argv[1][0] != '-')
    return wrong("no command " + in_quotes(argv[1]) + "; there are: " + names + "test", {"--help"});
  std::vector<std::string> help{"--help"};
  if (known) help.insert(help.begin(), argv[1]);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError&) {  // whose own text has them in reverse
    std::string extras;
    for (const std::string& extra : app.remaining(true)) extras += " " + extra;
    return wrong("not expected:" + extras, help);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    if (app.get_subcommands().empty())
      return wrong("wanted a command; got " + in_quotes(argv[1]) + "; there are: " + names + "test",
                   help);
    return wrong(in_our_words(error), help);
  }
  return -1;
}

}  // namespace pellucid::demos
