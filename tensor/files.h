// Files that are read whole and replaced whole. Every failure is a std::runtime_error of one line:
// the path, the system's reason and the repair.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace pellucid {

// A file open for reading.
class InputFile {
 public:
  explicit InputFile(const std::string& path);  // refuses a folder, a pipe, a device
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  uint64_t left() const { return left_; }                  // not read yet
  void read(void* to, std::size_t bytes);                  // the next bytes; fewer are an error
  [[noreturn]] void fail(const std::string& fault) const;  // "path: fault"

 private:
  std::string path_;
  int file_ = -1;
  uint64_t size_ = 0, left_ = 0;
};

std::string read_file(const std::string& path);

// Replaces a file whole or not at all: the bytes go to path.tmp in the same folder, are flushed to
// the disk, and only then take path's name. Killed at any moment, or out of space, path is the old
// file or the new one; what a killed process leaves of path.tmp the next write takes over. A second
// process that writes the same path at the same time is refused.
using Put = std::function<void(const void* data, std::size_t bytes)>;
void write_file_atomically(const std::string& path, const std::function<void(const Put&)>& write);
void write_file_atomically(const std::string& path, std::string_view bytes);
// Fails as those would where path cannot be written, and leaves no trace: for results that take
// long to come.
void check_writable(const std::string& path);

// A command line that runs the program, for hints that can be pasted into a shell:
// "./pellucid train --resume 'a run'". Its name is the environment's PELLUCID_COMMAND, which the
// start script or main() sets, or else pellucid.
std::string shell_command(const std::vector<std::string>& words);

}  // namespace pellucid
