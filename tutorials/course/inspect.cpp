#include "tutorials/course/inspect.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "tutorials/course/symbols.h"

namespace pellucid::course {

namespace fs = std::filesystem;

namespace {

bool has_word(const std::string& code, const std::string& word) {
  const auto letter = [&](std::size_t i) {
    return i < code.size() && (std::isalnum(static_cast<unsigned char>(code[i])) || code[i] == '_');
  };
  for (std::size_t at = 0; (at = code.find(word, at)) != std::string::npos; at += word.size())
    if (!(at > 0 && letter(at - 1)) && !letter(at + word.size())) return true;
  return false;
}

// The source file of the library that defines a symbol, or "".
std::string defined_in(const Exercise& exercise, const std::string& symbol) {
  for (const std::string& object : exercise.library)
    for (const Symbol& s : symbols_of(object))
      if (s.name == symbol && !s.wanted()) return source_of(object);
  return "";
}

// The functions that stand in for the library's, as the linker names them. Instantiations are weak,
// as inline functions are: the exercise names the templates.
std::set<std::string> wanted_functions(const Exercise& exercise) {
  std::set<std::string> names;
  for (const Symbol& s : symbols_of(exercise.library_object()))
    if (!s.wanted() && !is_compilers_own(s.name) &&
        (!s.weak() || (begins_with(s.name, exercise.templates) &&
                       readable(s.name).find("{lambda") == std::string::npos)))
      names.insert(s.name);
  return names;
}

// The compiler's own headers; where CMake does not know them, all count as such.
bool is_system(const Exercise& exercise, const fs::path& file) {
  return exercise.system_folders.empty() ||
         std::any_of(exercise.system_folders.begin(), exercise.system_folders.end(),
                     [&](const std::string& folder) {
                       const auto way = file.lexically_relative(fs::weakly_canonical(folder));
                       return !way.empty() && *way.begin() != "..";
                     });
}

}  // namespace

// Lines that end with a backslash joined with the next, as compilers do, also over blanks that
// follow the backslash.
static std::string joined_lines(const std::string& text) {
  const std::string blanks(" \t\f\v\r\0", 6);
  std::string code;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t end = text[i] == '\\' ? text.find_first_not_of(blanks, i + 1) : i;
    if (text[i] == '\\' && end != std::string::npos && text[end] == '\n')
      i = end;
    else
      code += text[i];
  }
  return code;
}

// The file that a line includes, as it is named there, or "".
static std::string included(const std::string& line) {
  std::istringstream in(line);
  std::string words, file;
  for (char c; in.get(c) && c != '"' && c != '<';)
    if (c != ' ' && c != '\t') words += c;
  const bool includes = words == "#include" || words == "%:include" || words == "#include_next";
  if (includes) std::getline(in, file);
  return file.substr(0, file.find_first_of("\">"));
}

// Comments and strings count too: to leave them out surely would take a compiler's own lexer.
std::vector<std::string> text_faults(const std::string& text) {
  const std::string code = joined_lines(text);
  for (const char* word : {"asm", "__asm", "__asm__"})
    if (has_word(code, word))
      return {"contains the word " + std::string(word) +
              ": write it in C++, and without that word"};
  if (code.find("##") != std::string::npos || code.find("%:%:") != std::string::npos)
    return {"contains ##: write names out, a macro that puts words together hides them"};
  for (const char* part : {"_fileno", "_IO_", "/proc/"})
    if (code.find(part) != std::string::npos)
      return {"contains " + std::string(part) + ": an exercise needs no inner parts of the system"};
  std::istringstream lines(code);
  for (std::string line; std::getline(lines, line);)
    if (const std::string file = included(line);
        file.starts_with('/') || file.find("..") != std::string::npos)
      return {"includes " + file + ": only the library's headers, from the root, are open to it"};
  return {};
}

std::vector<std::string> include_faults(const Exercise& exercise, const std::string& deps,
                                        const std::string& own) {
  std::vector<std::string> faults;
  const fs::path root = fs::weakly_canonical(source_folder());
  bool header = false;
  std::istringstream lines(deps);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == 0 || begin == std::string::npos) continue;  // the object's own line
    const fs::path file = fs::weakly_canonical(fs::path(build_folder()) / line.substr(begin));
    if (file == fs::weakly_canonical(own)) continue;
    const std::string name = file.lexically_relative(root).generic_string();
    const bool inside = name.rfind("..", 0) != 0;
    const std::string floor = name.substr(0, name.find('/')), end = file.extension().string();
    const bool source =
        end == ".cpp" || end == ".cc" || end == ".cxx" || end == ".c" || end == ".cu";
    const bool library =
        floor == "kernels" || floor == "tensor" || floor == "autograd" || floor == "nn";
    header = header || (inside && name == exercise.header);
    if (source || !(inside ? library : is_system(exercise, file)))
      faults.push_back("includes " + (inside ? name : file.string()) +
                       (source ? ": write it yourself"
                        : inside
                            ? ": only the library's headers are open to it"
                            : ": only the library's and the compiler's headers are open to it"));
  }
  if (!header) faults.push_back("does not include \"" + exercise.header + "\"");
  return faults;
}

std::vector<std::string> object_faults(const Exercise& exercise) {
  const std::set<std::string> functions = wanted_functions(exercise);
  std::set<std::string> missing = functions;
  std::vector<std::string> strangers, faults;
  const std::vector<Symbol> symbols = symbols_of(exercise.object);
  for (const Symbol& s : symbols) {
    if (s.wanted() || is_compilers_own(s.name)) continue;
    const bool inlined = s.weak() && (is_std(s.name) || begins_with(s.name, exercise.inlines));
    if (functions.count(s.name))
      missing.erase(s.name);
    else if (!inlined)
      strangers.push_back(s.name);
  }
  for (const std::string& name : missing) {
    std::string fault = "missing " + readable(name);
    for (std::string& other : strangers)
      if (!other.empty() && bare_name(other) == bare_name(name)) {
        fault += "; you define " + readable(other);
        if (readable(other) == readable(name)) fault += " outside of namespace pellucid";
        other.clear();
      }
    if (fault.find(';') == std::string::npos)
      fault += ", which " + exercise.header + " declares: is it deleted, renamed, " +
               (begins_with(name, exercise.templates) ? "or not instantiated for this type?"
                                                      : "or hidden in an unnamed namespace?");
    faults.push_back(fault);
  }
  for (const std::string& name : strangers) {
    if (name.empty()) continue;
    const std::string place = defined_in(exercise, name);
    faults.push_back(
        readable(name) +
        (place.empty() ? " is none of the exercise's functions" : " already exists in " + place) +
        ": put yours in an unnamed namespace");
  }
  for (const Symbol& s : symbols) {
    if (!s.wanted() || functions.count(s.name) || is_harmless(s.name)) continue;
    if (s.name.find("8pellucid") == std::string::npos)
      faults.push_back("calls " + readable(s.name) + ", which an exercise may not");
    else if (!begins_with(s.name, exercise.calls))
      faults.push_back("calls " + readable(s.name) + "; write it yourself");
  }
  return faults;
}

}  // namespace pellucid::course
