// The page's curves, and what the model wrote on the way.
#include <algorithm>

#include "tutorials/draw/text.h"
#include "tutorials/report/page.h"

namespace pellucid::report {
namespace {

constexpr std::size_t kBuckets = 250, kRows = 40, kSamples = 12;  // at most, on the page
constexpr std::size_t kSampleBytes = 800;

// At most `most` of 0 .. n - 1, first and last among them, evenly spread.
std::vector<std::size_t> spread(std::size_t n, std::size_t most) {
  std::vector<std::size_t> chosen;
  const std::size_t count = std::min(n, most);
  for (std::size_t i = 0; i < count; ++i)
    chosen.push_back(count == 1 ? n - 1 : i * (n - 1) / (count - 1));
  return chosen;
}

std::string figure(const std::string& heading, const std::string& drawings,
                   const std::string& controls = "") {
  return "<figure><figcaption>" + escaped(heading) + "</figcaption>\n" + controls + drawings +
         "<output aria-live='polite'></output></figure>\n";
}

// Two drawings, for wide screens and for phones, of which the style shows one.
std::string wide_and_narrow(LineChart chart) {
  chart.width = 1140, chart.height = 380;
  const std::string wide = to_svg(chart, SvgUse::kPage);
  chart.width = 360, chart.height = 330;
  return "<div class='wide'>" + wide + "</div><div class='narrow'>" + to_svg(chart, SvgUse::kPage) +
         "</div>\n";
}

// The mean of y over from < x <= to; NaN where there is none.
double mean_between(const Series& s, double from, double to) {
  double sum = 0, n = 0;
  auto i = static_cast<std::size_t>(std::upper_bound(s.x.begin(), s.x.end(), from) - s.x.begin());
  for (; i < s.x.size() && s.x[i] <= to; ++i) sum += s.y[i], ++n;
  return sum / n;
}

double value_at(const Series& s, double x) {
  const auto at = std::lower_bound(s.x.begin(), s.x.end(), x);
  const bool found = at != s.x.end() && *at == x;
  return found ? s.y[static_cast<std::size_t>(at - s.x.begin())]
               : std::numeric_limits<double>::quiet_NaN();
}

std::string loss_table(const ReportData& data) {
  const Series validation = data.metrics.column("val_loss"), loss = data.metrics.column("loss"),
               tokens = data.metrics.column("tokens"),
               bits = data.metrics.column("val_bits_per_byte");
  std::vector<std::string> head = {"step", "tokens", "training", "validation"};
  if (!bits.x.empty()) head.push_back("bits a byte");
  std::vector<std::vector<std::string>> rows;
  double before = 0;
  for (const std::size_t i : spread(validation.x.size(), kRows)) {
    const double step = validation.x[i];
    rows.push_back({grouped(static_cast<int64_t>(step)), rounded(value_at(tokens, step)),
                    fixed(mean_between(loss, before, step), 4), fixed(validation.y[i], 4)});
    if (!bits.x.empty()) rows.back().push_back(fixed(value_at(bits, step), 4));
    before = step;
  }
  if (rows.empty()) return "<p>No validation yet.</p>\n";
  return "<details><summary>The numbers at " + counted(std::ssize(rows), "validation") +
         "</summary>\n<p>The training loss is the mean since the row before.</p>\n" +
         table("Losses", head, rows, 0) + "</details>\n";
}

}  // namespace

std::string loss_section(const ReportData& data) {
  const Series loss = data.metrics.column("loss");
  Series each = thinned(loss, kBuckets), mean = averaged(loss, 60),
         validation = thinned(data.metrics.column("val_loss"), kBuckets);
  each.name = "training, each step", each.faint = true;
  const std::size_t steps = (loss.x.size() + 30) / 60;
  mean.name = "training, mean of " + counted(static_cast<int64_t>(steps), "step");
  validation.name = "validation", validation.dots = validation.x.size() <= 40;

  LineChart chart{
      .title = "Training and validation loss", .x_label = "step", .y_label = "nats a " + data.unit};
  chart.description = "No values yet";
  if (!loss.y.empty())
    chart.description = "The training loss goes from " + fixed(loss.y.front(), 3) + " to " +
                        fixed(loss.y.back(), 3) + " nats";
  if (!validation.y.empty())
    chart.description +=
        ", the validation loss is " + fixed(validation.y.back(), 4) + " at the end";
  for (const Level& level : data.levels)
    chart.description += "; " + level.name + ": " + fixed(level.y, 4);
  chart.series = {each};
  if (steps > 1) chart.series.push_back(mean);
  chart.series.push_back(validation);  // the last one is drawn on top
  chart.levels = data.levels;

  std::string controls = "<fieldset class='toggles'><legend>Show</legend>\n";
  for (std::size_t i = 0; i < chart.series.size(); ++i)
    controls += "<label><input type='checkbox' checked class='t" + std::to_string(i) + "'> " +
                escaped(chart.series[i].name) + "</label>\n";
  controls += "</fieldset>\n";
  const bool floor = std::any_of(data.levels.begin(), data.levels.end(),
                                 [](const Level& level) { return level.name == "floor"; });
  return "<section id='loss'><h2>Loss</h2>\n" +
         figure("Loss by step. Point at it, or choose it and use the arrow keys, to read values.",
                wide_and_narrow(chart), controls) +
         (floor ? "<p>The floor is the least loss that any model can reach on this text: the "
                  "grammar that made it knows every probability.</p>\n"
                : "") +
         loss_table(data) + "</section>\n";
}

std::string pace_section(const ReportData& data) {
  struct Curve {
    const char *key, *title, *unit;
    bool from_zero;
  };
  std::string out = "<section id='pace'><h2>Pace</h2>\n<div class='charts'>\n";
  std::vector<std::vector<std::string>> rows;
  for (const Curve& curve :
       {Curve{"lr", "Learning rate", "", true}, Curve{"grad_norm", "Gradient norm", "", true},
        Curve{"tokens_per_s", "Speed", "tokens a second", true}}) {
    const Series all = data.metrics.column(curve.key);
    LineChart chart{.title = curve.title,
                    .description = "No values yet",
                    .x_label = "step",
                    .y_label = curve.unit};
    chart.series = {thinned(all, kBuckets)};
    chart.series[0].name = curve.title;
    chart.from_zero = curve.from_zero;
    chart.width = 360, chart.height = 240;
    if (!all.y.empty()) {
      const auto [low, high] = std::minmax_element(all.y.begin(), all.y.end());
      const double mean = mean_between(all, -1, all.x.back());
      rows.push_back({curve.title, rounded(all.y.front()), rounded(*low), rounded(mean),
                      rounded(*high), rounded(all.y.back())});
      chart.description = "From " + rounded(*low) + " to " + rounded(*high) + ", " +
                          rounded(all.y.back()) + " at the end";
    }
    out += figure(curve.title, to_svg(chart, SvgUse::kPage));
  }
  out += "</div>\n";
  if (!rows.empty())
    out += "<details><summary>The numbers</summary>\n" +
           table("Pace", {"", "first", "least", "mean", "greatest", "last"}, rows) + "</details>\n";
  return out + "</section>\n";
}

std::string samples_section(const ReportData& data) {
  std::string out = "<section id='samples'><h2>Samples over time</h2>\n";
  const std::vector<Sample>& list = data.samples.list;
  if (list.empty())
    return out + "<p>None were recorded: training writes one at each validation.</p></section>\n";
  out += "<p>What the model wrote at " + counted(std::ssize(list), "validation") +
         ", always with " + "the same random numbers" +
         (list.size() > kSamples ? "; some of them here" : "") + ".</p>\n<ol class='samples'>\n";
  for (const std::size_t i : spread(list.size(), kSamples)) {
    std::string text = list[i].text;
    const bool cut = text.size() > kSampleBytes;
    if (cut) text.resize(kSampleBytes);
    std::string prompt = list[i].prompt;
    prompt.erase(0, prompt.find_first_not_of('\n'));  // blank lines on top say nothing
    out += "<li><h3>Step " + grouped(list[i].step) + "</h3><pre><b>" + escaped(prompt) + "</b>" +
           escaped(text) + (cut ? " ..." : "") + "</pre></li>\n";
  }
  return out + "</ol></section>\n";
}

}  // namespace pellucid::report
