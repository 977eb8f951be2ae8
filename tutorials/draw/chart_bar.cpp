// Bars side by side in groups, from 0 up or down.
#include <algorithm>

#include "tensor/check.h"
#include "tutorials/draw/chart_parts.h"
#include "tutorials/draw/text.h"

namespace pellucid {

static void draw_bar(std::ostream& out, const parts::Frame& f, double x, double width, double value,
                     std::size_t series, const BarChart& chart, const std::string& group) {
  const double top = f.at_y(std::max(value, 0.0)), bottom = f.at_y(std::min(value, 0.0));
  const std::string name = series < chart.series.size() ? chart.series[series] + ", " : "";
  out << "<rect class='b" << series % 5 << "' x='" << compact(x) << "' y='" << compact(top)
      << "' width='" << compact(width) << "' height='" << compact(bottom - top) << "'><title>"
      << escaped(name + group + ": " + rounded(value)) << "</title></rect>\n";
  const std::string number = rounded(value, 3);
  if (chart.numbers && static_cast<double>(number.size()) * parts::kLetter < width + 16)
    parts::draw_text(out, x + width / 2, value < 0 ? bottom + 14 : top - 4, number, "", "middle");
}

std::string to_svg(const BarChart& chart, SvgUse use) {
  parts::Frame f{58, chart.width - 14, 0, chart.height - 30, {}, {}};
  std::size_t most = 1;
  f.y.add(0);
  for (const BarGroup& group : chart.groups) {
    most = std::max(most, group.values.size());
    for (const double value : group.values) f.y.add(value);
  }
  CHECK_ARG(chart.series.empty() || chart.groups.empty() || chart.series.size() == most,
            "chart: ", chart.series.size(), " names of series, but groups of up to ", most,
            " values; give each value's series a name");
  const auto y_at = parts::ticks(f.y, static_cast<int>(chart.height / 60), true);

  std::vector<parts::Key> keys;
  for (std::size_t i = 0; chart.series.size() > 1 && i < chart.series.size(); ++i)
    keys.push_back({chart.series[i], "b" + std::to_string(i % 5), false});
  std::ostringstream out;
  const double title = use == SvgUse::kFile ? 30 : 0;
  f.top = title + parts::legend_height(keys, chart.width) + 28;
  parts::open(out, chart.title, chart.description, chart.width, chart.height, use);
  parts::draw_legend(out, keys, title, chart.width);
  parts::draw_y_axis(out, f, y_at, chart.y_label);

  // A group has its share of the width, a fifth of which stays empty.
  const double share = (f.right - f.left) / std::max<double>(1, double(chart.groups.size()));
  const double width = 0.8 * share / static_cast<double>(most);
  for (std::size_t g = 0; g < chart.groups.size(); ++g) {
    const BarGroup& group = chart.groups[g];
    const double left = f.left + share * (static_cast<double>(g) + 0.1);
    for (std::size_t i = 0; i < group.values.size(); ++i)
      if (parts::drawable(group.values[i]))
        draw_bar(out, f, left + width * static_cast<double>(i), width, group.values[i], i, chart,
                 group.label);
    parts::draw_text(out, left + 0.4 * share, f.bottom + 20, group.label, "soft", "middle");
  }
  out << "<line class='axis' x1='" << compact(f.left) << "' x2='" << compact(f.right) << "' y1='"
      << compact(f.at_y(0)) << "' y2='" << compact(f.at_y(0)) << "'/>\n";
  parts::close(out);
  return out.str();
}

}  // namespace pellucid
