#include "tutorials/course/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>

namespace pellucid::course {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A busy machine may give a program a small part of its time: the clock on the wall is only for
// those that sleep.
constexpr double kPatience = 20;

struct Pipe {
  int in = -1, out = -1;  // where one writes, and where one reads
  Pipe() {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("grade: no pipe could be made");
    out = ends[0], in = ends[1];
    for (int end : ends) fcntl(end, F_SETFD, FD_CLOEXEC);
  }
  ~Pipe() { close_in(), close(out); }
  void close_in() {
    if (in >= 0) close(in);
    in = -1;
  }
};

[[noreturn]] void execute(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  _exit(127);
}

int exit_code(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Appends what there is to read; false when the other side is closed.
bool drain(int from, std::string& text, std::size_t limit) {
  char part[1 << 16];
  for (;;) {
    const ssize_t n = read(from, part, sizeof part);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) return false;
    text.append(part, std::min(static_cast<std::size_t>(n), limit - std::min(limit, text.size())));
    if (static_cast<std::size_t>(n) < sizeof part || text.size() >= limit) return true;
  }
}

// The memory that a process holds now, where the system tells; 0 elsewhere.
int64_t resident_bytes(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  int64_t all = 0, resident = 0;
  return file >> all >> resident ? resident * sysconf(_SC_PAGESIZE) : 0;
}

// The CPU time that a process has used, where the system tells; 0 elsewhere.
double cpu_seconds_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(std::min(text.rfind(')') + 1, text.size())));
  for (int skipped = 0; skipped < 11; ++skipped) fields >> text;
  double user = 0, system = 0;
  return fields >> user >> system ? (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK)) : 0;
}

std::set<pid_t> children() {
  std::set<pid_t> found;
  std::error_code none;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", none)) {
    std::ifstream file(task.path() / "children");
    for (pid_t pid; file >> pid;) found.insert(pid);
  }
  return found;
}

// Orphans of the program become children of this process (see adopt_orphans): also those that left
// its group.
void kill_orphans(const std::set<pid_t>& ours) {
  for (int round = 0; round < 100; ++round) {
    bool any = false;
    for (pid_t pid : children()) {
      if (ours.count(pid)) continue;
      any = true;
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
    if (!any) return;
  }
}

void adopt_orphans() {
#ifdef __linux__
  prctl(PR_SET_CHILD_SUBREAPER, 1);
#endif
}

// Who goes on `grace` beyond it is killed.
void limit(int what, double most, double grace = 0) {
  const rlimit both{static_cast<rlim_t>(most), static_cast<rlim_t>(most + grace)};
  setrlimit(static_cast<decltype(RLIMIT_CPU)>(what), &both);
}

struct LimitedProcess {
  const Limits& limits;
  std::string key;
  Pipe input = {}, output = {}, results = {};
  pid_t pid = -1;
  bool ended = false;
  std::string rest = {};  // of results: a line that has not ended yet
  LimitedRun run = {};
  Clock::time_point heard = Clock::now(), stopped = {};
  double cpu_heard = 0;  // the CPU time it had used then

  void start(const std::vector<std::string>& words) {
    pid = fork();
    if (pid < 0) throw std::runtime_error("grade: no process could be started");
    if (pid == 0) {
      setpgid(0, 0);
      for (int s : {SIGPIPE, SIGINT, SIGTERM, SIGXFSZ}) std::signal(s, SIG_DFL);
      limit(RLIMIT_CPU, limits.cpu_seconds);
      limit(RLIMIT_CORE, 0);
      limit(RLIMIT_FSIZE, 0);
      // Descriptors may lie on the places that they are wanted for.
      const int from[] = {fcntl(input.out, F_DUPFD, 10), fcntl(output.in, F_DUPFD, 10),
                          fcntl(results.in, F_DUPFD, 10)};
      dup2(from[0], 0), dup2(from[1], 1), dup2(from[1], 2), dup2(from[2], 3);
      for (int f : from) close(f);
      setenv("ASAN_OPTIONS",
             ("handle_abort=1:detect_leaks=0:detect_container_overflow=0:max_allocation_size_mb=" +
              std::to_string(limits.memory >> 20))
                 .c_str(),
             1);
      setenv("UBSAN_OPTIONS", "print_stacktrace=1", 1);
      execute(words);
    }
    setpgid(pid, pid);
    output.close_in(), results.close_in();
    for (int from : {output.out, results.out}) fcntl(from, F_SETFL, O_NONBLOCK);
  }

  void listen() {
    std::string bytes;
    drain(results.out, bytes, std::size_t{1} << 24);
    rest += bytes;
    for (std::size_t end; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1)) {
      if (rest.compare(0, key.size() + 1, key + " ") != 0) continue;
      const std::string begin = key + " call ";
      const bool calls = rest.compare(0, begin.size(), begin) == 0;
      run.call = calls ? rest.substr(begin.size(), end - begin.size()) : "";
      if (calls) continue;
      run.lines.push_back(rest.substr(0, end));
      heard = Clock::now();
      cpu_heard = cpu_seconds_of(pid);
    }
    if (rest.size() > limits.output) stop(LimitedRun::kOutput);
    // After it was stopped there is room for AddressSanitizer's report.
    drain(output.out, run.printed, run.stop ? 2 * limits.output : limits.output);
    if (run.printed.size() >= limits.output) stop(LimitedRun::kOutput);
  }

  void stop(LimitedRun::Stop why) {
    if (run.stop) return;
    run.stop = why;
    stopped = Clock::now();
    kill(pid, SIGABRT);
  }

  void watch() {
    while (!ended) {
      pollfd both[] = {{output.out, POLLIN, 0}, {results.out, POLLIN, 0}};
      poll(both, 2, 10);
      if (!(both[0].revents & POLLIN) && !(both[1].revents & POLLIN) && both[0].revents)
        usleep(5000);  // both are closed: nothing to wait for but the end
      int status = 0;
      ended = waitpid(pid, &status, WNOHANG) == pid;
      listen();  // after waitpid: what it wrote before its end
      if (ended) {
        run.code = exit_code(status);
      } else if (run.stop) {
        if (seconds_since(stopped) > 3) kill(-pid, SIGKILL);
      } else if (cpu_seconds_of(pid) - cpu_heard > limits.seconds ||
                 seconds_since(heard) > kPatience * limits.seconds) {
        stop(LimitedRun::kTime);
      } else if (resident_bytes(pid) > limits.memory) {
        stop(LimitedRun::kMemory);
      }
    }
  }
};

}  // namespace

std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = (folder.empty() ? "." : folder) + "/" + name;
    if (access(file.c_str(), X_OK) == 0 && !std::filesystem::is_directory(file)) return file;
  }
  return "";
}

ToolRun run_tool(const std::vector<std::string>& words, double seconds, const ToolLimits& limits) {
  Pipe output;
  const Clock::time_point start = Clock::now();
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("grade: no process could be started");
  if (pid == 0) {
    dup2(output.in, 1), dup2(output.in, 2);
    if (limits.cpu_seconds > 0) limit(RLIMIT_CPU, limits.cpu_seconds, 10);
    if (limits.memory > 0) limit(RLIMIT_AS, static_cast<double>(limits.memory));
    if (limits.file > 0) limit(RLIMIT_FSIZE, static_cast<double>(limits.file));
    setenv("LC_ALL", "C", 1);  // compilers quote in ASCII then
    execute(words);
  }
  output.close_in();
  ToolRun run;
  fcntl(output.out, F_SETFL, O_NONBLOCK);
  for (bool late = false; drain(output.out, run.output, std::size_t{1} << 26);) {
    pollfd file{output.out, POLLIN, 0};
    poll(&file, 1, 100);
    if (!late && seconds_since(start) > seconds) late = kill(pid, SIGTERM) == 0;
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  run.code = exit_code(status);
  return run;
}

LimitedRun run_limited(const std::vector<std::string>& words, const std::string& input,
                       const Limits& limits) {
  adopt_orphans();
  std::signal(SIGPIPE, SIG_IGN);  // a program may end before it has read its input
  const std::set<pid_t> ours = children();
  LimitedProcess process{.limits = limits, .key = input.substr(0, input.find(' '))};
  process.start(words);
  if (write(process.input.in, input.data(), input.size()) < 0) process.run.printed = "";
  process.input.close_in();
  process.watch();
  kill(-process.pid, SIGKILL);
  kill_orphans(ours);
  return process.run;
}

}  // namespace pellucid::course
