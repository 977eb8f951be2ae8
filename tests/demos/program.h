// Runs the program `pellucid`, or another one, and tells what it printed and how it ended.
#pragma once
#include <fcntl.h>
#include <grp.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "tensor/file_helpers.h"

struct Ended {
  int code = -1;  // the exit code, or 128 + the signal
  std::string out, err;
};

struct RunOptions {
  std::string program = PELLUCID_PROGRAM;
  std::string folder = {};                              // the working directory; "": this one
  std::map<std::string, std::string> environment = {};  // on top of ours; an empty text unsets
  std::string input = {};                               // stdin
  std::string out_to = {};  // a file for stdout instead, such as /dev/full
  bool as_nobody = false;   // as a user without rights, where we are root
  rlim_t file_limit = 0;    // bytes that a file may have
  rlim_t memory_limit = 0;  // bytes that the program may have
  rlim_t cpu_seconds = 0;   // that it may take
  unsigned seconds = 0;     // and by the clock
};

// A program that runs; killed and waited for if nobody does.
class Process {
 public:
  explicit Process(const std::vector<std::string>& arguments, const RunOptions& options = {}) {
    spit(outputs_.file("in"), options.input);
    pid_ = fork();
    if (pid_ == 0) start(arguments, options);
  }
  ~Process() {
    if (!ended_) kill(pid_, SIGKILL), wait();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const { kill(pid_, number); }
  bool running() {
    int status = 0;
    if (!ended_ && waitpid(pid_, &status, WNOHANG) == pid_) note(status);
    return !ended_;
  }
  std::string output() const { return slurp(outputs_.file("out")); }  // so far
  Ended wait() {
    int status = 0;
    if (!ended_ && waitpid(pid_, &status, 0) == pid_) note(status);
    result_.out = slurp(outputs_.file("out")), result_.err = slurp(outputs_.file("err"));
    return result_;
  }

 private:
  [[noreturn]] void start(const std::vector<std::string>& arguments, const RunOptions& options) {
    const auto redirect = [](const std::string& path, int flags, int to) {
      const int file = open(path.c_str(), flags, 0644);
      if (file < 0 || dup2(file, to) < 0) _exit(126);
    };
    redirect(outputs_.file("in"), O_RDONLY, 0);
    const bool to_file = options.out_to.empty();
    redirect(to_file ? outputs_.file("out") : options.out_to, O_WRONLY | O_CREAT, 1);
    redirect(outputs_.file("err"), O_WRONLY | O_CREAT, 2);
    if (!options.folder.empty() && chdir(options.folder.c_str()) != 0) _exit(126);
    for (const auto& [name, value] : options.environment)
      value.empty() ? unsetenv(name.c_str()) : setenv(name.c_str(), value.c_str(), 1);
    for (const auto& [resource, most] :
         {std::pair{RLIMIT_FSIZE, options.file_limit}, std::pair{RLIMIT_AS, options.memory_limit},
          std::pair{RLIMIT_CPU, options.cpu_seconds}}) {
      const rlimit limit{most, most};
      if (most > 0 && setrlimit(resource, &limit) != 0) _exit(126);
    }
    alarm(options.seconds);  // SIGALRM ends it; exec keeps the clock running
    constexpr unsigned kNobody = 65534;
    if (options.as_nobody && geteuid() == 0 &&
        (setgroups(0, nullptr) != 0 || setgid(kNobody) != 0 || setuid(kNobody) != 0))
      _exit(126);
    std::vector<char*> argv{const_cast<char*>(options.program.c_str())};
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  void note(int status) {
    ended_ = true;
    result_.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  TemporaryFolder outputs_;
  pid_t pid_ = -1;
  bool ended_ = false;
  Ended result_;
};

inline Ended run(const std::vector<std::string>& arguments, const RunOptions& options = {}) {
  return Process(arguments, options).wait();
}

// Whether processes can take up the user nobody (not in every container).
inline bool can_be_nobody() {
  const Ended ended = run({"-c", "exit 0"}, {.program = "/bin/sh", .as_nobody = true});
  return ended.code == 0;
}

inline int64_t lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

// Printable ASCII and line ends, nothing else.
inline bool ascii(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); });
}

// Every file under a folder with its bytes, every folder, and every link; "lock" aside, which holds
// nothing.
inline std::map<std::string, std::string> snapshot(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().filename() == "lock") continue;
    files[entry.path().lexically_relative(folder).string()] =
        entry.is_regular_file() ? slurp(entry.path().string()) : "no file";
  }
  return files;
}

// Text that a small model can learn a little of: n bytes of sentences over 24 characters.
inline std::string sentences(std::size_t n, uint64_t seed = 1) {
  const char* words[] = {"the cat",  "a dog", "sees", "likes", "the red ball", "every mouse",
                         "and then", "it is", "here", "today", "in a garden",  "with milk"};
  std::string text;
  while (text.size() < n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    text += words[(seed >> 33) % 12];
    text += (seed >> 40) % 7 == 0 ? ".\n" : " ";
  }
  text.resize(n);
  return text;
}
