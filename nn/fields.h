// Reading a struct's fields from a JSON object: each value of exactly its kind (3.7 is no integer,
// 1 no truth value), no key that is no field, and messages that name the field.
#pragma once
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "tensor/check.h"

namespace pellucid::nn {

template <class T>
void read_field(const char* who, const std::string& key, const nlohmann::json& j, T& value) {
  const auto integer = [](const nlohmann::json& x) {
    return x.is_number_integer() && !(x.is_number_unsigned() && x.get<uint64_t>() > INT64_MAX);
  };
  std::pair<bool, const char*> fits{j.is_string(), "a string"};
  if (std::is_same_v<T, bool>) fits = {j.is_boolean(), "true or false"};
  if (std::is_same_v<T, uint64_t>) fits = {j.is_number_unsigned(), "an integer of at least 0"};
  if (std::is_same_v<T, int64_t>) fits = {integer(j), "an integer"};
  if (std::is_same_v<T, double>) fits = {j.is_number(), "a number"};
  if (std::is_same_v<T, std::vector<int64_t>>)
    fits = {j.is_array() && std::all_of(j.begin(), j.end(), integer), "a list of integers"};
  CHECK_ARG(fits.first, who, ": ", key, " must be ", fits.second, "; got ", j.dump());
  j.get_to(value);
}

// each_field(f) calls f("name", member) for each field; those that j lacks stay as they are. The
// keys in `known` are left to the caller.
template <class EachField>
void read_fields(const char* who, const nlohmann::json& j, EachField each_field,
                 std::set<std::string> known = {}) {
  CHECK_ARG(j.is_object(), who, ": wanted a JSON object; got ", j.dump());
  each_field([&](const char* key, auto& value) {
    known.insert(key);
    if (j.contains(key)) read_field(who, key, j.at(key), value);
  });
  for (const auto& [key, value] : j.items())
    CHECK_ARG(known.contains(key), who, ": unknown key \"", key, "\"");
}

}  // namespace pellucid::nn
