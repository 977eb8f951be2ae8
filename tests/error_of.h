// What a call throws, in words: "no error" if it throws nothing.
#pragma once
#include <exception>
#include <string>

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}
