// backtrace() for the addresses, addr2line (on macOS atos) for the lines.
#include "kernels/call_stack.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <sstream>
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#endif
#if __has_include(<link.h>)
#include <link.h>
#endif

namespace pellucid {

CallStack call_stack() {
  CallStack stack(256);
#if __has_include(<execinfo.h>)
  stack.resize(static_cast<std::size_t>(backtrace(stack.data(), static_cast<int>(stack.size()))));
#else
  stack.clear();
#endif
  return stack;
}

static std::string quoted(const std::string& path) {
  std::string text = "'";
  for (const char c : path) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

struct Frame {
  std::string function, file;  // file: "/a/b.cpp:12", or empty if it is not known
};
struct Module {  // a program or shared library, and the calls that lie in it
  std::uintptr_t base = 0;
  std::vector<std::uintptr_t> calls;
};

// The frames of each call: several where functions were inlined, the innermost first.
using Frames = std::map<std::uintptr_t, std::vector<Frame>>;

#ifdef __APPLE__
// One line an address: "f(int) (in program) (/a/b.cpp:12)".
static std::string symbolizer(const std::string& path, const Module& module) {
  std::ostringstream command;
  command << "atos -fullPath -o " << quoted(path) << " -l 0x" << std::hex << module.base;
  for (const std::uintptr_t call : module.calls) command << " 0x" << call;
  return command.str();
}
static void read_frames(const std::vector<std::string>& lines, const Module& module, Frames& to) {
  for (std::size_t i = 0; i < std::min(lines.size(), module.calls.size()); ++i) {
    const std::size_t in = lines[i].find(" (in "), at = lines[i].rfind(" (");
    const std::string file = at > in ? lines[i].substr(at + 2) : "";
    to[module.calls[i]] = {{lines[i].substr(0, in), file.substr(0, file.rfind(')'))}};
  }
}
#else
// Position-independent code has addresses from its base on, other code absolute ones.
static std::uintptr_t address_base(std::uintptr_t base) {
  return reinterpret_cast<const ElfW(Ehdr)*>(base)->e_type == ET_DYN ? base : 0;
}
static std::string symbolizer(const std::string& path, const Module& module) {
  std::ostringstream command;
  command << "addr2line -a -i -f -C -e " << quoted(path) << std::hex;
  for (const std::uintptr_t call : module.calls)
    command << " 0x" << call - address_base(module.base);
  return command.str();
}
// After each address, "0x12", two lines a frame: "f(int)" and "/a/b.cpp:12 (discriminator 3)".
static void read_frames(const std::vector<std::string>& lines, const Module& module, Frames& to) {
  std::size_t next = 0;
  std::uintptr_t call = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].starts_with("0x") && next < module.calls.size()) {
      call = module.calls[next++];
    } else if (i + 1 < lines.size()) {
      const std::string file = lines[i + 1].substr(0, lines[i + 1].find(' '));
      to[call].push_back({lines[i], file.starts_with("?") || file.ends_with("?") ? "" : file});
      ++i;
    }
  }
}
#endif

static Frames frames_of(const CallStack& stack) {
  std::map<std::string, Module> modules;
  Frames frames;
  for (void* address : stack) {
    Dl_info info{};
    const auto call = reinterpret_cast<std::uintptr_t>(address) - 1;  // the call, not what follows
    if (!dladdr(reinterpret_cast<void*>(call), &info) || !info.dli_fname) continue;
    std::string path = info.dli_fname;  // of the program: argv[0], which may be no path from here
    std::error_code none;
    if (!std::filesystem::exists(path, none))
      path = std::filesystem::read_symlink("/proc/self/exe", none);
    modules[path].base = reinterpret_cast<std::uintptr_t>(info.dli_fbase);
    modules[path].calls.push_back(call);
    if (info.dli_sname) frames[call] = {{info.dli_sname, ""}};
  }
  for (const auto& [path, module] : modules) {
    FILE* pipe = popen((symbolizer(path, module) + " 2>/dev/null").c_str(), "r");
    if (!pipe) continue;
    std::string text;
    for (int c; (c = fgetc(pipe)) != EOF;) text += static_cast<char>(c);
    pclose(pipe);
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    if (!lines.empty()) {
      for (const std::uintptr_t call : module.calls) frames[call].clear();
      read_frames(lines, module, frames);
    }
  }
  return frames;
}

static bool is_in(const std::string& file, const std::string& folder) {
  return file.starts_with(PELLUCID_SOURCE_DIR "/" + folder + "/");
}

std::string lines_of(const CallStack& stack) {
  const Frames frames = frames_of(stack);
  std::string text, function;
  for (void* address : stack) {
    const auto found = frames.find(reinterpret_cast<std::uintptr_t>(address) - 1);
    if (found == frames.end()) continue;
    for (Frame frame : found->second) {
      if (function.empty() && frame.function.find("pellucid") == std::string::npos &&
          frame.function != "??")
        function = frame.function;
      if (frame.file.empty()) continue;
      frame.file = std::filesystem::path(frame.file).lexically_normal();
      if (is_in(frame.file, "kernels") || is_in(frame.file, "tensor") ||
          is_in(frame.file, "autograd") || frame.file.starts_with("/usr/") ||
          frame.file.find("/include/c++/") != std::string::npos ||
          frame.function.starts_with("__libc_start") ||    // what calls main
          frame.function.starts_with("__interceptor_") ||  // a sanitizer's backtrace()
          frame.file.find("/include/pellucid/") != std::string::npos)
        continue;
      text += "\n  at " + frame.file + ", in " + frame.function;
      if (!is_in(frame.file, "nn")) return text;
    }
  }
  return text + (function.empty() ? "" : "\n  in " + function) +
         "\n  (to see the line of your program, compile it with -g1 and install addr2line)";
}

}  // namespace pellucid
