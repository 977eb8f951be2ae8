// Files replaced whole or not at all: out of space, forbidden, killed, written twice at once.
#include "tensor/files.h"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <utility>

#include "tensor/file_helpers.h"

using namespace pellucid;

// These stand before the system's fsync and flock, so that a test can make the first fail for
// folders, and act as another process before the second.
static int folder_fault = 0;
static std::function<void()> before_lock;
extern "C" int fsync(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0 || !S_ISDIR(status.st_mode) || folder_fault == 0) return 0;
  errno = folder_fault;
  return -1;
}
extern "C" int flock(int file, int operation) noexcept {
  if (before_lock) std::exchange(before_lock, nullptr)();
  static const auto system = reinterpret_cast<int (*)(int, int)>(::dlsym(RTLD_NEXT, "flock"));
  return system(file, operation);
}

static std::string write_fault(const std::string& path, const std::string& bytes) {
  return fault_of(path, [&] { write_file_atomically(path, bytes); });
}

TEST_CASE("a file is written, replaced, read back, and nothing else is left in the folder") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.txt");
  for (const std::string& bytes : {std::string("old"), std::string(), std::string(100'000, 'x')}) {
    write_file_atomically(path, bytes);
    CHECK(read_file(path) == bytes);
  }
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
}

TEST_CASE("a relative name without a folder works") {
  const TemporaryFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path);
  write_file_atomically("a.txt", "1");
  std::filesystem::current_path(before);
  CHECK(slurp(folder.file("a.txt")) == "1");
}

TEST_CASE("what cannot be read is one line with the repair") {
  const TemporaryFolder folder;
  const auto read_fault = [](const std::string& path) {
    return fault_of(path, [&] { read_file(path); });
  };
  CHECK(read_fault(folder.file("none")) ==
        "cannot be opened: No such file or directory; check the path");
  spit(folder.file("plain"), "");
  CHECK(read_fault(folder.file("plain/a")) == "cannot be opened: Not a directory; check the path");
  CHECK(read_fault(folder.path.string()) == "is a folder; wanted a file");
  CHECK(read_fault("/dev/null") == "is not an ordinary file");
  const std::string pipe = folder.file("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(read_fault(pipe) == "is not an ordinary file");  // and does not wait for a writer
  spit(folder.file("short"), "abc");
  InputFile file(folder.file("short"));
  char bytes[4];
  CHECK(fault_of(file.path(), [&] { file.read(bytes, 4); }) ==
        "ends too early, or was cut while it was read");
}

TEST_CASE("a folder that is missing, or no folder, or a file that is a device") {
  const TemporaryFolder folder;
  CHECK(write_fault(folder.file("no/a"), "x") ==
        "cannot be written (as " + folder.file("no/a") +
            ".tmp): No such file or directory; check the path, and make its folder first");
  spit(folder.file("plain"), "");
  CHECK(write_fault(folder.file("plain/a"), "x").find("Not a directory; check the path") !=
        std::string::npos);
  spit(folder.file("old"), "abc");
  check_writable(folder.file("old")), check_writable(folder.file("new"));
  CHECK(slurp(folder.file("old")) == "abc");
  CHECK_FALSE(std::filesystem::exists(folder.file("new")));
  CHECK_FALSE(std::filesystem::exists(folder.file("new.tmp")));
  CHECK(fault_of("/dev/full", [] { check_writable("/dev/full"); }) ==
        "is not an ordinary file; choose another name");
  CHECK(write_fault("/dev/full", "x") == "is not an ordinary file; choose another name");
  CHECK(write_fault(folder.path.string(), "x") == "is not an ordinary file; choose another name");
  struct stat status {};
  CHECK((::stat("/dev/full", &status) != 0 || S_ISCHR(status.st_mode)));
}

TEST_CASE("a folder that may not be written leaves the old file as it was") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  spit(path, "old");
  std::filesystem::permissions(folder.path, std::filesystem::perms(0555));
  const bool root = ::geteuid() == 0;  // root may write everywhere: be nobody for this test
  if (root) REQUIRE(::seteuid(65534) == 0);
  const std::string fault = write_fault(path, "new");
  if (root) REQUIRE(::seteuid(0) == 0);
  CHECK(fault == "cannot be written (as " + path +
                     ".tmp): Permission denied; choose a folder that you may write to, or change "
                     "its permissions");
  std::filesystem::permissions(folder.path, std::filesystem::perms(0755));
  CHECK(slurp(path) == "old");
}

TEST_CASE("out of space: the old file stays, the temporary one goes") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  spit(path, "old");
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &limit) == 0);
  const rlimit small{1000, limit.rlim_max};
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string fault = write_fault(path, std::string(5000, 'x'));
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  ::signal(SIGXFSZ, handler);
  CHECK(fault == "cannot be written: File too large; free some space or choose another disk");
  CHECK(slurp(path) == "old");
  CHECK_FALSE(std::filesystem::exists(path + ".tmp"));
}

TEST_CASE("a writer that throws leaves the old file, and its own error comes through") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  spit(path, "old");
  CHECK_THROWS_WITH_AS(write_file_atomically(path,
                                             [](const Put& put) {
                                               put("half", 4);
                                               throw std::out_of_range("mine");
                                             }),
                       "mine", std::out_of_range);
  CHECK(slurp(path) == "old");
  CHECK_FALSE(std::filesystem::exists(path + ".tmp"));
}

TEST_CASE("two writers of one file: the second is refused, the first is whole") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  write_file_atomically(path, [&](const Put& put) {
    put("first ", 6);
    CHECK(write_fault(path, "second") == "another process is writing it; wait until it has ended");
    put("whole", 5);
  });
  CHECK(slurp(path) == "first whole");
}

TEST_CASE("a folder that cannot be flushed is an error, unless folders have no fsync") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  folder_fault = EIO;
  const std::string fault = write_fault(path, "new");
  folder_fault = EINVAL;
  write_file_atomically(path, "newer");
  folder_fault = 0;
  CHECK(fault == "is written, but its folder cannot be flushed: Input/output error");
  CHECK(slurp(path) == "newer");
}

TEST_CASE("a temporary file that another process renames before it is locked is not written to") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  before_lock = [&] { std::filesystem::rename(path + ".tmp", path); };
  write_file_atomically(path, "mine");
  CHECK(slurp(path) == "mine");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
}

TEST_CASE("what a killed process left behind is taken over; a link there is not followed") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a"), victim = folder.file("victim");
  spit(path + ".tmp", std::string(1000, '?'));
  write_file_atomically(path, "new");
  CHECK(slurp(path) == "new");
  spit(victim, "precious");
  std::filesystem::create_symlink(victim, path + ".tmp");
  CHECK(write_fault(path, "newer") != "");
  CHECK(slurp(victim) == "precious");
}

TEST_CASE("killed at any moment: the old file or the new one, always whole") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  const std::size_t size = 300'000;
  const auto start = std::chrono::steady_clock::now();
  write_file_atomically(path, std::string(size, 'a'));
  const std::chrono::duration<double, std::micro> one_write =
      std::chrono::steady_clock::now() - start;
  int changes = 0;
  std::string before = slurp(path);
  for (int round = 0; round < 40 || (changes == 0 && round < 400); ++round) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      for (char letter = 'a';; letter = letter == 'z' ? 'a' : static_cast<char>(letter + 1))
        write_file_atomically(path, [&](const Put& put) {
          const std::string part(size / 10, letter);
          for (int i = 0; i < 10; ++i) put(part.data(), part.size());
        });
    }
    ::usleep(static_cast<useconds_t>(one_write.count() * (0.3 + 0.13 * round)));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const std::string now = slurp(path);
    REQUIRE(now.size() == size);
    REQUIRE(now == std::string(size, now[0]));
    changes += now != before;
    before = now;
  }
  CHECK(changes > 0);  // else nothing was tested
}
