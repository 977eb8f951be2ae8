// JSON that somebody else may have written.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace pellucid {

// As nlohmann::json::parse(text, nullptr, allow_exceptions), but that keeps the last of two equal
// keys, and which one counts is not ours to guess: throws std::invalid_argument, naming the key. So
// it does where lists and objects lie more than most_depth deep.
nlohmann::json parse_json(const std::string& text, bool allow_exceptions = true,
                          int most_depth = 1000);

}  // namespace pellucid
