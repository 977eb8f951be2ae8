// tests/mutants.txt cannot rot: each mistake's text still occurs once in its file, and its group of
// tests exists. And tests/mutants.sh tells what is caught from what is not.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>

#include "demos/program.h"

namespace fs = std::filesystem;

namespace {

const std::string kRoot = PELLUCID_SOURCE_DIR;

struct Mutant {
  std::string name;
  std::map<std::string, std::string> fields;  // file, test, old, new
};

std::vector<Mutant> read_list() {
  std::vector<Mutant> mutants;
  std::ifstream in(kRoot + "/tests/mutants.txt");
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line[0] == '#') continue;
    if (line.empty()) {
      inside = false;
    } else if (!inside) {
      inside = true;
      mutants.push_back({line, {}});
    } else {
      const std::size_t space = line.find(' ');
      CAPTURE(line);
      REQUIRE(space != std::string::npos);
      CHECK(mutants.back().fields.emplace(line.substr(0, space), line.substr(space + 1)).second);
    }
  }
  return mutants;
}

}  // namespace

TEST_CASE("every mutant's text occurs once in its file, and its tests exist") {
  const std::vector<Mutant> mutants = read_list();
  std::set<std::string> names, folders;
  for (const Mutant& mutant : mutants) {
    INFO(mutant.name);
    CHECK(names.insert(mutant.name).second);
    REQUIRE(mutant.fields.size() == 4);
    const std::string file = mutant.fields.at("file"), test = mutant.fields.at("test"),
                      old_text = mutant.fields.at("old");
    CHECK(old_text != mutant.fields.at("new"));
    folders.insert(file.substr(0, file.find('/')));
    const std::string text = slurp(kRoot + "/" + file);
    const std::size_t at = text.find(old_text);
    CHECK_MESSAGE(at != std::string::npos, file, " has no ", old_text);
    if (at != std::string::npos)
      CHECK_MESSAGE(text.find(old_text, at + 1) == std::string::npos, file, " has two ", old_text);
    std::string group = test.substr(0, test.find(' '));
    const std::size_t dot = group.find('.');
    REQUIRE(dot != std::string::npos);
    CHECK(fs::exists(kRoot + "/tests/" + group.replace(dot, 1, "/") + "_test.cpp"));
  }
  CHECK(mutants.size() >= 20);
  CHECK(folders == std::set<std::string>{"autograd", "kernels", "nn", "tensor", "tutorials"});
  std::cout << "FIGURE | mutants listed for ./pellucid test --mutants | " << mutants.size() << "\n";
}

namespace {

// A tree of one library file and a ninja that makes its only test: it passes while the file says
// "right" and "good".
struct World {
  TemporaryFolder folder;
  std::string root = folder.file("root");

  explicit World(const std::string& list) {
    for (const char* name : {"kernels", "tensor", "autograd", "nn", "tutorials", "tests"}) {
      fs::create_directories(root + "/" + name);
      spit(root + "/" + name + "/empty", "");
    }
    for (const char* name :
         {"CMakeLists.txt", "CMakePresets.json", "CONTRIBUTING.md", "README.md", "pellucid"})
      spit(root + "/" + name, "");
    spit(root + "/kernels/a.cpp", "right\n  good = 1 + &;\nunused unused\n");
    spit(root + "/tests/mutants.txt", list);
    fs::create_directories(folder.file("bin"));
    executable("cmake", "echo >\"$4/build.ninja\"; mkdir -p \"$4/tests\"\n");
    executable("ninja",
               "a=$2/../tree/kernels/a.cpp\n"
               "grep -q broken $a && exit 1\n"
               "{ echo '#!/bin/sh'; echo \"echo 'TEST CASE:  one of them'\"\n"
               "echo \"grep -q right $a && grep -q good $a\"; } >$2/tests/$3\n"
               "chmod +x $2/tests/$3\n");
  }
  void executable(const std::string& name, const std::string& text) const {
    const std::string path = folder.file("bin/" + name);
    spit(path, "#!/bin/sh\n" + text);
    fs::permissions(path, fs::perms::owner_all);
  }
  Ended mutants(const std::vector<std::string>& words = {}) const {
    std::vector<std::string> arguments = {kRoot + "/tests/mutants.sh", root};
    arguments.insert(arguments.end(), words.begin(), words.end());
    RunOptions shell;
    shell.program = "/bin/sh";
    shell.environment = {{"PATH", folder.file("bin") + ":" + std::getenv("PATH")}};
    return run(arguments, shell);
  }
};

std::string block(const std::string& name, const std::string& old_text, const std::string& text) {
  return name + "\nfile kernels/a.cpp\ntest kernels.a X=1\nold " + old_text + "\nnew " + text +
         "\n\n";
}

}  // namespace

TEST_CASE("the script says which mutants are caught, and leaves the tree alone") {
  const World world("# a comment\n\n" + block("one", "right", "wrong") +
                    block("two", "good = 1 + &;", "bad\\n & \\1"));
  const Ended all = world.mutants();
  INFO(all.out, all.err);
  CHECK(all.code == 0);
  CHECK(all.out.ends_with("\n2 of 2 caught\n"));
  CHECK(all.out.find("| one of them") != std::string::npos);
  CHECK(slurp(world.root + "/kernels/a.cpp") == "right\n  good = 1 + &;\nunused unused\n");
  CHECK(world.mutants({"two"}).out.ends_with("\n1 of 1 caught\n"));
  CHECK(world.mutants({"neither"}).code == 1);
}

TEST_CASE("a mutant that survives or does not build is not caught; text must occur once") {
  const Ended some = World(block("one", "right", "wrong") + block("two", " = 1", " = 2") +
                           block("three", "right", "broken"))
                         .mutants();
  INFO(some.out, some.err);
  CHECK(some.code == 1);
  CHECK(some.out.ends_with("\n1 of 3 caught\n"));
  CHECK(some.out.find("| NOTHING: it does not build") != std::string::npos);
  for (const char* text : {"unused", "absent"}) {
    const Ended refused = World(block("one", text, "wrong")).mutants();
    CHECK(refused.code == 1);
    CHECK(refused.err == "mutants: one: its text does not occur exactly once in kernels/a.cpp\n");
  }
  // A test that fails anyway proves nothing.
  const World red(block("one", "good", "right"));
  spit(red.root + "/kernels/a.cpp", "good\n");
  const Ended refused = red.mutants();
  CHECK(refused.code == 1);
  CHECK(
      refused.err.ends_with("mutants: kernels.a X=1 does not pass as it is; the lines above say "
                            "why\n"));
}
