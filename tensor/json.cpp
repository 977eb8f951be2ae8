// Parsing by nlohmann-json, which tells a watcher of each key.
#include "tensor/json.h"

#include <nlohmann/json.hpp>
#include <set>

#include "tensor/check.h"

namespace pellucid {

using nlohmann::json;

json parse_json(const std::string& text, bool allow_exceptions, int most_depth) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const json::parser_callback_t watch = [&](int depth, json::parse_event_t event, json& parsed) {
    CHECK_ARG(depth <= most_depth, "lists and objects lie more than ", most_depth, " deep");
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      fail(parsed.dump(), " stands there twice; wanted once");
    return true;
  };
  return json::parse(text, watch, allow_exceptions);
}

}  // namespace pellucid
