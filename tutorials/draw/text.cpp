#include "tutorials/draw/text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace pellucid {

// The bytes of the UTF-8 character at i: 1 to 4, or 0 where there is none.
static std::size_t utf8_length(const std::string& text, std::size_t i) {
  const auto byte = [&](std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u;
  };
  const unsigned lead = byte(i), second = byte(i + 1);
  if (lead < 0x80) return 1;
  const std::size_t length = lead < 0xc2   ? 0
                             : lead < 0xe0 ? 2
                             : lead < 0xf0 ? 3
                             : lead < 0xf5 ? 4
                                           : 0;
  for (std::size_t k = 1; k < length; ++k)
    if ((byte(i + k) & 0xc0) != 0x80) return 0;
  // Spelled too long, surrogates, and what lies beyond U+10FFFF.
  const bool wrong = (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
                     (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f);
  return wrong ? 0 : length;
}

std::string escaped(const std::string& text) {
  const char* const kReplacement = "\xef\xbf\xbd";
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    const auto lead = static_cast<unsigned char>(text[i]);
    const bool c1 = lead == 0xc2 && length == 2 && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (length == 0 || c1 || lead == 0x7f || (lead < 0x20 && lead != '\n' && lead != '\t'))
      out += kReplacement;
    else if (length > 1)
      out.append(text, i, length);
    else
      out += lead == '&'    ? "&amp;"
             : lead == '<'  ? "&lt;"
             : lead == '>'  ? "&gt;"
             : lead == '\'' ? "&#39;"
             : lead == '"'  ? "&quot;"
                            : std::string(1, text[i]);
    i += length == 0 ? 1 : length;
  }
  return out;
}

static std::string with_commas(std::string digits) {
  const std::size_t sign = digits.starts_with("-") ? 1 : 0;
  for (std::size_t at = std::min(digits.find('.'), digits.size()); at > sign + 3;)
    digits.insert(at -= 3, ",");
  return digits;
}

std::string grouped(int64_t n) { return with_commas(std::to_string(n)); }

std::string counted(int64_t n, const std::string& word) {
  return grouped(n) + " " + word + (n == 1 ? "" : "s");
}

static std::string printed(const char* pattern, int digits, double x) {
  char text[400];
  std::snprintf(text, sizeof text, pattern, digits, x);
  return text;
}

std::string rounded(double x, int digits) {
  if (x == 0 || !std::isfinite(x)) return std::isnan(x) ? "nan" : printed("%.*g", 1, x);
  // In full between 1e-5 and 1e12, where %g would soon turn to powers of ten.
  const double size = std::abs(std::atof(printed("%.*g", digits, x).c_str()));
  if (size < 1e-5 || size >= 1e12) return printed("%.*g", digits, x);
  const int places = std::max(0, digits - 1 - static_cast<int>(std::floor(std::log10(size))));
  std::string text = printed("%.*f", places, x);
  if (places > 0) text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return with_commas(text);
}

std::string fixed(double x, int places) {
  return std::isfinite(x) ? printed("%.*f", places, x) : rounded(x);
}

std::string compact(double x, int places) {
  std::string text = printed("%.*f", places, x);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

}  // namespace pellucid
