#include "tutorials/course/symbols.h"

#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>
#include <sstream>
#include <stdexcept>

#include "tutorials/course/process.h"

namespace pellucid::course {

namespace {

bool starts(const std::string& text, const std::string& with) { return text.rfind(with, 0) == 0; }

std::string demangled(const std::string& symbol) {
  int failed = 0;
  char* text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &failed);
  const std::string name = failed ? symbol : text;
  std::free(text);
  return name;
}

void erase_all(std::string& text, const std::string& part) {
  for (std::size_t at; (at = text.find(part)) != std::string::npos;) text.erase(at, part.size());
}

// Where the argument list begins, or the end; parentheses within template arguments, and of
// "(anonymous namespace)", are none.
std::size_t arguments_of(const std::string& name) {
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<' && i > 0 && name[i - 1] != '<' && !starts(name.substr(0, i), "operator"))
      ++depth;
    if (name[i] == '>' && depth > 0) --depth;
    if (name[i] == '(' && depth == 0 && name.compare(i, 11, "(anonymous ") != 0) return i;
  }
  return name.size();
}

const std::set<std::string> kHarmlessC = {
    // memory and strings
    "malloc", "calloc", "realloc", "free", "memcpy", "memmove", "memset", "memcmp", "memchr",
    "strlen", "strcmp", "strncmp", "strcpy", "strncpy", "strchr", "strtol", "strtod", "qsort",
    "bsearch", "__memcpy_chk", "__memmove_chk", "__memset_chk", "__strcpy_chk", "bcmp", "bzero",
    // printing
    "printf", "puts", "putchar", "fprintf", "fputs", "fputc", "fwrite", "fflush", "snprintf",
    "vsnprintf", "sprintf", "__printf_chk", "__fprintf_chk", "__snprintf_chk", "__sprintf_chk",
    "__vsnprintf_chk", "stdout", "stderr", "__stdoutp", "__stderrp",
    // errors of the compiler's own making
    "__assert_fail", "__assert_rtn", "__stack_chk_fail", "__stack_chk_guard",
    // what shared_ptr asks
    "__libc_single_threaded", "_GLOBAL_OFFSET_TABLE_", "__dso_handle", "__gmon_start__",
    "__errno_location", "__error"};

const std::set<std::string> kMaths = {
    "sin",  "cos",       "tan",     "asin",  "acos",  "atan",  "atan2",  "sinh",     "cosh",
    "tanh", "exp",       "exp2",    "expm1", "log",   "log2",  "log10",  "log1p",    "pow",
    "sqrt", "cbrt",      "hypot",   "erf",   "erfc",  "floor", "ceil",   "round",    "trunc",
    "fmod", "remainder", "fabs",    "fma",   "fmax",  "fmin",  "lgamma", "tgamma",   "nearbyint",
    "rint", "lround",    "llround", "ldexp", "ilogb", "frexp", "modf",   "copysign", "abs",
    "labs", "llabs",     "sincos",  "isnan", "isinf"};

}  // namespace

std::vector<Symbol> symbols_of(const std::string& object) {
  const ToolRun run = run_tool({"nm", "-g", "-P", object});
  if (run.code != 0) throw std::runtime_error("grade: nm " + object + " failed: " + run.output);
  std::vector<Symbol> symbols;
  std::istringstream lines(run.output);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Symbol symbol;
    if (!(words >> symbol.name >> symbol.type)) continue;
#ifdef __APPLE__  // there every name has one underscore more
    if (symbol.name[0] == '_') symbol.name.erase(0, 1);
#endif
    symbols.push_back(symbol);
  }
  return symbols;
}

std::string readable(const std::string& symbol) {
  std::string name = demangled(symbol);
  erase_all(name, "pellucid::");
  erase_all(name, "[abi:cxx11]");
  return name == symbol ? name + (starts(name, "_Z") ? "" : "()") : name;
}

std::string bare_name(const std::string& symbol) {
  std::string name = demangled(symbol);
  name.erase(arguments_of(name));
  name.erase(std::min(name.find('<'), name.size()));
  const std::size_t space = name.rfind(' '), colon = name.rfind(':');
  if (colon != std::string::npos) return name.substr(colon + 1);
  return space == std::string::npos ? name : name.substr(space + 1);
}

bool is_std(const std::string& symbol) {
  if (!starts(symbol, "_Z")) return false;
  std::size_t at = 2;
  if (symbol[at] == 'T' || symbol.compare(at, 2, "GV") == 0) at += 2;  // a vtable, a guard ...
  at = symbol.find_first_not_of("ZNKVRO", at);  // local, nested, const, volatile, & and &&
  if (at == std::string::npos) return false;
  const std::string rest = symbol.substr(at);
  return (rest[0] == 'S' && rest.size() > 1 && std::islower(static_cast<unsigned char>(rest[1]))) ||
         starts(rest, "9__gnu_cxx") || starts(rest, "10__cxxabiv1");
}

bool is_compilers_own(const std::string& symbol) {
  for (const char* own :
       {"__asan_", "__odr_asan", "___asan", "__ubsan_", "__tsan_", "__sanitizer_", "__lsan_",
        "DW.ref.", "__clang_call_terminate", "__x86.", "_ITM_", "_ZTI", "_ZTS"})
    if (starts(symbol, own)) return true;
  return false;
}

bool is_harmless(const std::string& symbol) {
  if (is_compilers_own(symbol) || kHarmlessC.count(symbol)) return true;
  const bool single = !symbol.empty() && (symbol.back() == 'f' || symbol.back() == 'l');
  if (kMaths.count(symbol) || (single && kMaths.count(symbol.substr(0, symbol.size() - 1))))
    return true;
  for (const char* made : {"__cxa_", "__gxx_", "_Unwind_", "_Zn", "_Zd"})  // throw, new, delete
    if (starts(symbol, made)) return true;
  for (const char* outside : {"filesystem", "filebuf", "fstream", "St6thread", "random_device",
                              "St3cin", "St4wcin", "jthread", "quick_exit"})
    if (symbol.find(outside) != std::string::npos) return false;
  return is_std(symbol);
}

bool begins_with(const std::string& symbol, const std::vector<std::string>& names) {
  const std::string whole = demangled(symbol);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const std::size_t at = whole.find(name), open = arguments_of(whole);
    return at != std::string::npos && at <= open && (at == 0 || whole[at - 1] == ' ');
  });
}

}  // namespace pellucid::course
