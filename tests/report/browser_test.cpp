// The report in a browser, headless Chromium, from a file: no error, no request, nothing wider than
// the screen of a phone or of a desk, and values under the pointer, light and dark.
#include <doctest/doctest.h>

#include <cmath>
#include <regex>

#include "demos/program.h"
#include "tutorials/report/page.h"

using namespace pellucid;
using namespace pellucid::report;

namespace {

std::string browser() {
  for (const char* path : {"/usr/bin/chromium-headless-shell", "/usr/bin/chromium"})
    if (std::filesystem::exists(path)) return path;
  return "";
}

ReportData example() {
  ReportData data;
  data.name = "a run with a very long name that has no place to break " + std::string(90, 'n');
  data.command = "./pellucid train --data " + std::string(300, 'x');
  data.config = {{"train", {{"path", std::string(200, 'p')}}}};
  for (int64_t i = 1; i <= 500; ++i)
    for (const char* key : {"loss", "val_loss", "lr", "grad_norm", "tokens_per_s"}) {
      Series& column = data.metrics.columns[key];
      column.x.push_back(static_cast<double>(i));
      column.y.push_back(2 + std::sin(static_cast<double>(i)) / static_cast<double>(i));
    }
  data.samples.list = {{1, "</script>", std::string(700, 'w')}, {2, "\n", "words and words"}};
  data.levels = {{"5-gram", 2.25}, {"floor", 1.5}};
  data.parameters = {{std::string(60, 'a') + ".weight", "(5, 4)", 20, 1.5, 0.25}};
  data.maps.source = "a text", data.maps.tokens.assign(32, "e");
  data.maps.layer_count = data.maps.head_count = 2;
  for (int64_t l = 0; l < 2; ++l) {
    std::vector<double> p(32 * 32, 0.0);
    for (std::size_t r = 0; r < 32; ++r)
      for (std::size_t c = 0; c <= r; ++c) p[r * 32 + c] = 1 / static_cast<double>(r + 1);
    data.maps.layers.push_back(l);
    data.maps.weights.push_back({p, p});
    data.similarity.push_back({{{0.5, 0.1, 0.2}, {0.4, 0, 0.1}}, {0.45, 0.05, 0.15}});
  }
  data.kinds = {"xsa", "xsa"}, data.similarity_text = "a text";
  return data;
}

// What a test adds to the page: it opens everything, uses keys and pointer, and writes what it
// finds into the document.
const char* const kCheck = R"(<script>
const found = [];
document.querySelectorAll('details').forEach((d) => { d.open = true; });
const root = document.documentElement;
found.push('wide=' + (root.scrollWidth - window.innerWidth), 'inner=' + window.innerWidth);
const shown = (e) => e.getClientRects().length > 0;
const sizes = [...document.querySelectorAll('.chart text')].filter(shown)
  .map((t) => parseFloat(getComputedStyle(t).fontSize) * t.ownerSVGElement.getScreenCTM().a);
found.push('letters=' + Math.min(...sizes).toFixed(1));
const chart = [...document.querySelectorAll('[data-frame]')].find(shown);
chart.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}));
found.push('curve=' + chart.closest('figure').querySelector('output').textContent);
const map = document.querySelector('[data-cells]'), box = map.getBoundingClientRect();
map.dispatchEvent(new PointerEvent('pointermove',
  {clientX: box.left + box.width * .02, clientY: box.top + box.height * 3.5 / 32}));
found.push('map=' + document.getElementById('weight').textContent);
const toggle = document.querySelector('.t0');
toggle.checked = false;
found.push('hidden=' + getComputedStyle(document.querySelector('.curve.s0')).display);
found.push('paper=' + getComputedStyle(document.body).backgroundColor);
found.push('requests=' + performance.getEntriesByType('resource').length);
const names = [...document.querySelectorAll('svg')].every((s) => s.querySelector('title').textContent);
found.push('titles=' + names);
document.body.dataset.found = found.join('|');
</script>)";

// name=value of what the check found.
std::map<std::string, std::string> look(const std::string& html, int width, bool dark) {
  const TemporaryFolder folder;
  std::string page = html;
  page.insert(page.rfind("</body>"), kCheck);
  spit(folder.file("report.html"), page);
  const Ended ended =
      run({"--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
           "--user-data-dir=" + folder.file("user"),
           "--window-size=" + std::to_string(width) + ",800", "--virtual-time-budget=2000",
           std::string("--blink-settings=preferredColorScheme=") + (dark ? "0" : "1"), "--dump-dom",
           "file://" + folder.file("report.html")},
          {.program = browser()});
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK(ended.err.find("CONSOLE") == std::string::npos);
  std::smatch match;
  REQUIRE(std::regex_search(ended.out, match, std::regex("data-found=\"([^\"]*)\"")));
  std::map<std::string, std::string> found;
  const std::string text = match[1];
  const std::regex pair("([a-z]+)=([^|]*)");
  for (std::sregex_iterator at(text.begin(), text.end(), pair), end; at != end; ++at)
    found[(*at)[1]] = (*at)[2];
  return found;
}

}  // namespace

TEST_CASE("in a browser: phone and desk, light and dark" * doctest::skip(browser().empty()) *
          doctest::description("needs the package chromium-headless-shell")) {
  const std::string html = to_html(example());
  struct Screen {
    int width;
    bool dark;
  };
  for (const Screen& screen : {Screen{390, true}, Screen{1280, false}}) {
    auto found = look(html, screen.width, screen.dark);
    for (const auto& [name, value] : found) INFO(name << " " << value);
    CAPTURE(screen.width);
    CHECK(found["inner"] == std::to_string(screen.width));
    CHECK(std::stod(found["wide"]) <= 0);
    CHECK(std::stod(found["letters"]) >= 11);
    CHECK(found["curve"] ==
          "step 2: training, each step 2.4546; training, mean of 8 steps 2.1416 "
          "(at 5); validation 2.4546");
    CHECK(found["map"] == "layer 0, head 0: e (3) looks at e (0) with weight 0.250");
    CHECK(found["hidden"] == "none");
    CHECK(found["paper"] == (screen.dark ? "rgb(18, 22, 29)" : "rgb(255, 255, 255)"));
    CHECK(found["requests"] == "0");
    CHECK(found["titles"] == "true");
  }
}
