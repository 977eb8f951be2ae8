// Reading and replacing files by the calls of POSIX.
#include "tensor/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

namespace pellucid {

namespace {

enum class Access { kRead, kWrite };

// What a person can do about it.
const char* repair(int error, Access access) {
  const bool reading = access == Access::kRead;
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return reading ? "; check the path" : "; check the path, and make its folder first";
    case EACCES:
    case EPERM:
    case EROFS:
      return reading ? "; change its permissions, or give a file that you may read"
                     : "; choose a folder that you may write to, or change its permissions";
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return "; free some space or choose another disk";
    case EMFILE:
    case ENFILE:
      return "; too many files are open: raise ulimit -n";
    default:
      return "";
  }
}

[[noreturn]] void fail_errno(const std::string& path, const std::string& what,
                             Access access = Access::kWrite) {
  const int error = errno;
  throw std::runtime_error(path + ": " + what + ": " + std::strerror(error) +
                           repair(error, access));
}

// One call writes or reads at most this much: Linux cuts at 2 GiB, macOS refuses above.
constexpr std::size_t kChunk = std::size_t{1} << 30;

// The temporary file, locked; removed unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string target) : target_(std::move(target)), path_(target_ + ".tmp") {
    while (!open_and_lock()) continue;
    if (::ftruncate(file_, 0) != 0) fail_errno(path_, "cannot be emptied");
  }
  ~TemporaryFile() {
    if (!committed_ && locked_) ::unlink(path_.c_str());
    if (file_ >= 0) ::close(file_);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void put(const void* data, std::size_t bytes) {
    const char* from = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t done = ::write(file_, from, std::min(bytes, kChunk));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) fail_errno(target_, "cannot be written");
      from += done;
      bytes -= static_cast<std::size_t>(done);
    }
  }

  // The file's bytes reach the disk before its name, and the name before this returns.
  void commit() {
    if (::fsync(file_) != 0) fail_errno(target_, "cannot be flushed to the disk");
    if (::rename(path_.c_str(), target_.c_str()) != 0) fail_errno(target_, "cannot be replaced");
    committed_ = true;
    const std::string parent = std::filesystem::path(target_).parent_path().string();
    const int folder = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_CLOEXEC);
    if (folder < 0) fail_errno(target_, "is written, but its folder cannot be flushed");
    const int result = ::fsync(folder), error = errno;
    ::close(folder);
    errno = error;
    // Some file systems have no fsync of folders and say EINVAL.
    if (result != 0 && error != EINVAL)
      fail_errno(target_, "is written, but its folder cannot be flushed");
  }

 private:
  // False if another process renamed or removed the file between the opening and the lock: then the
  // lock is on a file that is path.tmp no more.
  bool open_and_lock() {
    if (file_ >= 0) ::close(file_);
    file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file_ < 0) fail_errno(target_, "cannot be written (as " + path_ + ")");
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      ::close(file_);
      file_ = -1;
      throw std::runtime_error(target_ +
                               ": another process is writing it; wait until it has ended");
    }
    struct stat mine {
    }, there{};
    locked_ = ::fstat(file_, &mine) == 0 && ::stat(path_.c_str(), &there) == 0 &&
              mine.st_ino == there.st_ino && mine.st_dev == there.st_dev;
    return locked_;
  }

  std::string target_, path_;
  int file_ = -1;
  bool locked_ = false, committed_ = false;
};

}  // namespace

InputFile::InputFile(const std::string& path) : path_(path) {
  // O_NONBLOCK: a pipe without a writer would wait for one.
  file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file_ < 0) fail_errno(path, "cannot be opened", Access::kRead);
  struct stat status {};
  const bool known = ::fstat(file_, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    ::close(file_);
    fail(S_ISDIR(status.st_mode) ? "is a folder; wanted a file" : "is not an ordinary file");
  }
  size_ = left_ = static_cast<uint64_t>(status.st_size);
}

InputFile::~InputFile() { ::close(file_); }

void InputFile::fail(const std::string& fault) const {
  throw std::runtime_error(path_ + ": " + fault);
}

void InputFile::read(void* to, std::size_t bytes) {
  char* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t done = ::read(file_, at, std::min(bytes, kChunk));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail_errno(path_, "cannot be read", Access::kRead);
    if (done == 0) fail("ends too early, or was cut while it was read");
    at += done;
    bytes -= static_cast<std::size_t>(done);
    left_ -= static_cast<uint64_t>(done);
  }
}

std::string read_file(const std::string& path) {
  InputFile file(path);
  std::string text(file.size(), '\0');
  file.read(text.data(), text.size());
  return text;
}

static void refuse_special(const std::string& path) {
  struct stat there {};
  if (::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode))
    throw std::runtime_error(path + ": is not an ordinary file; choose another name");
}

void check_writable(const std::string& path) {
  refuse_special(path);
  const TemporaryFile file(path);
}

void write_file_atomically(const std::string& path, const std::function<void(const Put&)>& write) {
  refuse_special(path);
  TemporaryFile file(path);
  write([&](const void* data, std::size_t bytes) { file.put(data, bytes); });
  file.commit();
}

void write_file_atomically(const std::string& path, std::string_view bytes) {
  write_file_atomically(path, [&](const Put& put) { put(bytes.data(), bytes.size()); });
}

std::string shell_command(const std::vector<std::string>& words) {
  const char* program = std::getenv("PELLUCID_COMMAND");
  std::string command;
  const auto add = [&](const std::string& word) {
    command += command.empty() ? "" : " ";
    const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || std::strchr("_-./:=+,@%", c);
    });
    if (plain) {
      command += word;
      return;
    }
    command += '\'';
    for (char c : word) command += c == '\'' ? std::string("'\\''") : std::string(1, c);
    command += '\'';
  };
  add(program && *program ? program : "pellucid");
  for (const std::string& word : words) add(word);
  return command;
}

}  // namespace pellucid
