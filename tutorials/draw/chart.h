// Charts as SVG, for pages and for the figures of lessons: lines, bars, and maps of values. They
// are light or dark as the reader's system is, and carry their title and a description for those
// who do not see them.
//
//   LineChart chart{.title = "Loss", .description = "It falls.", .y_label = "nats"};
//   chart.series.push_back({.name = "training", .x = steps, .y = losses});
//   std::ofstream("loss.svg") << to_svg(chart);
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace pellucid {

// A file stands alone: with its title in view, its style and a background. In a page these are the
// page's, which has chart_style() in its <style>, and the elements carry their values for a script.
enum class SvgUse { kFile, kPage };

// The colours as CSS variables (--paper, --ink, --soft, --line, --s0 .. --s4), and the rules of the
// classes that charts are made of.
std::string chart_style();

struct Series {
  std::string name;
  std::vector<double> x = {}, y = {};  // x ascends; a y that is not finite breaks the line
  bool faint = false;                  // thin and pale: what is noisy
  bool dots = false;                   // each point marked
};
struct Level {
  std::string name;
  double y = 0;
};
struct LineChart {
  std::string title = {}, description = {}, x_label = {}, y_label = {};
  std::vector<Series> series = {};
  std::vector<Level> levels = {};  // dashed lines across, with their values in the legend
  bool from_zero = false;          // the y axis reaches down to 0
  double width = 560, height = 300;
};
std::string to_svg(const LineChart& chart, SvgUse use = SvgUse::kFile);

// At most two points a bucket, the least and the greatest of equally many neighbours, in the order
// of x: what remains has the outline of the whole. A y that is not finite is left out.
Series thinned(const Series& series, std::size_t buckets);
// The mean of each bucket, at the mean of its x.
Series averaged(const Series& series, std::size_t buckets);

struct BarGroup {
  std::string label;
  std::vector<double> values;  // one a series; not finite: no bar
};
struct BarChart {
  std::string title = {}, description = {}, y_label = {};
  std::vector<std::string> series = {};  // their names; of a single one the legend is left out
  std::vector<BarGroup> groups = {};
  bool numbers = true;  // above each bar its value
  double width = 560, height = 300;
};
std::string to_svg(const BarChart& chart, SvgUse use = SvgUse::kFile);

// Values between low and high as shades: pale is 0. Where low is negative, negative values have a
// colour of their own. A value that is not finite leaves its cell empty.
struct HeatMap {
  std::string title = {}, description = {};
  int64_t rows = 0, columns = 0;
  std::vector<double> values = {};  // (rows, columns)
  double low = 0, high = 1;
  std::vector<std::string> row_labels = {}, column_labels = {};  // empty: none
  int places = -1;   // of the number in each cell; -1: no numbers
  double cell = 24;  // its edge
};
std::string to_svg(const HeatMap& map, SvgUse use = SvgUse::kFile);

}  // namespace pellucid
