// Line charts, and fewer points for long ones.
#include <algorithm>
#include <cmath>

#include "tensor/check.h"
#include "tutorials/draw/chart_parts.h"
#include "tutorials/draw/text.h"

namespace pellucid {
namespace {

using parts::Frame;

void check(const Series& s) {
  CHECK_ARG(s.x.size() == s.y.size(), "chart: series \"", s.name, "\" has ", s.x.size(), " x but ",
            s.y.size(), " y; give one y an x");
}

std::string number_list(const std::vector<double>& values, int digits) {
  std::ostringstream out;
  out.precision(digits);
  for (std::size_t i = 0; i < values.size(); ++i) out << (i ? " " : "") << values[i];
  return out.str();
}

// The series without the points that have no place.
Series drawn(const Series& s) {
  Series result{.name = s.name};
  for (std::size_t i = 0; i < s.x.size(); ++i)
    if (parts::drawable(s.x[i]) && parts::drawable(s.y[i]))
      result.x.push_back(s.x[i]), result.y.push_back(s.y[i]);
  return result;
}

// "M x y L x y ...": a new M after each gap.
std::string path_of(const Series& s, const Frame& f) {
  std::string path;
  bool pen_up = true;
  for (std::size_t i = 0; i < s.x.size(); ++i) {
    const bool has_place = parts::drawable(s.x[i]) && parts::drawable(s.y[i]);
    if (has_place)
      path += (pen_up ? "M" : "L") + compact(f.at_x(s.x[i])) + " " + compact(f.at_y(s.y[i]));
    pen_up = !has_place;
  }
  return path;
}

void draw_series(std::ostream& out, const Series& s, const Frame& f, const std::string& kind,
                 SvgUse use) {
  const std::string path = path_of(s, f);
  if (path.empty()) return;
  out << "<path class='curve " << kind << "' d='" << path << "'";
  const Series points = drawn(s);
  if (use == SvgUse::kPage)
    out << " data-name='" << escaped(s.name) << "' data-x='" << number_list(points.x, 9)
        << "' data-y='" << number_list(points.y, 5) << "'";
  out << "/>\n";
  const bool single = path.find('L') == std::string::npos;  // a line of one point is not seen
  for (std::size_t i = 0; i < points.x.size() && (s.dots || single); ++i)
    out << "<circle class='" << kind << "' r='2.5' cx='" << compact(f.at_x(points.x[i])) << "' cy='"
        << compact(f.at_y(points.y[i])) << "'/>\n";
}

std::string nth(const char* letter, std::size_t i, std::size_t count) {
  return letter + std::to_string(i % count);
}

std::string kind_of(const LineChart& chart, std::size_t i) {
  return nth("s", i, 5) + (chart.series[i].faint ? " faint" : "");
}

std::vector<parts::Key> keys_of(const LineChart& chart) {
  std::vector<parts::Key> keys;
  for (std::size_t i = 0; i < chart.series.size(); ++i)
    if (!drawn(chart.series[i]).x.empty())
      keys.push_back({chart.series[i].name, "curve " + kind_of(chart, i)});
  for (std::size_t i = 0; i < chart.levels.size(); ++i)
    if (parts::drawable(chart.levels[i].y))
      keys.push_back({chart.levels[i].name + " " + rounded(chart.levels[i].y),
                      "axis level " + nth("d", i, 3)});
  if (chart.levels.empty() && keys.size() < 2) keys.clear();  // the title says it
  return keys;
}

}  // namespace

std::string to_svg(const LineChart& chart, SvgUse use) {
  Frame f{58, chart.width - 14, 0, chart.height - 40, {}, {}};
  for (const Series& s : chart.series) {
    check(s);
    const Series points = drawn(s);
    for (const double x : points.x) f.x.add(x);
    for (const double y : points.y) f.y.add(y);
  }
  const bool nothing = f.y.empty();
  for (const Level& level : chart.levels) f.y.add(level.y);
  if (chart.from_zero) f.y.add(0);
  const auto y_at = parts::ticks(f.y, static_cast<int>(chart.height / 60), true);
  const bool whole = std::all_of(chart.series.begin(), chart.series.end(), [](const Series& s) {
    return std::all_of(s.x.begin(), s.x.end(), [](double x) { return x == std::round(x); });
  });
  const auto x_at = parts::ticks(f.x, static_cast<int>(chart.width / 110), false, whole);

  std::ostringstream out;
  const auto keys = keys_of(chart);
  const double title = use == SvgUse::kFile ? 30 : 0;
  f.top = title + parts::legend_height(keys, chart.width) + 24;
  // Where a script finds values: the frame, and the values at its edges.
  std::string place;
  if (use == SvgUse::kPage)
    place =
        " tabindex='0' data-frame='" +
        number_list({f.left, f.right, f.top, f.bottom, f.x.low, f.x.high, f.y.low, f.y.high}, 9) +
        "' data-x-name='" + escaped(chart.x_label) + "'";
  parts::open(out, chart.title, chart.description, chart.width, chart.height, use, place);
  parts::draw_legend(out, keys, title, chart.width);
  parts::draw_y_axis(out, f, y_at, chart.y_label);
  for (const double value : x_at) {
    const std::string text = rounded(value);
    const double half = parts::kLetter / 2 * static_cast<double>(text.size());
    const double x = std::min(f.at_x(value), chart.width - 4 - half);
    parts::draw_text(out, x, f.bottom + 18, text, "soft", "middle");
  }
  parts::draw_text(out, f.right, f.bottom + 34, chart.x_label, "soft", "end");
  if (nothing)
    parts::draw_text(out, (f.left + f.right) / 2, (f.top + f.bottom) / 2, "no values yet", "soft",
                     "middle");

  for (std::size_t i = 0; i < chart.levels.size(); ++i)
    if (parts::drawable(chart.levels[i].y)) {
      const std::string y = compact(f.at_y(chart.levels[i].y));
      out << "<line class='axis level " << nth("d", i, 3) << "' x1='" << compact(f.left) << "' x2='"
          << compact(f.right) << "' y1='" << y << "' y2='" << y << "'/>\n";
    }
  for (std::size_t i = 0; i < chart.series.size(); ++i)
    draw_series(out, chart.series[i], f, kind_of(chart, i), use);
  parts::close(out);
  return out.str();
}

// Calls f(first, last) for each bucket of points that are finite.
template <class F>
static Series in_buckets(const Series& series, std::size_t buckets, const F& f) {
  check(series);
  CHECK_ARG(buckets > 0, "chart: wanted at least 1 bucket");
  const Series finite = drawn(series);
  Series result = series;
  result.x.clear(), result.y.clear();
  const std::size_t n = finite.x.size(), count = std::min(n, buckets);
  for (std::size_t b = 0; b < count; ++b) f(finite, n * b / count, n * (b + 1) / count, result);
  return result;
}

Series thinned(const Series& series, std::size_t buckets) {
  return in_buckets(
      series, buckets, [](const Series& all, std::size_t first, std::size_t last, Series& result) {
        const auto begin = all.y.begin();
        const auto [low, high] = std::minmax_element(begin + static_cast<std::ptrdiff_t>(first),
                                                     begin + static_cast<std::ptrdiff_t>(last));
        const auto a = static_cast<std::size_t>(low - begin),
                   b = static_cast<std::size_t>(high - begin);
        const auto keep = [&](std::size_t i) {
          result.x.push_back(all.x[i]), result.y.push_back(all.y[i]);
        };
        keep(std::min(a, b));
        if (a != b) keep(std::max(a, b));
      });
}

Series averaged(const Series& series, std::size_t buckets) {
  return in_buckets(series, buckets,
                    [](const Series& all, std::size_t first, std::size_t last, Series& result) {
                      const auto mean = [&](const std::vector<double>& values) {
                        double sum = 0;
                        for (std::size_t i = first; i < last; ++i) sum += values[i];
                        return sum / static_cast<double>(last - first);
                      };
                      result.x.push_back(mean(all.x)), result.y.push_back(mean(all.y));
                    });
}

}  // namespace pellucid
