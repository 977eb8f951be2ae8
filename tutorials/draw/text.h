// Text for pages and drawings: any bytes escaped for HTML and SVG, and numbers for human eyes.
#pragma once
#include <cstdint>
#include <string>

namespace pellucid {

// For HTML and SVG, in an element or in a quoted attribute. What a page cannot hold, bytes that are
// not UTF-8 and control characters other than tab and line feed, becomes U+FFFD.
std::string escaped(const std::string& text);

std::string grouped(int64_t n);                           // 49,984
std::string counted(int64_t n, const std::string& word);  // "1 op", "49,984 parameters"
std::string rounded(double x, int digits = 4);            // "0.0003", "12,500", "nan"
std::string fixed(double x, int places);                  // "1.50"
std::string compact(double x, int places = 1);            // for coordinates: "1.5", "2"

}  // namespace pellucid
