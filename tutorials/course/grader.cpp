#include "tutorials/course/grader.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <sstream>
#include <stdexcept>

#include "tensor/files.h"
#include "tutorials/course/inspect.h"
#include "tutorials/course/process.h"

namespace pellucid::course {

namespace fs = std::filesystem;

namespace {

// One grading at a time in one folder, and no build beside it: the start script locks the same
// file.
class Lock {
 public:
  explicit Lock(const std::string& path)
      : file_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (file_ < 0 || flock(file_, LOCK_EX) != 0)
      throw std::runtime_error(path + ": cannot be locked; is the folder yours to write in?");
  }
  ~Lock() { close(file_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int file_;
};

void check_tools() {
  const struct {
    const char *tool, *debian, *mac;
  } tools[] = {{"ninja", "apt-get install ninja-build", "brew install ninja"},
               {"nm", "apt-get install binutils", "xcode-select --install"}};
  for (const auto& [tool, debian, mac] : tools)
    if (find_program(tool).empty())
      throw std::runtime_error(std::string("grade: ") + tool +
                               " is not on PATH; install it: " + debian + " (macOS: " + mac + ")");
}

ToolRun ninja(const std::string& target, double seconds = 1200, const ToolLimits& limits = {}) {
  return run_tool({"ninja", "-C", build_folder(), target}, seconds, limits);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// What the compiler says, without ninja's own lines and the command line.
std::vector<std::string> diagnostics(const std::string& output) {
  std::vector<std::string> lines;
  bool command = false;
  for (const std::string& line : lines_of(output)) {
    const bool ninjas = line.rfind("ninja: ", 0) == 0 || line.rfind("[", 0) == 0;
    if (!command && !ninjas && line.rfind("FAILED: ", 0) != 0) lines.push_back(line);
    command = line.rfind("FAILED: ", 0) == 0;
  }
  return lines;
}

// The limit that a compiler says it met, in words, or "".
std::string limit_of(const std::string& output) {
  const std::pair<const char*, const char*> signs[] = {
      {"CPU time limit exceeded", "120 s of CPU time"},
      {"Cputime limit exceeded", "120 s of CPU time"},
      {"File size limit exceeded", "1 GB of disk"},
      {"Filesize limit exceeded", "1 GB of disk"},
      {"out of memory allocating", "4 GB of memory"},
      {"virtual memory exhausted", "4 GB of memory"},
      {"Cannot allocate memory", "4 GB of memory"},
      {"LLVM ERROR: out of memory", "4 GB of memory"}};
  for (const auto& [sign, what] : signs)
    if (output.find(sign) != std::string::npos) return what;
  return "";
}

struct Grading {
  const Exercise& exercise;
  std::string path;   // of the learner's file, whole
  std::string shown;  // and as it is called in messages
  std::string copy;   // what is compiled
  Grade result;

  // Keeps the copy's time if nothing has changed, so that ninja has nothing to do.
  void copy_file(const std::string& text) const {
    fs::create_directories(exercise.folder);
    const std::string quoted = replaced(replaced(path, "\\", "\\\\"), "\"", "\\\"");
    const std::string whole = "#line 1 \"" + quoted + "\"\n" + text;
    if (fs::exists(copy) && read_file(copy) == whole) return;
    write_file_atomically(copy, whole);
  }

  bool refuse(const std::string& why, const std::vector<std::string>& faults) {
    constexpr std::size_t kMost = 20;
    result.refused = why;
    for (std::size_t i = 0; i < std::min(kMost, faults.size()); ++i)
      result.faults.push_back(replaced(faults[i], path, shown));
    if (faults.size() > kMost)
      result.faults.push_back("... and " + std::to_string(faults.size() - kMost) + " lines more");
    return false;
  }

  bool compile() {
    const ToolRun library = ninja(exercise.target + "_library");
    if (library.code != 0)
      throw std::runtime_error("grade: the library does not build, whatever your file says:\n" +
                               library.output);
    // What the exercises take is a tenth of it.
    const ToolRun file =
        ninja(exercise.target + "_file", 300,
              {.cpu_seconds = 120, .memory = int64_t{4} << 30, .file = int64_t{1} << 30});
    if (file.code != 0) {
      std::vector<std::string> faults = diagnostics(file.output);
      if (const std::string what = limit_of(file.output); !what.empty())
        faults = {"compiling it takes more than " + what +
                  ": look for a template, a constexpr or an array without an end"};
      return refuse("does not compile", faults);
    }
    if (file.output.find(path) != std::string::npos)
      for (const std::string& line : diagnostics(file.output))
        result.warnings += replaced(line, path, shown) + "\n";
    return true;
  }

  bool inspect_text(const std::string& text) {
    const std::vector<std::string> faults = text_faults(text);
    return faults.empty() || refuse("is refused", faults);
  }

  bool inspect() {
    std::vector<std::string> faults;
    const std::string object = fs::path(exercise.object).lexically_normal().string();
    const ToolRun deps = run_tool({"ninja", "-C", build_folder(), "-t", "deps",
                                   fs::path(object).lexically_relative(build_folder()).string()});
    for (const std::string& fault : include_faults(exercise, deps.output, copy))
      faults.push_back(fault);
    if (faults.empty()) faults = object_faults(exercise);
    return faults.empty() || refuse("is refused", faults);
  }

  bool link() {
    const ToolRun program = ninja(exercise.target);
    return program.code == 0 || refuse("does not link", diagnostics(program.output));
  }

  // The line of the learner's file at which the program was, in words, and what stopped it.
  std::string place(const std::string& printed) const {
    for (const std::string& line : lines_of(printed)) {
      const std::size_t at = line.find(path + ":");
      if (at == std::string::npos) continue;
      const std::size_t digits = at + path.size() + 1;
      const std::size_t end = std::min(line.find_first_not_of("0123456789", digits), line.size());
      if (end > digits) return " at " + shown + ":" + line.substr(digits, end - digits);
    }
    return "";
  }
  std::string cause(const std::string& printed) const {
    for (const std::string& line : lines_of(printed))
      for (const std::string mark :
           {"ERROR: AddressSanitizer: ", "runtime error: ", "Assertion "}) {
        const std::size_t at = line.find(mark);
        if (at == std::string::npos) continue;
        std::string what = line.substr(at + (mark == "Assertion " ? 0 : mark.size()));
        what.erase(std::min(what.find(" on "), what.size()));  // on address 0x...
        return ": " + what;
      }
    return "";
  }
  std::string ending(const LimitedRun& run) const {
    const std::string at = place(run.printed);
    std::ostringstream text;
    text << unescaped(run.call);
    if (run.stop == LimitedRun::kTime)
      text << "did not end within " << exercise.seconds << " s: it was"
           << (at.empty() ? " running" : at);
    else if (run.stop == LimitedRun::kMemory)
      text << "took more than " << exercise.megabytes << " MB of memory" << at;
    else if (run.stop == LimitedRun::kOutput)
      text << "printed more than 1 MB" << at;
    else if (run.code > 128 || !at.empty())
      text << "crashed" << (at.empty() ? " (signal " + std::to_string(run.code - 128) + ")" : at)
           << cause(run.printed);
    else
      text << "ended the program (exit " << run.code << ") in this check";
    return text.str();
  }

  // Runs the checks that are still open, in an order that the seed draws; returns those that a
  // crash left open.
  std::vector<std::string> run_checks(const std::vector<std::string>& open) {
    std::random_device device;  // a nonce is to be unknown, not reproducible
    std::ostringstream input;
    const std::string nonce = "r" + std::to_string(device()) + std::to_string(device());
    input << nonce << " " << result.seed;
    for (const std::string& name : open) input << " " << name;
    input << "\n";
    const auto checks = static_cast<double>(open.size());
    const LimitedRun run = run_limited({exercise.program}, input.str(),
                                       {.seconds = exercise.seconds,
                                        .cpu_seconds = 10 + exercise.seconds * checks,
                                        .memory = exercise.megabytes << 20});
    rlimit memory{};
    getrlimit(RLIMIT_AS, &memory);
    if (run.lines.empty() && memory.rlim_cur != RLIM_INFINITY &&
        run.printed.find("AddressSanitizer") != std::string::npos)
      throw std::runtime_error(
          "grade: the limit of memory set here (ulimit -v) keeps AddressSanitizer from starting; "
          "grade without it");
    std::string begun;
    std::vector<std::string> left = open;
    for (const std::string& line : run.lines) {
      std::istringstream words(line);
      std::string key, what, name, text;
      words >> key >> what >> name;
      std::getline(words >> std::ws, text);
      if (what == "begin") begun = name;
      if ((what == "pass" || what == "fail" || what == "unwritten") && name == begun) {
        CheckGrade& check = named(name);
        check.passed = what == "pass";
        check.text = unescaped(text);
        if (what == "unwritten") {
          check.unwritten = check.text;
          check.text = "not written yet: " + check.unwritten + " in " + shown;
        }
        left.erase(std::remove(left.begin(), left.end(), name), left.end());
        begun = "";
      }
      if (what == "end") left.clear();
    }
    if (!left.empty()) {
      if (begun.empty()) begun = left.front();  // it ended before its first check, or between two
      named(begun).text = ending(run);
      left.erase(std::remove(left.begin(), left.end(), begun), left.end());
    }
    if (result.printed.empty() && run.code == 0 && !run.stop) result.printed = run.printed;
    return left;
  }

  static std::string unescaped(const std::string& line) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const bool escape = line[i] == '\\' && i + 1 < line.size();
      text += !escape ? line[i] : line[++i] == 'n' ? '\n' : line[i];
    }
    return text;
  }

  CheckGrade& named(const std::string& name) {
    return *std::find_if(result.checks.begin(), result.checks.end(),
                         [&](const CheckGrade& c) { return c.check.name == name; });
  }

  void run() {
    std::vector<std::string> open;
    for (const ExerciseCheck& check : exercise.checks) open.push_back(check.name);
    std::mt19937_64 order(result.seed);
    for (std::size_t i = open.size(); i > 1; --i) std::swap(open[i - 1], open[order() % i]);
    while (!open.empty()) open = run_checks(open);
  }
};

}  // namespace

std::string printable(std::string text) {
  for (char& c : text)
    if (c != '\t' && c != '\n' && (c < ' ' || c > '~')) c = '?';
  return text;
}

int Grade::points() const {
  int sum = 0;
  for (const CheckGrade& c : checks) sum += c.passed ? c.check.points : 0;
  return sum;
}

Grade grade(const Exercise& exercise, const std::string& file, uint64_t seed) {
  check_tools();
  for (const char c : fs::absolute(file).string())
    if (c >= 0 && c < ' ')
      throw std::runtime_error("grade: " + printable(file) +
                               ": the path has a line's end or the like in it; rename it");
  if (file == exercise.file && !fs::exists(file)) {
    const std::string path = fs::proximate(file).string();
    throw std::runtime_error("grade: " + path + " is gone; to begin again: git checkout -- " +
                             path);
  }
  std::string text = read_file(file);
  const std::string byte_order_mark = "\xEF\xBB\xBF";  // compilers take it only at the beginning
  if (text.starts_with(byte_order_mark)) text.erase(0, byte_order_mark.size());
  const fs::path name = fs::path(exercise.file).filename();
  Grading grading{.exercise = exercise,
                  .path = fs::weakly_canonical(file).string(),
                  .shown = fs::path(file).filename().string(),
                  .copy = (exercise.folder / name).string(),
                  .result = {.file = file, .seed = seed}};
  for (const ExerciseCheck& check : exercise.checks)
    grading.result.checks.push_back({.check = check});
  const Lock lock(build_folder() + "/.lock");
  grading.copy_file(text);
  if (grading.inspect_text(text) && grading.compile() && grading.inspect() && grading.link())
    grading.run();
  return grading.result;
}

}  // namespace pellucid::course
