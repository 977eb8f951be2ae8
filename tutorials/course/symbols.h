// What an object file defines and what it calls, as `nm` tells.
#pragma once
#include <string>
#include <vector>

namespace pellucid::course {

struct Symbol {
  std::string name;  // as the linker sees it: _ZN8pellucid9row_majorERKNS_5ShapeE
  char type = 0;     // nm's letter: T and D defined, W and V weak, U wanted

  bool wanted() const { return type == 'U' || type == 'w' || type == 'v'; }
  bool weak() const { return type == 'W' || type == 'V' || type == 'u'; }
};

// The external symbols only.
std::vector<Symbol> symbols_of(const std::string& object);

// As the learner writes it, without the namespace pellucid: row_major(Shape const&).
std::string readable(const std::string& symbol);
// The same without arguments, template arguments and namespaces: row_major.
std::string bare_name(const std::string& symbol);

// Belongs to the C++ library, by its mangled name.
bool is_std(const std::string& symbol);
// Made by the compiler or a sanitizer for itself.
bool is_compilers_own(const std::string& symbol);
// What every exercise may call: containers, maths, memory, printing; no files, processes or exits.
bool is_harmless(const std::string& symbol);
// Starts, after a return type, with one of these.
bool begins_with(const std::string& symbol, const std::vector<std::string>& names);

}  // namespace pellucid::course
