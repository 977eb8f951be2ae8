// The page's attention maps and similarities.
#include "tutorials/draw/text.h"
#include "tutorials/report/page.h"

namespace pellucid::report {
namespace {

// A token as it is seen: blanks by their signs.
std::string seen(const std::string& token) {
  std::string out;
  for (const char c : token)
    out += c == ' '    ? "\xe2\x90\xa3"
           : c == '\n' ? "\xe2\x86\xb5"
           : c == '\t' ? "\xe2\x87\xa5"
                       : std::string(1, c);
  return escaped(out);
}

std::string map_of(const Maps& maps, std::size_t layer, std::size_t head) {
  const auto T = static_cast<int64_t>(maps.tokens.size());
  HeatMap map{.rows = T, .columns = T, .values = maps.weights[layer][head], .cell = 4};
  map.title = "layer " + std::to_string(maps.layers[layer]) + ", head " + std::to_string(head);
  // The future is no weight of 0: it is not there.
  double own = 0;
  for (int64_t r = 0; r < T; ++r) {
    own += map.values[static_cast<std::size_t>(r * T + r)] / static_cast<double>(T);
    for (int64_t c = r + 1; c < T; ++c)
      map.values[static_cast<std::size_t>(r * T + c)] = std::numeric_limits<double>::quiet_NaN();
  }
  map.description = "A row is a token that looks, a column one that it looks at. " +
                    fixed(100 * own, 0) + " % of the weight lies on the diagonal.";
  return "<figure><figcaption>head " + std::to_string(head) + "</figcaption>\n" +
         to_svg(map, SvgUse::kPage) + "</figure>\n";
}

std::string similarity_figure(const ReportData& data) {
  LineChart chart{.title = "Similarity bias by layer", .x_label = "layer"};
  chart.series = {{.name = "cos(y, v)"}, {.name = "baseline"}, {.name = "diagonal weight"}};
  for (std::size_t l = 0; l < data.similarity.size(); ++l) {
    const Similarity& mean = data.similarity[l].mean;
    const double values[] = {mean.similarity, mean.baseline, mean.diagonal};
    for (std::size_t i = 0; i < 3; ++i) {
      Series& series = chart.series[i];
      series.dots = true;
      series.x.push_back(static_cast<double>(l)), series.y.push_back(values[i]);
    }
  }
  chart.from_zero = true;
  chart.description = "cos(y, v) is " + fixed(data.similarity.front().mean.similarity, 3) +
                      " in the first layer and " +
                      fixed(data.similarity.back().mean.similarity, 3) + " in the last";
  chart.width = 560, chart.height = 320;
  const std::string wide = to_svg(chart, SvgUse::kPage);
  chart.width = 360;
  return "<figure><figcaption>By layer</figcaption><div class='wide'>" + wide +
         "</div><div class='narrow'>" + to_svg(chart, SvgUse::kPage) +
         "</div><output aria-live='polite'></output></figure>\n";
}

}  // namespace

std::string maps_section(const ReportData& data) {
  const Maps& maps = data.maps;
  std::string out = "<section id='attention'><h2>Attention maps</h2>\n";
  if (maps.tokens.empty())
    return out + "<p>None, for want of a text: " + escaped(data.no_text) + ".</p></section>\n";
  out +=
      "<p>Each square is a head; a row is a token that looks, a column one that it looks at, the "
      "deeper the color the more. Point at a cell, or choose a map and use the arrow keys. The "
      "tokens are from " +
      escaped(maps.source) + ".</p>\n";
  const auto shown = std::ssize(maps.weights.front());
  if (std::ssize(maps.layers) < maps.layer_count || shown < maps.head_count)
    out += "<p>To keep the page small, " + counted(std::ssize(maps.layers), "layer") + " of " +
           grouped(maps.layer_count) + " and " + counted(shown, "head") + " of " +
           grouped(maps.head_count) + " are shown.</p>\n";
  out += "<div class='sentence'><p id='tokens'>";
  for (const std::string& token : maps.tokens) out += "<span>" + seen(token) + "</span>";
  out += "</p><output id='weight' aria-live='polite'></output></div>\n";
  for (std::size_t l = 0; l < maps.layers.size(); ++l) {
    out += std::string("<details") + (l == 0 || l + 1 == maps.layers.size() ? " open" : "") +
           "><summary>Layer " + std::to_string(maps.layers[l]) + "</summary>\n<div class='maps'>\n";
    for (std::size_t h = 0; h < maps.weights[l].size(); ++h) out += map_of(maps, l, h);
    out += "</div></details>\n";
  }
  return out + "</section>\n";
}

std::string similarity_section(const ReportData& data) {
  const std::string out = "<section id='similarity'><h2>Similarity bias</h2>\n";
  if (data.similarity.empty())
    return out + "<p>None, for want of a text: " + escaped(data.no_text) + ".</p></section>\n";

  std::vector<std::vector<std::string>> layers, heads;
  const auto row = [](std::vector<std::string> names, const Similarity& s) {
    for (const double value : {s.similarity, s.baseline, s.diagonal})
      names.push_back(fixed(value, 4));
    return names;
  };
  for (std::size_t l = 0; l < data.similarity.size(); ++l) {
    const LayerSimilarity& layer = data.similarity[l];
    const std::string name = std::to_string(l), kind = l < data.kinds.size() ? data.kinds[l] : "";
    layers.push_back(row({name, kind}, layer.mean));
    for (std::size_t h = 0; h < layer.heads.size(); ++h)
      heads.push_back(row({name, std::to_string(h), kind}, layer.heads[h]));
  }
  return out +
         "<p>How near what a head gives, y, lies to the token's own value, v: the mean of "
         "cos(y, v), before XSA takes that part away. The baseline has the value of another "
         "token, at random. The diagonal weight is how much a token looks at itself. Measured on " +
         escaped(data.similarity_text) + "; each window's first token is left out.</p>\n" +
         "<div class='charts two'>" + similarity_figure(data) +
         table("Similarity by layer", {"layer", "kind", "cos(y, v)", "baseline", "diagonal"},
               layers, 2) +
         "</div>\n<details><summary>Every head</summary>\n" +
         table("Similarity by head", {"layer", "head", "kind", "cos(y, v)", "baseline", "diagonal"},
               heads, 3) +
         "</details></section>\n";
}

}  // namespace pellucid::report
