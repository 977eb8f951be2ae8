// What the tests of files share: a folder of their own, whole files as strings, messages of errors.
#pragma once
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

struct TemporaryFolder {
  std::filesystem::path path;
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "pellucid-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    path = name;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return (path / name).string(); }
};

inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline void spit(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<long>(bytes.size()));
}

// In place: to truncate a file and write it anew makes ext4 flush it, 5 ms each time.
inline void flip_bit(const std::string& path, std::size_t bit) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<long>(bit / 8));
  const int byte = file.get() ^ (1 << bit % 8);
  file.seekp(static_cast<long>(bit / 8));
  file.put(static_cast<char>(byte));
}

// What the call throws, without the path before the first ": "; "" if it throws nothing. Only a
// std::runtime_error that names the path is let through.
template <class Call>
std::string fault_of(const std::string& path, Call call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    const std::string text = error.what();
    if (!text.starts_with(path + ": ") || text.find('\n') != std::string::npos) throw;
    return text.substr(path.size() + 2);
  }
  return "";
}
