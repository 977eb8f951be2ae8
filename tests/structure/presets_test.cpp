// CMakePresets.json: each preset makes the build that its name promises.
#include <doctest/doctest.h>

#include <filesystem>

#include "demos/program.h"

namespace fs = std::filesystem;

namespace {

// The tree with build folders of its own.
struct Tree {
  TemporaryFolder folder;

  Tree() {
    for (const char* name : {"CMakeLists.txt", "README.md", "kernels", "tensor", "autograd", "nn",
                             "tutorials", "tests"})
      fs::create_symlink(fs::path(PELLUCID_SOURCE_DIR) / name, folder.path / name);
    fs::copy_file(PELLUCID_SOURCE_DIR "/CMakePresets.json", folder.path / "CMakePresets.json");
  }
  Ended tool(const std::vector<std::string>& command) const {
    return run(command, {.program = "/usr/bin/env", .folder = folder.path.string()});
  }
  // A variable of a build's cache.
  std::string cached(const std::string& build, const std::string& name) const {
    const std::string cache = "\n" + slurp(folder.file(build + "/CMakeCache.txt"));
    const std::size_t at = cache.find("\n" + name + ":");
    if (at == std::string::npos) return "";
    const std::size_t value = cache.find('=', at) + 1;
    return cache.substr(value, cache.find('\n', value) - value);
  }
};

}  // namespace

TEST_CASE("each preset configures its folder with its build type and its sanitizer") {
  const Tree tree;
  struct Preset {
    std::string name, folder, type, sanitizer, openblas;
  };
  for (const Preset& preset : {Preset{"release", "build", "Release", "", "AUTO"},
                               Preset{"debug", "build-debug", "Debug", "", "AUTO"},
                               Preset{"asan", "build-asan", "Debug", "address,undefined", "AUTO"},
                               Preset{"tsan", "build-tsan", "Debug", "thread", "OFF"}}) {
    INFO(preset.name);
    const Ended ended = tree.tool({"cmake", "--preset", preset.name});
    CHECK_MESSAGE(ended.code == 0, ended.err);
    CHECK(tree.cached(preset.folder, "CMAKE_BUILD_TYPE") == preset.type);
    CHECK(tree.cached(preset.folder, "PELLUCID_SANITIZE") == preset.sanitizer);
    CHECK(tree.cached(preset.folder, "PELLUCID_OPENBLAS") == preset.openblas);

    const Ended build =
        tree.tool({"cmake", "--build", "--preset", preset.name, "--target", "help"});
    CHECK_MESSAGE(build.out.find("pellucid_program: phony") != std::string::npos, build.err);
    const Ended tests = tree.tool({"ctest", "--preset", preset.name, "-N"});
    CHECK_MESSAGE(tests.out.find(": structure.presets\n") != std::string::npos, tests.err);
  }
}
