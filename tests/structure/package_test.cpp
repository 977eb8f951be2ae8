// The library in a program outside the tree, by README.md's own lines: installed and found, and as
// a part of the program's project.
#include <doctest/doctest.h>

#include <filesystem>
#include <set>

#include "demos/program.h"
#include "structure/readme_blocks.h"

namespace fs = std::filesystem;

namespace {

const std::string kBuild = fs::path(PELLUCID_PROGRAM).parent_path().string();

// A program of the PATH.
Ended tool(const std::vector<std::string>& command,
           const std::map<std::string, std::string>& environment = {}) {
  return run(command, {.program = "/usr/bin/env", .environment = environment});
}

Ended configure(const std::string& source, const std::string& build,
                const std::vector<std::string>& more = {}) {
  std::vector<std::string> command = {"cmake", "-S", source,  "-B",
                                      build,   "-G", "Ninja", "-DCMAKE_CXX_COMPILER=" PELLUCID_CXX};
  command.insert(command.end(), more.begin(), more.end());
  return tool(command);
}

// A project of two files, CMakeLists.txt and the README's program.
struct Consumer {
  TemporaryFolder folder;
  std::string build = folder.file("build");

  explicit Consumer(const std::string& cmake) {
    spit(folder.file("CMakeLists.txt"), cmake);
    spit(folder.file("fit.cpp"), blocks("cpp").at(0));
  }
  Ended configured(const std::vector<std::string>& more = {}) const {
    return configure(folder.path.string(), build, more);
  }
  void check_program() const {
    // So ccache finds what was compiled in another temporary folder.
    const std::map<std::string, std::string> ccache = {{"CCACHE_BASEDIR", folder.path.string()},
                                                       {"CCACHE_NOHASHDIR", "1"}};
    const Ended built = tool({"cmake", "--build", build, "--parallel", "2"}, ccache);
    INFO(built.out, built.err);
    REQUIRE(built.code == 0);
    const Ended ended = run({}, {.program = build + "/fit"});
    CHECK(ended.code == 0);
    CHECK(ended.out == blocks("text").at(0));
  }
};

// The build's installed package, moved elsewhere.
const std::string& installed() {
  static const TemporaryFolder folder;
  static const std::string prefix = folder.file("moved");
  if (!fs::exists(prefix)) {
    const Ended ended = tool({"cmake", "--install", kBuild, "--prefix", folder.file("first")});
    INFO(ended.out, ended.err);
    REQUIRE(ended.code == 0);
    fs::rename(folder.file("first"), prefix);
  }
  return prefix;
}

std::string find_package(const std::string& what) {
  std::string text = blocks("cmake").at(0);
  const std::string old = "add_subdirectory(pellucid)";
  return text.replace(text.find(old), old.size(), "find_package(" + what + ")");
}

std::set<std::string> headers(const fs::path& root) {
  std::set<std::string> found;
  for (const std::string floor : {"kernels", "tensor", "autograd", "nn", "tutorials/draw"})
    for (const auto& entry : fs::directory_iterator(root / floor))
      if (entry.path().extension() == ".h")
        found.insert(floor + "/" + entry.path().filename().string());
  return found;
}

}  // namespace

TEST_CASE("the README's program is built with the installed library and prints what it says") {
  const Consumer consumer(find_package("pellucid REQUIRED"));
  const Ended ended = consumer.configured({"-DCMAKE_PREFIX_PATH=" + installed()});
  INFO(ended.out, ended.err);
  REQUIRE(ended.code == 0);
  consumer.check_program();
}

TEST_CASE("the README's program is built with the library as a part of it, and with nothing else") {
  const Consumer consumer(blocks("cmake").at(0));
  fs::create_directory_symlink(PELLUCID_SOURCE_DIR, consumer.folder.file("pellucid"));
  std::vector<std::string> options;
  if (tool({"ccache", "--version"}).code == 0)
    options.push_back("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache");
  const Ended ended = consumer.configured(options);
  INFO(ended.out, ended.err);
  REQUIRE(ended.code == 0);
  const std::string targets = tool({"cmake", "--build", consumer.build, "--target", "help"}).out;
  for (const std::string name : {"pellucid_nn", "pellucid_draw"})
    CHECK(targets.find(name + ": phony") != std::string::npos);
  for (const std::string name : {"pellucid_program", "pellucid_course", "lesson_01_tensors",
                                 "example_two_moons", "test_main", "Experimental", "install"})
    CHECK_MESSAGE(targets.find("\n" + name + ": ") == std::string::npos, name);
  consumer.check_program();
  CHECK(fs::exists(consumer.build + "/pellucid/libpellucid_nn.a"));
  CHECK_FALSE(fs::exists(consumer.build + "/pellucid/libpellucid_draw.a"));
}

TEST_CASE("every installed header compiles alone, and only the kernels' own stay at home") {
  const std::string include = installed() + "/include/pellucid";
  std::set<std::string> absent = headers(PELLUCID_SOURCE_DIR);
  for (const std::string& header : headers(include)) CHECK(absent.erase(header) == 1);
  CHECK(absent == std::set<std::string>{"kernels/attention_tile.h", "kernels/math.h",
                                        "kernels/row_sums.h", "kernels/simd.h", "kernels/tile.h",
                                        "kernels/xsa_row.h"});
  const Ended ended = tool({"sh", "-c",
                            "cd \"$0\" && find . -name '*.h' | xargs -P 2 -I @ " PELLUCID_CXX
                            " -std=c++20 -Wall -Wextra -Werror -fsyntax-only -I . -include @"
                            " -x c++ /dev/null",
                            include});
  INFO(ended.err);
  CHECK(ended.code == 0);
}

TEST_CASE("the package's version is checked, and its files name no folder of the build") {
  const Consumer right(find_package("pellucid 0.1 REQUIRED"));
  const Ended found = right.configured({"-DCMAKE_PREFIX_PATH=" + installed()});
  CHECK_MESSAGE(found.code == 0, found.err);
  for (const std::string version : {"0.0", "0.2", "99"}) {
    const Consumer wrong(find_package("pellucid " + version + " REQUIRED"));
    const Ended ended = wrong.configured({"-DCMAKE_PREFIX_PATH=" + installed()});
    INFO(ended.err);
    CHECK(ended.code == 1);
    CHECK(ended.err.find("compatible with requested version \"" + version) != std::string::npos);
    CHECK(ended.err.find("pellucidConfig.cmake, version: 0.1.0") != std::string::npos);
  }
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(installed())) {
    if (entry.path().extension() != ".cmake") continue;
    const std::string text = slurp(entry.path().string());
    INFO(entry.path().string());
    for (const std::string& folder : {std::string(PELLUCID_SOURCE_DIR), kBuild, installed()})
      CHECK(text.find(folder) == std::string::npos);
    CHECK(text.find("libopenblas") == std::string::npos);  // find_dependency finds it
    ++files;
  }
  CHECK(files == 4);
}

TEST_CASE("the package asks for the OpenBLAS that it was built with, and only then") {
  const std::string without_blas = "-DCMAKE_DISABLE_FIND_PACKAGE_BLAS=TRUE";
  const Consumer consumer(find_package("pellucid REQUIRED"));
  const std::string config = installed() + "/lib/cmake/pellucid/pellucidConfig.cmake";
  if (slurp(config).find("BLA_VENDOR OpenBLAS") != std::string::npos) {
    const Ended ended = consumer.configured({"-DCMAKE_PREFIX_PATH=" + installed(), without_blas});
    CHECK(ended.code == 1);
    CHECK(ended.err.find("BLAS") != std::string::npos);
  }

  const TemporaryFolder other;
  const Ended off = configure(PELLUCID_SOURCE_DIR, other.path.string(),
                              {"-DPELLUCID_OPENBLAS=OFF", "-DBUILD_TESTING=OFF"});
  INFO(off.err);
  REQUIRE(off.code == 0);
  spit(other.file("pellucidTargets.cmake"), "add_library(pellucid::nn INTERFACE IMPORTED)\n");
  const Ended ended = consumer.configured({"-Dpellucid_DIR=" + other.path.string(), without_blas});
  CHECK_MESSAGE(ended.code == 0, ended.err);
}

TEST_CASE("a project's older C++ does not reach the library that is a part of it") {
  const Consumer consumer(blocks("cmake").at(0));
  fs::create_directory_symlink(PELLUCID_SOURCE_DIR, consumer.folder.file("pellucid"));
  const Ended ended =
      consumer.configured({"-DCMAKE_CXX_STANDARD=17", "-DCMAKE_CXX_EXTENSIONS=OFF"});
  CHECK_MESSAGE(ended.code == 0, ended.err);
  const std::string rules = slurp(consumer.build + "/build.ninja");
  CHECK(rules.find("-std=c++20") != std::string::npos);
  CHECK(rules.find("-std=c++17") == std::string::npos);
}
