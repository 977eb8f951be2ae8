// The page's frame, and its sections on the run as a whole.
#include "tutorials/report/page.h"

#include <algorithm>
#include <cmath>

#include "tutorials/draw/text.h"

namespace pellucid::report {

std::string table(const std::string& label, const std::vector<std::string>& head,
                  const std::vector<std::vector<std::string>>& rows, std::size_t text_columns) {
  const auto kind = [&](std::size_t column) {
    return column < text_columns ? " class='text'" : "";
  };
  std::string out = "<div class='scroll' tabindex='0' role='region' aria-label='" + escaped(label) +
                    "'><table>\n<thead><tr>";
  for (std::size_t i = 0; i < head.size(); ++i)
    out += "<th scope='col'" + std::string(kind(i)) + ">" + escaped(head[i]) + "</th>";
  out += "</tr></thead>\n<tbody>\n";
  for (const auto& row : rows) {
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i)
      out += "<td" + std::string(kind(i)) + ">" + escaped(row[i]) + "</td>";
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

namespace {

// 3:07:05, 12:05
std::string duration(double seconds) {
  const auto s = static_cast<int64_t>(std::max(0.0, seconds));
  char text[64];
  if (s >= 3600)
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld h", static_cast<long long>(s / 3600),
                  static_cast<long long>(s / 60 % 60), static_cast<long long>(s % 60));
  else
    std::snprintf(text, sizeof text, "%lld:%02lld min", static_cast<long long>(s / 60),
                  static_cast<long long>(s % 60));
  return text;
}

std::string fact(const std::string& name, const std::string& value, const std::string& note = "") {
  return "<div><dt>" + escaped(name) + "</dt><dd>" + escaped(value) +
         (note.empty() ? "" : " <small>" + escaped(note) + "</small>") + "</dd></div>\n";
}

std::string steps_text(double x) { return grouped(static_cast<int64_t>(x)); }

// config.json as "train.model.n_layer", "6".
void flatten(const nlohmann::json& j, const std::string& prefix,
             std::vector<std::vector<std::string>>& rows) {
  for (const auto& [key, value] : j.items()) {
    const std::string name = prefix.empty() ? key : prefix + "." + key;
    if (value.is_object())
      flatten(value, name, rows);
    else
      rows.push_back(
          {name, value.is_string()
                     ? value.get<std::string>()
                     : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)});
  }
}

}  // namespace

std::string summary_section(const ReportData& data) {
  const Series loss = data.metrics.column("loss"), validation = data.metrics.column("val_loss"),
               tokens = data.metrics.column("tokens"), seconds = data.metrics.column("seconds");
  int64_t parameters = 0;
  for (const ParameterRow& row : data.parameters) parameters += row.elements;
  std::string out = "<dl class='facts'>\n" + fact("Parameters", grouped(parameters));
  if (!loss.x.empty()) out += fact("Steps", steps_text(loss.x.back()));
  if (!validation.y.empty()) {
    const auto best = std::min_element(validation.y.begin(), validation.y.end());
    out += fact("Validation loss", fixed(validation.y.back(), 4), "nats a " + data.unit);
    out +=
        fact("Best", fixed(*best, 4),
             "at step " +
                 steps_text(validation.x[static_cast<std::size_t>(best - validation.y.begin())]));
  }
  if (!tokens.y.empty()) out += fact("Tokens read", steps_text(tokens.y.back()));
  if (!seconds.y.empty()) out += fact("Time", duration(seconds.y.back()));
  out += "</dl>\n";
  const auto warn = [&](bool so, const std::string& text) {
    if (so) out += "<p class='warning'>" + text + "</p>\n";
  };
  for (const auto& [file, cut] :
       {std::pair{"metrics.jsonl", data.metrics.cut}, std::pair{"samples.jsonl", data.samples.cut}})
    warn(cut, std::string("The last line of ") + file +
                  " was cut short, as where a process is killed, and is left out.");
  warn(data.metrics.not_finite > 0,
       counted(data.metrics.not_finite, "value") +
           " of metrics.jsonl left out: no finite number, so that the curves have gaps.");
  return out;
}

std::string parameters_section(const ReportData& data) {
  std::vector<std::vector<std::string>> rows;
  int64_t total = 0;
  for (const ParameterRow& row : data.parameters) {
    rows.push_back(
        {row.name, row.shape, grouped(row.elements), rounded(row.norm), rounded(row.rms)});
    total += row.elements;
  }
  rows.push_back({"total", "", grouped(total), "", ""});
  return "<section id='parameters'><h2>Parameters</h2>\n<p>The norm is the root of the sum of "
         "squares, the rms that of their mean.</p>\n<details><summary>" +
         counted(std::ssize(data.parameters), "tensor") + ", " + counted(total, "number") +
         "</summary>\n" +
         table("Parameters", {"name", "shape", "elements", "norm", "rms"}, rows, 2) +
         "</details></section>\n";
}

std::string config_section(const ReportData& data) {
  std::vector<std::vector<std::string>> rows;
  flatten(data.config, "", rows);
  std::string out = "<section id='config'><h2>Command and config</h2>\n";
  if (data.command.empty())
    out += "<p>The command that made this run was not recorded.</p>\n";
  else
    out += "<p>The command that made this run:</p>\n<pre class='scroll' tabindex='0'><code>" +
           escaped(data.command) + "</code></pre>\n";
  return out + "<details><summary>config.json, " + counted(std::ssize(rows), "setting") +
         "</summary>\n" + table("Config", {"setting", "value"}, rows, 2) + "</details></section>\n";
}

std::string to_html(const ReportData& data) {
  const std::vector<std::pair<const char*, const char*>> places = {
      {"loss", "Loss"},
      {"pace", "Pace"},
      {"samples", "Samples"},
      {"attention", "Attention"},
      {"similarity", "Similarity"},
      {"parameters", "Parameters"},
      {"config", "Command and config"}};
  std::string links;
  for (const auto& [id, name] : places)
    links += "<a href='#" + std::string(id) + "'>" + name + "</a>\n";
  return "<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
         "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; "
         "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
         "<meta name='viewport' content='width=device-width, initial-scale=1'>\n<title>" +
         escaped(data.name) + ": a training run</title>\n<style>\n" + chart_style() + kPageStyle +
         "</style>\n</head>\n<body>\n<header><p>A training run of Pellucid</p><h1>" +
         escaped(data.name) + "</h1>\n<nav aria-label='Sections'>" + links +
         "</nav></header>\n<main>\n" + summary_section(data) + loss_section(data) +
         pace_section(data) + samples_section(data) + maps_section(data) +
         similarity_section(data) + parameters_section(data) + config_section(data) +
         "</main>\n<script>\n" + kPageScript + "</script>\n</body>\n</html>\n";
}

}  // namespace pellucid::report
