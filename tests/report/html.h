// Enough of an HTML reader to tell whether a page or a drawing is well formed, and what it says.
#pragma once
#include <cctype>
#include <set>
#include <string>
#include <vector>

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
inline std::size_t count(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size()) ++n;
  return n;
}

struct Page {
  bool clean = true;        // every element is closed in order, every attribute in quotes
  std::string words = {};   // the text, each element a '|'
  std::string values = {};  // of all attributes, each in quotes
};

// The place after the element at `at`, whose attributes go to the page.
inline std::size_t read_element(const std::string& html, std::size_t at, Page& page) {
  while (at < html.size() && html[at] != '>') {
    const char quote = html[at];
    if (quote == '\'' || quote == '"') {
      const std::size_t end = html.find(quote, at + 1);
      if (end == std::string::npos) break;
      page.values += html.substr(at, end + 1 - at);
      at = end;
    }
    if (html[at] == '<') page.clean = false;
    ++at;
  }
  page.clean = page.clean && at < html.size();
  return at + 1;
}

inline Page read_page(const std::string& html) {
  Page page;
  std::vector<std::string> open;
  for (std::size_t at = 0; at < html.size();) {
    if (html[at] != '<') {
      page.words += html[at++];
      continue;
    }
    page.words += '|';
    const bool closes = html.compare(at, 2, "</") == 0, declares = html.compare(at, 2, "<!") == 0;
    std::size_t end = at + 1 + closes + declares;
    while (end < html.size() && std::isalnum(static_cast<unsigned char>(html[end]))) ++end;
    const std::string name = html.substr(at + 1 + closes, end - at - 1 - closes);
    at = read_element(html, end, page);
    if (declares || html[at - 2] == '/' || name == "meta" || name == "input") continue;
    if (!closes) {
      open.push_back(name);
      if (name == "script" || name == "style")
        at = std::min(html.find("</" + name, at), html.size());
    } else if (!open.empty() && open.back() == name) {
      open.pop_back();
    } else {
      page.clean = false;
    }
  }
  page.clean = page.clean && open.empty();
  return page;
}

inline bool is_clean(const std::string& html) { return read_page(html).clean; }
