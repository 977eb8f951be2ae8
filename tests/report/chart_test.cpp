// Charts: what is drawn lies where the values say, thinning keeps the outline, and no byte of a
// name breaks the page.
#include "tutorials/draw/chart.h"

#include <doctest/doctest.h>

#include <cmath>
#include <regex>

#include "error_of.h"
#include "html.h"
#include "tutorials/draw/text.h"

using namespace pellucid;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kInf = HUGE_VAL;

// Well formed, and no attribute is nan or inf.
bool is_drawn(const std::string& svg) {
  const Page page = read_page(svg);
  return page.clean && !has(page.values, "nan") && !has(page.values, "inf");
}

// The numbers of the first match's group 1, split at spaces, M and L.
std::vector<double> numbers(const std::string& svg, const std::string& pattern) {
  std::smatch match;
  REQUIRE(std::regex_search(svg, match, std::regex(pattern)));
  std::vector<double> found;
  const std::string text = match[1];
  const std::regex number("-?[0-9.]+(e[-+][0-9]+)?");
  for (std::sregex_iterator at(text.begin(), text.end(), number), end; at != end; ++at)
    found.push_back(std::stod(at->str()));
  return found;
}

}  // namespace

TEST_CASE("escaped: quotes and brackets, control bytes, and what is not UTF-8") {
  CHECK(escaped("a</script>&\"'\n\t") == "a&lt;/script&gt;&amp;&quot;&#39;\n\t");
  CHECK(escaped("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80") ==
        "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80");
  const std::string r = "\xef\xbf\xbd";
  CHECK(escaped(std::string("a\0b\x1b\x7f\r", 6)) == "a" + r + "b" + r + r + r);
  CHECK(escaped("\xff\xc3") == r + r);                  // never a lead; a lead alone
  CHECK(escaped("\xc0\xaf<") == r + r + "&lt;");        // '/' spelled too long
  CHECK(escaped("\xed\xa0\x80") == r + r + r);          // a surrogate
  CHECK(escaped("\xf4\x90\x80\x80") == r + r + r + r);  // beyond U+10FFFF
  CHECK(escaped("\xc2\x85") == r);                      // a control character of two bytes
}

TEST_CASE("numbers for human eyes") {
  CHECK(grouped(0) == "0");
  CHECK(grouped(-1234567) == "-1,234,567");
  CHECK(grouped(-123) == "-123");
  CHECK(counted(1, "op") == "1 op");
  CHECK(counted(1000, "op") == "1,000 ops");
  CHECK(rounded(0.0003) == "0.0003");
  CHECK(rounded(1.23456) == "1.235");
  CHECK(rounded(99999.6) == "100,000");
  CHECK(rounded(-0.5) == "-0.5");
  CHECK(rounded(1e-7) == "1e-07");
  CHECK(rounded(2.5e12) == "2.5e+12");
  CHECK(rounded(0) == "0");
  CHECK(rounded(kNaN) == "nan");
  CHECK(rounded(-kInf) == "-inf");
  CHECK(fixed(1.5, 2) == "1.50");
  CHECK(compact(-0.001) == "0");
  CHECK(compact(2.50, 2) == "2.5");
}

TEST_CASE("thinned keeps the outline of 100,000 points; averaged the means") {
  Series s{.name = "loss"};
  for (int i = 0; i < 100000; ++i) s.x.push_back(i), s.y.push_back(std::sin(i * 0.7));
  s.y[12345] = 50, s.y[77777] = -50, s.y[5] = kNaN, s.y[6] = kInf;
  const Series few = thinned(s, 400);
  CHECK(few.name == "loss");
  CHECK(few.x.size() <= 800);
  CHECK(few.x.size() > 700);
  CHECK(std::is_sorted(few.x.begin(), few.x.end()));
  bool peak = false, pit = false;
  for (std::size_t i = 0; i < few.x.size(); ++i) {
    CHECK(few.y[i] == s.y[static_cast<std::size_t>(few.x[i])]);
    peak |= few.x[i] == 12345, pit |= few.x[i] == 77777;
  }
  CHECK(peak);
  CHECK(pit);

  const Series short_one{.name = "", .x = {1, 2, 3}, .y = {4, kNaN, 8}};
  CHECK(thinned(short_one, 10).y == std::vector<double>{4, 8});
  CHECK(averaged(short_one, 10).y == std::vector<double>{4, 8});
  CHECK(averaged(short_one, 1).x == std::vector<double>{2});
  CHECK(averaged(short_one, 1).y == std::vector<double>{6});
  CHECK(thinned(Series{}, 5).x.empty());
}

TEST_CASE("a line chart's points lie where the values say; a gap breaks the line") {
  LineChart chart{.title = "t", .description = "d", .x_label = "step", .y_label = "nats"};
  chart.series.push_back({.name = "a", .x = {0, 10, 20, 30, 40}, .y = {0, 1, kNaN, 4, 2}});
  chart.levels = {{"floor", 1.5}};
  const std::string svg = to_svg(chart, SvgUse::kPage);
  CHECK(is_drawn(svg));
  const auto f = numbers(svg, "data-frame='([^']*)'");  // left right top bottom x0 x1 y0 y1
  REQUIRE(f.size() == 8);
  CHECK(std::vector<double>(f.begin() + 4, f.end()) == std::vector<double>{0, 40, 0, 4});
  const auto points = numbers(svg, "<path class='curve s0' d='([^']*)'");
  const std::vector<double> x = {0, 10, 30, 40}, y = {0, 1, 4, 2};
  REQUIRE(points.size() == 8);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(points[2 * i] == doctest::Approx(f[0] + x[i] / 40 * (f[1] - f[0])).epsilon(1e-3));
    CHECK(points[2 * i + 1] == doctest::Approx(f[3] - y[i] / 4 * (f[3] - f[2])).epsilon(1e-3));
  }
  CHECK(std::regex_search(svg, std::regex("d='M[0-9. ]*L[0-9. ]*M[0-9. ]*L[0-9. ]*'")));
  CHECK(svg.find("data-x='0 10 30 40' data-y='0 1 4 2'") != std::string::npos);
  CHECK(svg.find(">floor 1.5</text>") != std::string::npos);
  CHECK(svg.find("<title>t</title>\n<desc>d</desc>") != std::string::npos);
  CHECK(svg.find("<style>") == std::string::npos);

  const std::string file = to_svg(chart);
  CHECK(is_drawn(file));
  CHECK(file.find("prefers-color-scheme: dark") != std::string::npos);
  CHECK(file.find("class='title'>t</text>") != std::string::npos);
  CHECK(file.find("data-") == std::string::npos);
}

TEST_CASE("line charts of nothing, of one point, of equal values, of monstrous ones") {
  LineChart chart{.title = "</title>", .description = "\"&", .y_label = "<"};
  CHECK(to_svg(chart).find(">no values yet</text>") != std::string::npos);
  CHECK(is_drawn(to_svg(chart, SvgUse::kPage)));
  chart.series = {{.name = "'", .x = {7}, .y = {7}}};
  CHECK(count(to_svg(chart), "<circle") == 1);
  CHECK(is_drawn(to_svg(chart, SvgUse::kPage)));
  for (const std::vector<double>& y : {std::vector<double>{3, 3, 3},
                                       {0, 0, 0},
                                       {1e-300, 0, 1e-300},
                                       {1e308, -1e308, 1},
                                       {kInf, kNaN, -kInf},
                                       {1e15, 1e15, 1e15 + 2}}) {
    chart.series = {{.name = "'", .x = {1, 2, 3}, .y = y}};
    CAPTURE(y[0]);
    CHECK(is_drawn(to_svg(chart)));
  }
  chart.levels = {{"none", kNaN}};
  CHECK(is_drawn(to_svg(chart)));
  chart.series = {{.name = "a", .x = {1, 2}, .y = {1}}};
  CHECK(error_of([&] { to_svg(chart); }) == "chart: series \"a\" has 2 x but 1 y; give one y an x");
}

TEST_CASE("bars reach from 0 to their values") {
  BarChart chart{.title = "ladder", .description = "d", .y_label = "%"};
  chart.series = {"one", "two"};
  chart.groups = {{"a", {100, -50}}, {"b<", {kNaN, 25}}};
  const std::string svg = to_svg(chart, SvgUse::kPage);
  CHECK(is_drawn(svg));
  CHECK(count(svg, "class='b0' x=") == 2);  // one bar, one mark in the legend
  CHECK(count(svg, "class='b1' x=") == 3);
  std::vector<double> heights;
  const std::regex bar(
      "class='b[01]' x='[0-9.]*' y='[0-9.]*' width='[0-9.]*' height='([0-9.]*)'><");
  for (std::sregex_iterator at(svg.begin(), svg.end(), bar), end; at != end; ++at)
    heights.push_back(std::stod((*at)[1]));
  REQUIRE(heights.size() == 3);
  CHECK(heights[0] == doctest::Approx(2 * heights[1]).epsilon(0.01));
  CHECK(heights[1] == doctest::Approx(2 * heights[2]).epsilon(0.01));
  CHECK(svg.find("<title>two, b&lt;: 25</title>") != std::string::npos);
  chart.series = {"one"};
  CHECK(error_of([&] { to_svg(chart); }).starts_with("chart: 1 names of series, but groups of"));
  CHECK(is_drawn(to_svg(BarChart{.title = "", .description = "", .y_label = ""})));
}

TEST_CASE("a heat map's shades, its runs, and the values for a script") {
  HeatMap map{.title = "m", .description = "d", .rows = 2, .columns = 3};
  map.values = {1, 1, kNaN, 0, 0.5, 0.02};
  map.cell = 10;
  const std::string svg = to_svg(map, SvgUse::kPage);
  CHECK(is_drawn(svg));
  CHECK(svg.find("fill-opacity='1' d='M1 1h20v10h-20z'") != std::string::npos);
  CHECK(svg.find("fill-opacity='0.5' d='M11 11h10v10h-10z'") != std::string::npos);
  CHECK(count(svg, "<path") == 2);  // 0.02 is less than half a shade
  // round(1295 v) in base 36: 1295 zz, 648 i0, 26 0q
  CHECK(svg.find("data-cells='zzzz..00i00q'") != std::string::npos);

  map.low = -1, map.values = {-1, -0.5, 0, 0.5, 1, 2}, map.places = 1;
  map.row_labels = {"a", "b"};
  const std::string file = to_svg(map);
  CHECK(is_drawn(file));
  CHECK(count(file, "class='minus' fill-opacity='0.5'") == 1);
  CHECK(count(file, "class='plus' fill-opacity='1'") == 1);  // 1 and 2: one run
  CHECK(file.find(">-0.5</text>") != std::string::npos);
  CHECK(file.find("data-") == std::string::npos);

  map.column_labels = {"x"};
  CHECK(error_of([&] { to_svg(map); }) ==
        "heat map: wanted a label a row and a column, or none; got 2 for 2 rows, 1 for 3 columns");
  map.high = -1;
  CHECK(error_of([&] { to_svg(map); }) == "heat map: low must be below high; got -1 and -1");
  map.rows = 3;
  CHECK(error_of([&] { to_svg(map); }) == "heat map: wanted rows x columns values, 3 x 3; got 6");
}
