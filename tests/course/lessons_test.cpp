// Every tutorials/NN-name/README.md keeps to the form of a lesson: its headings, its code blocks,
// which stand in the files that they name, its outputs, which main.cpp prints, its links, formulas,
// commands and figures.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <iostream>
#include <sstream>

#include "demos/program.h"

namespace fs = std::filesystem;

namespace {

const fs::path kTutorials = fs::path(PELLUCID_SOURCE_DIR) / "tutorials";
const std::vector<std::string> kHeadings = {"The problem", "The idea",  "In plain ops",
                                            "By hand",     "Check it",  "Make it fast",
                                            "Your turn",   "Where next"};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) found.push_back(line);
  return found;
}

// User and system time of the child processes that have ended.
double cpu_seconds_of_children() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr rlim_t kCpuLimit = 0;  // only the clock's
#else
constexpr rlim_t kCpuLimit = 120;  // twice what a lesson may take
#endif

struct Block {
  std::string language, caption, text;
};

struct Lesson {
  fs::path folder;
  std::string name, page;
  std::vector<Block> blocks = {};
  std::vector<std::string> headings = {};
  std::string prose = {};  // the page without its code blocks

  explicit Lesson(const fs::path& at)
      : folder(at), name(at.filename().string()), page(slurp((at / "README.md").string())) {
    bool inside = false;
    std::string caption;
    for (const std::string& line : lines_of(page)) {
      if (line.rfind("```", 0) == 0) {
        inside = !inside;
        if (inside) blocks.push_back({line.substr(3), caption, ""});
      } else if (inside) {
        blocks.back().text += line + "\n";
      } else {
        if (line.rfind("## ", 0) == 0) headings.push_back(line.substr(3));
        if (!line.empty()) caption = line;
        prose += line + "\n";
      }
    }
  }
};

std::vector<Lesson> lessons() {
  std::vector<Lesson> found;
  for (const auto& entry : fs::directory_iterator(kTutorials)) {
    const std::string name = entry.path().filename().string();
    if (name.size() > 3 && std::isdigit(name[0]) && std::isdigit(name[1]) && name[2] == '-')
      found.emplace_back(entry.path());
  }
  return found;
}

// "[shown](link)rest" with nothing before it.
bool link_and_rest(const std::string& line, std::string& link, std::string& rest) {
  const std::size_t middle = line.find("]("), end = line.find(')', middle);
  if (line.empty() || line[0] != '[' || middle == std::string::npos || end == std::string::npos)
    return false;
  link = line.substr(middle + 2, end - middle - 2);
  rest = line.substr(end + 1);
  return true;
}

// Why a block is not what its caption says it is: a part of a file at or shortly after the words
// that name the region.
std::string fault_of_code(const Lesson& lesson, const Block& block) {
  std::string link, rest;
  if (!link_and_rest(block.caption, link, rest) || rest.size() < 6 || rest.rfind(", *", 0) != 0 ||
      rest.substr(rest.size() - 2) != "*:")
    return "its caption is not of the form [file](link), *region*:";
  const std::string region = rest.substr(3, rest.size() - 5),
                    file = slurp((lesson.folder / link).string());
  const std::size_t begin = file.find(region);
  if (begin == std::string::npos) return "no region of this name in " + link;
  const std::size_t line_begin = file.rfind('\n', begin) + 1,
                    at = file.find(block.text, line_begin);
  if (at == std::string::npos) return "not in " + link;
  const auto between =
      std::count(file.begin() + static_cast<std::ptrdiff_t>(begin),
                 file.begin() + static_cast<std::ptrdiff_t>(std::max(begin, at)), '\n');
  return between > 30 ? "too far from the words that name the region" : "";
}

// Numbers, their signs, and the spaces before them become #: what a stopwatch or a training
// measured.
std::string without_numbers(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit_at = [&](std::size_t at) {
      return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]));
    };
    const bool after = !out.empty() && out.back() == '#';
    const bool sign = text[i] == '-' && !after && digit_at(i + 1);
    if (!digit_at(i) && !sign && !(text[i] == '.' && after)) {
      out += text[i];
    } else if (!after) {
      while (!out.empty() && out.back() == ' ') out.pop_back();
      out += '#';
    }
  }
  return out;
}

// Formulas between $ or $$ end in the paragraph in which they begin, and so do their braces.
std::string fault_of_formulas(const std::string& prose) {
  std::istringstream in(prose);
  std::string paragraph;
  for (std::string line; std::getline(in, line) || !paragraph.empty();
       paragraph += line + "\n", line.clear()) {
    if (!line.empty()) continue;
    int depth = 0, dollars = 0;
    bool code = false;
    for (char c : paragraph) {
      if (c == '`') code = !code;
      if (code) continue;
      dollars += c == '$';
      if (dollars % 2 || dollars % 4) depth += (c == '{') - (c == '}');
      if (depth < 0) return "a } too many: " + paragraph;
    }
    if (dollars % 2 != 0) return "an odd number of $: " + paragraph;
    if (depth != 0) return "a { too many: " + paragraph;
    paragraph.clear();
    if (!in) break;
  }
  return "";
}

std::vector<std::string> links_of(const std::string& prose) {
  std::vector<std::string> links;
  for (std::size_t at = 0; (at = prose.find("](", at)) != std::string::npos; ++at)
    links.push_back(prose.substr(at + 2, prose.find(')', at) - at - 2));
  return links;
}

std::string program_of(const Lesson& lesson) {
  std::string target = "lesson_" + lesson.name;
  std::replace(target.begin(), target.end(), '-', '_');
  return target;
}

}  // namespace

TEST_CASE("a lesson has the headings of all lessons, in their order") {
  CHECK(!lessons().empty());
  for (const Lesson& lesson : lessons()) {
    INFO(lesson.name);
    CHECK(lesson.headings == kHeadings);
    CHECK(ascii(lesson.page));
  }
}

TEST_CASE("each code block of a lesson stands in the file that it names") {
  for (const Lesson& lesson : lessons()) {
    int blocks = 0;
    for (const Block& block : lesson.blocks) {
      if (block.language != "cpp") continue;
      ++blocks;
      INFO(lesson.name << ": " << block.caption << "\n" << block.text);
      CHECK(fault_of_code(lesson, block) == "");
    }
    CHECK(blocks >= 8);
  }
}

TEST_CASE("the test of code blocks knows a block that is not in its file") {
  const Lesson lesson(kTutorials / "01-tensors");
  const std::string caption = "[tensor/strides.cpp](../../tensor/strides.cpp), *row_major*:";
  CHECK(fault_of_code(lesson, {"cpp", caption, "  int64_t stride = 1;\n"}) == "");
  CHECK(fault_of_code(lesson, {"cpp", caption, "  int64_t stride = 2;\n"}) ==
        "not in ../../tensor/strides.cpp");
  CHECK(fault_of_code(lesson, {"cpp", "Look:", "  int64_t stride = 1;\n"}) ==
        "its caption is not of the form [file](link), *region*:");
  CHECK(without_numbers("1. sum  12.5 GB/s") == without_numbers("1. sum 3 GB/s"));
  CHECK(without_numbers("1  -0.00 a-b") == without_numbers("2 0.31 a-b"));
  CHECK(without_numbers("sum 1 GB/s") != without_numbers("mean 1 GB/s"));
  CHECK(fault_of_formulas("so $a$ is\n\n$$b_{1}$$\n") == "");
  CHECK(fault_of_formulas("so $a is\n\n") == "an odd number of $: so $a is\n");
  CHECK(fault_of_formulas("so $a_{1$ is\n") == "a { too many: so $a_{1$ is\n");
}

TEST_CASE("a learner's program for a pasted call is built as its head says") {
  const TemporaryFolder folder;
  const Ended built = run({PELLUCID_CXX, "-std=c++20", "-I.", "tutorials/01-tensors/try.cpp",
                           "tensor/strides.cpp", "-o", folder.file("try")},
                          {.program = "/usr/bin/env", .folder = PELLUCID_SOURCE_DIR});
  INFO(built.err);
  REQUIRE(built.code == 0);
  CHECK(run({}, {.program = folder.file("try")}).out == "(4, 1)\n");
}

TEST_CASE("the links and formulas of a lesson resolve") {
  for (const Lesson& lesson : lessons()) {
    INFO(lesson.name);
    CHECK(fault_of_formulas(lesson.prose) == "");
    for (const std::string& link : links_of(lesson.prose)) {
      INFO(link);
      if (link.rfind("https://", 0) != 0) CHECK(fs::exists(lesson.folder / link));
    }
  }
}

TEST_CASE("a lesson's main.cpp prints, in order, what the lesson quotes, and draws its figures") {
  for (const Lesson& lesson : lessons()) {
    INFO(lesson.name);
    TemporaryFolder folder, elsewhere;
    const std::string program = folder.file("program"), figures_folder = program + "_figures";
    fs::create_symlink(PELLUCID_LESSONS "/" + program_of(lesson), program);
    const double before = cpu_seconds_of_children();
    const Ended ended = run({}, {.program = program,
                                 .folder = elsewhere.path.string(),
                                 .cpu_seconds = kCpuLimit,
                                 .seconds = 900});
    INFO("ended with " << ended.code << ", 137 and 142 at a limit of time\n" << ended.err);
    const double seconds = cpu_seconds_of_children() - before;
    CHECK(ended.code == 0);
    std::cout << "FIGURE | lesson " << lesson.name << ", CPU seconds of main.cpp | " << seconds
              << "\n";
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    CHECK(seconds < 60);  // not by the clock, which also runs for what else the machine does
#endif
    const std::string measured = without_numbers(ended.out);
    std::size_t at = 0;
    int quoted = 0;
    for (const Block& block : lesson.blocks) {
      if (block.language != "text") continue;
      INFO(block.text);
      std::string link, rest;
      REQUIRE(link_and_rest(block.caption, link, rest));
      CHECK(link == "main.cpp");
      ++quoted;
      if (rest == " prints, on one machine:") {
        CHECK(measured.find(without_numbers(block.text)) != std::string::npos);
        continue;
      }
      CHECK(rest == " prints:");
      const std::size_t found = ended.out.find(block.text, at);
      CHECK(found != std::string::npos);
      if (found != std::string::npos) at = found + block.text.size();
    }
    CHECK(quoted >= 3);

    int figures = 0;
    for (const auto& entry : fs::directory_iterator(lesson.folder)) {
      if (entry.path().extension() != ".svg") continue;
      const std::string name = entry.path().filename().string();
      INFO(name);
      ++figures;
      CHECK(slurp(entry.path().string()) == slurp(figures_folder + "/" + name));
      CHECK(lesson.page.find("](" + name + ")") != std::string::npos);
    }
    CHECK(figures >= 1);
    CHECK(snapshot(figures_folder).size() == static_cast<std::size_t>(figures));
    CHECK(snapshot(elsewhere.path).empty());
  }
}

TEST_CASE("a lesson's figures go into the folder that is the argument of main.cpp") {
  TemporaryFolder folder;
  run({folder.path.string()}, {.program = PELLUCID_LESSONS "/lesson_01_tensors", .seconds = 900});
  CHECK(fs::exists(folder.file("storage.svg")));
}

TEST_CASE("a program that does not end is ended by its limits") {
  const std::string shell = "/bin/sh";
  CHECK(run({"-c", "while :; do :; done"}, {.program = shell, .cpu_seconds = 1}).code ==
        128 + SIGKILL);
  CHECK(run({"-c", "exec sleep 1000"}, {.program = shell, .seconds = 1}).code == 128 + SIGALRM);
}

TEST_CASE("the commands of a lesson run") {
  for (const Lesson& lesson : lessons())
    for (const Block& block : lesson.blocks) {
      if (block.language != "sh") continue;
      for (const std::string& line : lines_of(block.text)) {
        INFO(lesson.name << ": " << line);
        if (line.rfind("./pellucid ", 0) == 0) {
          const Ended ended =
              run({"-c", "'" PELLUCID_PROGRAM "' " + line.substr(11)}, {.program = "/bin/sh"});
          INFO(ended.out << ended.err);
          CHECK(ended.code == 0);
        } else {  // they build and run what was run above
          CHECK((line == "ninja -C build " + program_of(lesson) ||
                 line == "build/" + program_of(lesson)));
        }
      }
    }
}
