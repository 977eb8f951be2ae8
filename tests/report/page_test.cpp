// The report's page: what is on it follows from the data, no byte of the data breaks it, and it
// stays small.
#include "tutorials/report/page.h"

#include <doctest/doctest.h>

#include <cmath>

#include "html.h"
#include "tutorials/draw/text.h"

using namespace pellucid;
using namespace pellucid::report;

namespace {

void add(ReportData& data, int64_t step, double loss, double val_loss) {
  const auto put = [&](const char* key, double y) {
    Series& column = data.metrics.columns[key];
    column.name = key;
    column.x.push_back(static_cast<double>(step)), column.y.push_back(y);
  };
  put("loss", loss), put("lr", 1e-3), put("grad_norm", 0.5), put("tokens_per_s", 12345.6);
  put("tokens", static_cast<double>(step) * 100), put("seconds", static_cast<double>(step));
  if (!std::isnan(val_loss)) put("val_loss", val_loss);
  ++data.metrics.lines;
}

// A run of `steps` steps with maps of T tokens.
ReportData example(int64_t steps, int64_t layers = 2, int64_t heads = 3, int64_t T = 8) {
  ReportData data;
  data.name = "first run";
  data.command = "./pellucid train --data 'a b.txt' --preset tiny --out 'first run'";
  data.unit = "character";
  data.config = {{"format", "pellucid 1"},
                 {"train", {{"model", {{"n_layer", layers}}}, {"lr", 0.5}}}};
  for (int64_t i = 1; i <= steps; ++i)
    add(data, i,
        4 - 2 * static_cast<double>(i) / static_cast<double>(steps) + 0.1 * std::sin(double(i)),
        i % 10 == 0 ? 4.5 - 2 * static_cast<double>(i) / static_cast<double>(steps) : std::nan(""));
  data.samples.list = {{10, "\n", "xq zz"}, {20, "\n", "the cat sat"}};
  data.levels = {{"5-gram", 2.25}};
  data.parameters = {{"wte.weight", "(5, 4)", 20, 1.5, 0.25},
                     {"ln_f.weight", "(1234)", 1234, 2, 3}};
  data.maps.source = "the last 10 % of a b.txt";
  data.maps.layer_count = layers, data.maps.head_count = heads;
  for (int64_t t = 0; t < T; ++t) data.maps.tokens.push_back(t % 3 == 2 ? " " : "e");
  for (int64_t l = 0; l < layers; ++l) {
    data.maps.layers.push_back(l);
    data.maps.weights.emplace_back();
    data.similarity.emplace_back();
    data.kinds.push_back(l == 0 ? "sa" : "xsa");
    for (int64_t h = 0; h < heads; ++h) {
      std::vector<double> p(static_cast<std::size_t>(T * T), 0.0);
      for (int64_t r = 0; r < T; ++r)
        for (int64_t c = 0; c <= r; ++c)
          p[static_cast<std::size_t>(r * T + c)] =
              std::abs(std::sin(double(r * 7 + c * 3 + h))) / double(r + 1);
      data.maps.weights.back().push_back(p);
      data.similarity.back().heads.push_back({0.1 * double(l + 1), 0.02, 0.25});
    }
    data.similarity.back().mean = {0.1 * double(l + 1), 0.02, 0.25};
  }
  data.similarity_text = "the last 10 % of a b.txt, 64 tokens in 2 windows";
  return data;
}

}  // namespace

TEST_CASE("the page says what the data say, in drawings and in tables") {
  const ReportData data = example(40);
  const std::string html = to_html(data), text = read_page(html).words;
  CHECK(is_clean(html));
  CHECK(has(text, "Parameters||1,254|"));
  CHECK(has(text, "Steps||40|"));
  CHECK(has(text, "Validation loss||2.5000 |nats a character|"));
  CHECK(has(text, "Best||2.5000 |at step 40|"));
  CHECK(has(text, "Tokens read||4,000|"));
  CHECK(has(text, "Time||0:40 min|"));
  CHECK(has(text,
            "./pellucid train --data &#39;a b.txt&#39; --preset tiny --out &#39;first run&#39;"));
  CHECK(has(text, "|train.model.n_layer||2|"));
  CHECK(has(text, "5-gram 2.25"));
  // A row of the table: the mean of steps 11 .. 20.
  double mean = 0;
  for (int i = 11; i <= 20; ++i) mean += (4 - 2 * i / 40.0 + 0.1 * std::sin(double(i))) / 10;
  CHECK(has(text, "|20||2,000||" + fixed(mean, 4) + "||3.5000|"));
  CHECK(has(text, "|wte.weight||(5, 4)||20||1.5||0.25|"));
  CHECK(has(text, "|total||||1,254|"));
  CHECK(has(text, "|1||xsa||0.2000||0.0200||0.2500|"));
  CHECK(has(text, "|0||2||sa||0.1000||"));
  CHECK(has(text, "Step 20|"));
  CHECK(has(text, "the cat sat"));
  CHECK(count(html, "data-cells=") == 6);
  CHECK(count(html, "<title>layer 1, head 2</title>") == 1);
  // Every figure has a title and a description for those who do not see it.
  CHECK(count(html, "<svg ") == count(html, "<desc>"));
  CHECK_FALSE(has(html, "<desc></desc>"));
  CHECK(to_html(data) == html);
}

TEST_CASE("the floor is drawn across, with its value, and explained where there is one") {
  ReportData data = example(40);
  CHECK_FALSE(has(to_html(data), "The floor is"));
  data.levels = {{"5-gram", 2.25}, {"floor", 1.75}};
  const std::string html = to_html(data), text = read_page(html).words;
  CHECK(is_clean(html));
  CHECK(has(text, "floor 1.75"));
  CHECK(has(html, "; 5-gram: 2.2500; floor: 1.7500"));
  CHECK(has(text, "The floor is the least loss"));
}

TEST_CASE("nothing comes from elsewhere, and a policy forbids it") {
  const std::string html = to_html(example(40));
  CHECK(has(html, "default-src 'none'"));
  for (const char* word : {"src=", "url(", "@import", "fetch(", "import(", "XMLHttp", "<link"})
    CHECK_FALSE(has(html, word));
  // The namespace of SVG is a name, no address that is opened.
  CHECK(count(html, "http:") == count(html, "xmlns='http://www.w3.org/2000/svg'"));
  CHECK_FALSE(has(html, "https:"));
}

TEST_CASE(
    "whatever the bytes of names, prompts, texts and config: one script, one style, no more") {
  ReportData data = example(40);
  const std::string bad =
      "</script></style></pre>'\"><img src=x onerror=alert(1)>&amp;\x01\xff\xc3";
  data.name = data.command = data.unit = data.no_text = data.similarity_text = bad;
  data.config = {{bad.substr(0, 50), bad.substr(0, 50)}};
  data.samples.list = {{1, bad, bad}};
  data.levels[0].name = bad, data.parameters[0].name = bad, data.parameters[0].shape = bad;
  data.maps.source = bad, data.maps.tokens.assign(8, bad), data.kinds.assign(2, bad);
  const std::string html = to_html(data);
  CHECK(is_clean(html));
  CHECK(count(html, "<script") == 1);
  CHECK(count(html, "<style") == 1);
  CHECK_FALSE(has(html, "<img"));
  CHECK_FALSE(has(html, "\xff"));
  CHECK_FALSE(has(html, "\x01"));
  CHECK(has(html, "&lt;/script&gt;&lt;/style&gt;"));
}

TEST_CASE("a run that has just begun, one without a text, one whose last line was cut") {
  ReportData data = example(0);
  data.samples.list.clear(), data.levels.clear(), data.command = "";
  std::string html = to_html(data);
  CHECK(is_clean(html));
  CHECK(has(html, "no values yet"));
  CHECK(has(html, "No validation yet."));
  CHECK(has(html, "None were recorded"));
  CHECK(has(html, "was not recorded"));
  CHECK_FALSE(has(html, "cut short"));
  CHECK_FALSE(has(html, "finite"));

  data = example(5);
  data.maps = {}, data.similarity.clear(), data.no_text = "a b.txt: no such file";
  data.metrics.cut = true, data.metrics.not_finite = 1200;
  html = to_html(data);
  CHECK(is_clean(html));
  CHECK(count(html, "None, for want of a text: a b.txt: no such file.") == 2);
  CHECK(has(html, "The last line of metrics.jsonl was cut short"));
  CHECK_FALSE(has(html, "The last line of samples.jsonl"));
  CHECK(has(html, "1,200 values of metrics.jsonl left out: no finite number"));
}

TEST_CASE("100,000 steps and 96 maps of 32 tokens stay below 2 MB, and no peak is lost") {
  ReportData data = example(100000, 8, 12, 32);
  data.metrics.columns["grad_norm"].y[54321] = 777;
  for (int i = 0; i < 500; ++i)
    data.samples.list.push_back({100 + i, "\n", std::string(5000, 'x')});
  const std::string html = to_html(data);
  CHECK(html.size() < 2000000);
  MESSAGE("bytes: " << html.size());
  CHECK(has(html, " 777 "));
  CHECK(count(html, "data-cells=") == 96);
  CHECK(count(html, "<li>") == 12);
  CHECK(is_clean(html));
}
