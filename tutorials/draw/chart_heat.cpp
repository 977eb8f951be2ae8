// Maps of values: cells of one shade and sign are one path, neighbours in a row one rectangle, so
// that a map of 32 x 32 takes some kilobytes.
#include <algorithm>
#include <array>
#include <map>

#include "tensor/check.h"
#include "tutorials/draw/chart_parts.h"
#include "tutorials/draw/text.h"

namespace pellucid {
namespace {

constexpr int kShades = 20;

double at(const HeatMap& m, int64_t row, int64_t column) {
  return m.values[static_cast<std::size_t>(row * m.columns + column)];
}

// -kShades .. kShades; 0 is the paper's.
int shade(const HeatMap& m, double value) {
  if (!parts::drawable(value)) return 0;
  const double most = std::max(std::abs(m.low), std::abs(m.high));
  const double share = std::clamp(value, m.low, m.high) / most;
  return static_cast<int>(std::lround(share * kShades));
}

// Two digits of base 36 a cell: the place between low and high in 1295 parts; ".." is no value.
std::string coded(const HeatMap& m) {
  const char* const digits = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::string code;
  for (const double value : m.values) {
    const double share = (std::clamp(value, m.low, m.high) - m.low) / (m.high - m.low);
    const long n = parts::drawable(value) ? std::lround(share * 1295) : -1;
    code += n < 0 ? '.' : digits[n / 36];
    code += n < 0 ? '.' : digits[n % 36];
  }
  return code;
}

void draw_cells(std::ostream& out, const HeatMap& m, double left, double top) {
  std::map<int, std::string> paths;
  for (int64_t r = 0; r < m.rows; ++r)
    for (int64_t c = 0, end = 0; c < m.columns; c = end) {
      const int here = shade(m, at(m, r, c));
      for (end = c + 1; end < m.columns && shade(m, at(m, r, end)) == here;) ++end;
      if (here == 0) continue;
      const std::string run = compact(static_cast<double>(end - c) * m.cell);
      paths[here] += "M" + compact(left + static_cast<double>(c) * m.cell) + " " +
                     compact(top + static_cast<double>(r) * m.cell) + "h" + run + "v" +
                     compact(m.cell) + "h-" + run + "z";
    }
  for (const auto& [level, path] : paths)
    out << "<path class='" << (level < 0 ? "minus" : "plus") << "' fill-opacity='"
        << compact(std::abs(level) / double(kShades), 2) << "' d='" << path << "'/>\n";
}

double widest(const std::vector<std::string>& labels) {
  std::size_t most = 0;
  for (const std::string& label : labels) most = std::max(most, label.size());
  return parts::kLetter * static_cast<double>(most) + (labels.empty() ? 0 : 8);
}

void check(const HeatMap& m) {
  CHECK_ARG(m.rows >= 0 && m.columns >= 0 &&
                m.values.size() == static_cast<std::size_t>(m.rows * m.columns),
            "heat map: wanted rows x columns values, ", m.rows, " x ", m.columns, "; got ",
            m.values.size());
  CHECK_ARG(m.low < m.high && parts::drawable(m.low) && parts::drawable(m.high),
            "heat map: low must be below high; got ", m.low, " and ", m.high);
  const auto fits = [](const std::vector<std::string>& labels, int64_t n) {
    return labels.empty() || static_cast<int64_t>(labels.size()) == n;
  };
  CHECK_ARG(fits(m.row_labels, m.rows) && fits(m.column_labels, m.columns),
            "heat map: wanted a label a row and a column, or none; got ", m.row_labels.size(),
            " for ", m.rows, " rows, ", m.column_labels.size(), " for ", m.columns, " columns");
}

}  // namespace

std::string to_svg(const HeatMap& m, SvgUse use) {
  check(m);
  const bool file = use == SvgUse::kFile;
  const double edge = file ? parts::kEdge : 1;
  const double left = edge + widest(m.row_labels);
  const double top = (file ? 38 : edge) + (m.column_labels.empty() ? 0 : parts::kLineHeight);
  const double right = left + static_cast<double>(m.columns) * m.cell;
  const double bottom = top + static_cast<double>(m.rows) * m.cell;
  const double title = file ? 2 * edge + parts::kLetter * 1.2 * double(m.title.size()) : 0;

  std::ostringstream out;
  std::string values;
  if (!file) {
    std::ostringstream text;
    text << " tabindex='0' data-rows='" << m.rows << "' data-columns='" << m.columns
         << "' data-low='" << m.low << "' data-high='" << m.high << "' data-cells='" << coded(m)
         << "'";
    values = text.str();
  }
  parts::open(out, m.title, m.description, std::max(right + edge, title), bottom + edge, use,
              values);
  draw_cells(out, m, left, top);
  out << "<rect class='cells' x='" << compact(left) << "' y='" << compact(top) << "' width='"
      << compact(right - left) << "' height='" << compact(bottom - top) << "'/>\n";
  const auto middle = [&](double from, int64_t i) {
    return from + (static_cast<double>(i) + 0.5) * m.cell;
  };
  for (int64_t r = 0; r < m.rows; ++r) {
    if (!m.row_labels.empty())
      parts::draw_text(out, left - 6, middle(top, r) + 4, m.row_labels[size_t(r)], "", "end");
    for (int64_t c = 0; c < m.columns && m.places >= 0; ++c)
      if (parts::drawable(at(m, r, c)))
        parts::draw_text(out, middle(left, c), middle(top, r) + 4, fixed(at(m, r, c), m.places),
                         std::abs(shade(m, at(m, r, c))) > 0.65 * kShades ? "on-dark" : "",
                         "middle");
  }
  for (std::size_t c = 0; c < m.column_labels.size(); ++c)
    parts::draw_text(out, middle(left, static_cast<int64_t>(c)), top - 6, m.column_labels[c], "",
                     "middle");
  parts::close(out);
  return out.str();
}

}  // namespace pellucid
