// An exercise: exercise.json in tutorials/LESSON/exercise, whose name is LESSON, or in
// tutorials/LESSON/exercise-PART, whose name is LESSON-PART, and what CMake knows of its program.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace pellucid::course {

struct ExerciseCheck {
  std::string name, says;
  int points = 0;
};

struct Exercise {
  std::string name, title;
  std::string place;     // the folder of exercise.json
  std::string file;      // the learner's, with its whole path
  std::string replaces;  // the library's, from the root: "tensor/strides.cpp"
  std::string header;    // that declares its functions
  double seconds = 1;    // of CPU time for a check
  int64_t megabytes = 300;
  std::vector<ExerciseCheck> checks;
  std::map<std::string, std::vector<std::string>> hints;  // by check
  std::vector<std::string> templates;  // beginnings of the names of those it must instantiate
  std::vector<std::string> calls;    // functions of the library that it may call, without arguments
  std::vector<std::string> inlines;  // beginnings of the names of inline functions it may use

  std::string folder;                       // of what grading writes: build/exercises/NAME
  std::string target;                       // CMake's: exercise_NAME
  std::string program, object;              // of the learner
  std::vector<std::string> library;         // all object files of the floors it needs
  std::vector<std::string> system_folders;  // of the compiler's headers

  std::string library_object() const;  // of `replaces`
  int points() const;
};

std::vector<std::string> exercise_names();
// Takes a name also as the shell completes it, "tutorials/01-tensors/", and refuses one that is
// none of these, with the nearest.
Exercise read_exercise(const std::string& name);

// "/.../pellucid_tensor.dir/tensor/strides.cpp.o" is made of "tensor/strides.cpp".
std::string source_of(const std::string& object);

std::string source_folder();
std::string build_folder();

}  // namespace pellucid::course
