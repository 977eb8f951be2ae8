// Files of JSON lines: tasks, metrics, samples.
#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace pellucid::demos {

// What a process leaves that is killed while it writes: a last line without its end.
enum class CutLine { kDrop, kRefuse };

// Calls visit with each line that is not blank, and its number. What is no JSON object, has a key
// twice, or makes visit throw std::invalid_argument is a std::runtime_error that names file, line,
// fault and repair. Returns whether a last line was dropped.
bool each_json_line(const std::string& path, CutLine cut_line,
                    const std::function<void(const nlohmann::json&, int64_t line)>& visit);

}  // namespace pellucid::demos
