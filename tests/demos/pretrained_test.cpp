// Files of others' models: the logits of a llama2.c model and of a GPT-2 against forward passes
// written here with nothing but double and std::vector, the text and losses of a real model, and
// everything that can be wrong with a file.
#include "tutorials/demos/pretrained.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "llama_reference.h"
#include "nn/generate.h"
#include "nn/tokenizer.h"
#include "program.h"
#include "tensor/safetensors.h"

using namespace pellucid;
using namespace pellucid::nn;
using demos::load_gpt2;
using demos::load_llama2c;

namespace {

// The largest error of the model's logits, as a share of the largest logit.
double logits_error(GPT& model, const std::vector<int64_t>& ids, const std::vector<Row>& wanted) {
  const auto T = static_cast<int64_t>(ids.size());
  NoGradGuard no_grad;
  const std::vector<double> ours = model.forward(from_vector(ids, {1, T})).to_vector();
  double worst = 0, size = 0;
  std::size_t i = 0;
  for (const Row& row : wanted)
    for (const double x : row) {
      worst = std::max(worst, std::abs(x - ours.at(i++)));
      size = std::max(size, std::abs(x));
    }
  CHECK(i == ours.size());
  return worst / size;
}

// Each logit comes from a chain of a few hundred float32 sums and products.
constexpr double kSingle = 2e-5;

std::string data_file(const char* name) {
  const char* folder = std::getenv("PELLUCID_DATA");
  return folder ? std::string(folder) + "/" + name : "";
}

}  // namespace

TEST_CASE("a llama2.c file, its head tied or not, against a forward pass in double") {
  const TemporaryFolder folder;
  const std::string path = folder.file("model.bin");
  for (const LlamaSizes& sizes : {LlamaSizes{12, 10, 2, 3, 3, 7, 9},
                                  {12, 10, 3, 3, 1, -7, 9},
                                  {16, 5, 1, 4, 2, 6, 5},
                                  {8, 3, 2, 2, 1, -11, 6}}) {
    const std::string bytes = llama_file(sizes);
    spit(path, bytes);
    GPT model = load_llama2c(path);
    CHECK(model.config.tied_head == (sizes.V > 0));
    const std::vector<int64_t> ids{1, 4, 0, 5, 2};
    CHECK(logits_error(model, ids, llama_logits(bytes, ids)) < kSingle);
  }
}

TEST_CASE("a llama2.c file that is damaged: refused, with the repair") {
  const TemporaryFolder folder;
  const std::string path = folder.file("model.bin");
  const LlamaSizes good{12, 10, 2, 3, 1, 7, 9};
  const auto fault = [&](const std::string& bytes) {
    spit(path, bytes);
    return fault_of(path, [&] { load_llama2c(path); });
  };
  const std::string whole = llama_file(good);
  CHECK(fault(whole) == "");
  CHECK(fault("") == "has 0 bytes, fewer than the header of a llama2.c model; get it again");
  CHECK(fault(whole.substr(0, 27)) ==
        "has 27 bytes, fewer than the header of a llama2.c model; get it again");
  const std::string sizes =
      "but a llama2.c model with its header's sizes (dim 12, hidden 10, layers 2, heads 3, key "
      "heads 1, vocabulary 7, context 9) has " +
      std::to_string(whole.size()) + "; get it again";
  CHECK(fault(whole.substr(0, whole.size() - 1)) ==
        "has " + std::to_string(whole.size() - 1) + " bytes, " + sizes);
  CHECK(fault(whole + "x") == "has " + std::to_string(whole.size() + 1) + " bytes, " + sizes);
  CHECK(fault(whole.substr(0, 28)) == "has 28 bytes, " + sizes);

  const std::string header = "is no llama2.c model of version 0: by its header, ";
  const auto with = [&](int32_t LlamaSizes::*field, int32_t value) {
    LlamaSizes s = good;
    s.*field = value;
    std::string bytes = whole;
    std::memcpy(bytes.data(), &s, sizeof s);
    return fault(bytes);
  };
  CHECK(with(&LlamaSizes::C, 0) == header + "GPT config: n_embd must be from 1 to 65536; got 0");
  CHECK(with(&LlamaSizes::C, -12) ==
        header + "GPT config: n_embd must be from 1 to 65536; got -12");
  CHECK(with(&LlamaSizes::C, 13) ==
        header + "GPT config: n_embd must be a multiple of n_head; got n_embd 13, n_head 3");
  CHECK(with(&LlamaSizes::hidden, 0) ==
        header + "key heads and hidden must be positive; got 1 and 0");
  CHECK(with(&LlamaSizes::hidden, INT32_MAX) ==
        header + "GPT config: n_hidden must be from 0 to 1048576; got 2147483647");
  CHECK(with(&LlamaSizes::L, 5000) ==
        header + "GPT config: n_layer must be from 1 to 1000; got 5000");
  CHECK(with(&LlamaSizes::H, 0) == header + "GPT config: n_head must be from 1 to 1000; got 0");
  CHECK(with(&LlamaSizes::Hkv, 0) ==
        header + "key heads and hidden must be positive; got 0 and 10");
  CHECK(with(&LlamaSizes::Hkv, 2) ==
        header + "GPT config: n_head must be a multiple of n_kv_head; got n_head 3, n_kv_head 2");
  CHECK(with(&LlamaSizes::V, INT32_MIN) ==
        header + "GPT config: vocab_size must be from 1 to 16777216; got 2147483648");
  CHECK(with(&LlamaSizes::T, -1) ==
        header + "GPT config: block_size must be from 1 to 16777216; got -1");
  CHECK(with(&LlamaSizes::C, 9) ==  // D = 3
        header +
            "GPT config: rope turns pairs, so that n_embd / n_head must be even; got n_embd 9, "
            "n_head 3");
  // The largest sizes that a config may have, and a file of 4 KB: no memory is asked for.
  LlamaSizes huge{65536, 1 << 20, 1000, 256, 256, 1 << 24, 1 << 24};
  std::string bytes = whole;
  std::memcpy(bytes.data(), &huge, sizeof huge);
  CHECK(fault(bytes).find(" bytes, but a llama2.c model with its header's sizes (dim 65536") !=
        std::string::npos);
  huge = {0x616b3432, 1, 0, 0, 0, 0, 0};
  std::memcpy(bytes.data(), &huge, sizeof huge);
  CHECK(fault(bytes) ==
        "is a llama2.c model of version 1; only version 0 is read: export it with --version 0");
  CHECK(fault_of(folder.file("none"), [&] { load_llama2c(folder.file("none")); }) != "");
}

TEST_CASE("stories260K: logits, losses and text of a model that others trained" *
          doctest::skip(data_file("").empty())) {
  const std::string path = data_file("stories260K.bin");
  GPT model = load_llama2c(path);
  CHECK(model.config.vocab_size == 512);
  CHECK(model.config.n_kv_head == 4);
  CHECK(model.num_parameters() == 260032);
  NoGradGuard no_grad;

  // Published: the first five logits after token 1.
  const Tensor first = model.forward(from_vector(std::vector<int64_t>{1}, {1, 1}));
  const double published[] = {-6.222911, 8.404342, -6.223737, -6.222542, -6.221951};
  for (int i = 0; i < 5; ++i) CHECK(std::abs(first.to_vector()[i] - published[i]) < 2e-5);

  // Greedy, from the token that begins a text.
  Generator rng;
  const auto ids = generate(model, {1}, {.max_new_tokens = 100, .temperature = 0}, rng);
  const std::string text = Tokenizer::load(data_file("tok512.bin")).decode(ids);
  const std::string wanted =
      "Once upon a time, there was a little girl named Lily. She loved to play outside in the "
      "park. One day, she saw a big, red ball.";
  CHECK(text.substr(text.find_first_not_of(' ')).substr(0, wanted.size()) == wanted);

  // Every token's logits and loss.
  std::vector<int64_t> context{1};
  context.insert(context.end(), ids.begin(), ids.end() - 1);
  const std::vector<Row> logits = llama_logits(slurp(path), context);
  CHECK(logits_error(model, context, logits) < kSingle);
  const auto T = static_cast<int64_t>(context.size());
  const std::vector<double> losses =
      cross_entropy(reshape(model.forward(from_vector(context, {1, T})), {T, 512}),
                    from_vector(ids, {T}), {.reduction = Reduction::kNone})
          .to_vector();
  double worst = 0;
  for (std::size_t t = 0; t < ids.size(); ++t) {
    double total = 0;
    for (const double x : logits[t]) total += std::exp(x);
    const double loss = std::log(total) - logits[t][std::size_t(ids[t])];
    worst = std::max(worst, std::abs(loss - losses[t]));
  }
  CHECK(worst < 1e-4);
  std::cout << "FIGURE | stories260K: loss of each of " << ids.size()
            << " tokens, worst against double | " << worst << std::endl;
}

TEST_CASE("sample: files that others made, with their tokenizer") {
  const TemporaryFolder folder;
  const auto sample = [&](std::vector<std::string> more) {
    std::vector<std::string> all = {"sample", "--tokens", "5", "--model"};
    all.insert(all.end(), more.begin(), more.end());
    return run(all, {.folder = folder.path.string()});
  };
  spit(folder.file("bytes.json"), Tokenizer::bytes(true).to_json().dump());
  spit(folder.file("model.bin"), llama_file({12, 10, 2, 3, 1, 257, 9}));
  spit(folder.file("other.bin"), llama_file({12, 10, 2, 3, 1, 256, 9}));
  const Ended fine = sample({"model.bin", "--tokenizer", "bytes.json", "--prompt", "a"});
  CHECK(fine.code == 0);
  CHECK(fine.err == "");
  CHECK(fine.out.starts_with("a"));
  for (const auto& [arguments, message] : std::map<std::vector<std::string>, std::string>{
           {{"model.bin"},
            "model.bin: is a file: give the folder of a run, or the file's tokenizer by "
            "--tokenizer FILE"},
           {{"other.bin", "--tokenizer", "bytes.json"},
            "bytes.json: has 257 tokens, but the model other.bin has 256; give the tokenizer that "
            "it was trained with"},
           {{".", "--tokenizer", "bytes.json"},
            ".: a run has its own tokenizer; leave --tokenizer out"}}) {
    const Ended ended = sample(arguments);
    CHECK(ended.code == 1);
    CHECK(ended.out == "");
    CHECK(ended.err == "pellucid: " + message + "\n");
  }
}

namespace {

// What `eval` must print of a running text: the mean loss of ids[1..] by the pass in double, in
// windows of T.
std::string eval_line(const std::string& model, const std::vector<int64_t>& ids, std::size_t T,
                      std::size_t bytes) {
  double nats = 0;
  for (std::size_t start = 0; start + 1 < ids.size(); start += T) {
    const std::size_t n = std::min(T, ids.size() - 1 - start);
    const auto from = ids.begin() + static_cast<std::ptrdiff_t>(start);
    const std::vector<Row> logits =
        llama_logits(model, {from, from + static_cast<std::ptrdiff_t>(n)});
    for (std::size_t t = 0; t < n; ++t) {
      double total = 0;
      for (const double x : logits[t]) total += std::exp(x);
      nats += std::log(total) - logits[t][std::size_t(ids[start + t + 1])];
    }
  }
  char line[200];
  std::snprintf(line, sizeof line, "whole text loss %.4f nats/token, %.4f bits/byte, %zu tokens\n",
                nats / static_cast<double>(ids.size() - 1),
                nats / std::log(2.0) / static_cast<double>(bytes), ids.size());
  return line;
}

}  // namespace

TEST_CASE("eval: a file that others made, on a text and on tasks, against a pass in double") {
  const TemporaryFolder folder;
  const Tokenizer bytes = Tokenizer::bytes(true);
  spit(folder.file("bytes.json"), bytes.to_json().dump());
  const std::string model = llama_file({12, 10, 2, 3, 1, 257, 9});
  spit(folder.file("model.bin"), model);
  const std::string text = "the cat sat on a mat";
  spit(folder.file("text.txt"), text);
  spit(folder.file("task.jsonl"), R"({"query": "a", "choices": ["b", "c"], "gold": 1})");
  const auto eval = [&](std::vector<std::string> more) {
    std::vector<std::string> all = {"eval", "--model", "model.bin", "--tokenizer", "bytes.json"};
    all.insert(all.end(), more.begin(), more.end());
    return run(all, {.folder = folder.path.string()});
  };
  std::vector<int64_t> ids = bytes.encode(text);
  ids.insert(ids.begin(), bytes.end_of_text().value());
  const Ended ended = eval({"--data", "text.txt", "--tasks", "task.jsonl"});
  CHECK(ended.code == 0);
  CHECK(ended.err == "");
  INFO(ended.out);
  CHECK(ended.out.find(eval_line(model, ids, 9, text.size())) != std::string::npos);
  CHECK(ended.out.find("task.jsonl: acc ") != std::string::npos);
  CHECK(eval({"--data", "text.txt", "--ngram"}).code == 0);
}

TEST_CASE("eval: stories260K on the text that it writes, against a pass in double" *
          doctest::skip(data_file("").empty())) {
  const TemporaryFolder folder;
  const std::string text =
      "Once upon a time, there was a little girl named Lily. She loved to play outside in the "
      "park. One day, she saw a big, red ball.";
  spit(folder.file("text.txt"), text);
  const Tokenizer tokenizer = Tokenizer::load(data_file("tok512.bin"));
  std::vector<int64_t> ids{1};
  for (const int64_t id : tokenizer.encode(text)) ids.push_back(id);
  const Ended ended = run({"eval", "--model", data_file("stories260K.bin"), "--tokenizer",
                           data_file("tok512.bin"), "--data", folder.file("text.txt")});
  CHECK(ended.code == 0);
  INFO(ended.out);
  // The space that the first token begins with is none of the text's bytes.
  CHECK(ended.out.find(eval_line(slurp(data_file("stories260K.bin")), ids, 512, text.size())) !=
        std::string::npos);
}

TEST_CASE("sample: stories260K writes what it is known to write" *
          doctest::skip(data_file("").empty())) {
  const Ended ended = run({"sample", "--model", data_file("stories260K.bin"), "--tokenizer",
                           data_file("tok512.bin"), "--temperature", "0", "--tokens", "60"});
  CHECK(ended.code == 0);
  CHECK(ended.out.starts_with(
      "Once upon a time, there was a little girl named Lily. She loved to play outside in the "
      "park. One day, she saw a big, red ball."));
}

namespace {

// A GPT-2 in Hugging Face's layout: V 7, T 6, C 12, 2 layers.
constexpr int64_t kV = 7, kT = 6, kC = 12, kL = 2, kH = 3;

SafeTensors gpt2_file(const std::string& prefix) {
  SafeTensors file;
  const auto put = [&](const std::string& name, const Shape& shape, double plus = 0) {
    Generator rng{.seed = 3, .stream = stream_of(name)};
    file.tensors[prefix + name] = randn(shape, rng) * 0.5 + plus;
  };
  put("wte.weight", {kV, kC}), put("wpe.weight", {kT, kC});
  put("ln_f.weight", {kC}, 1), put("ln_f.bias", {kC});
  for (int64_t l = 0; l < kL; ++l) {
    const std::string h = "h." + std::to_string(l) + ".";
    for (const char* ln : {"ln_1", "ln_2"})
      put(h + ln + ".weight", {kC}, 1), put(h + ln + ".bias", {kC});
    put(h + "attn.c_attn.weight", {kC, 3 * kC}), put(h + "attn.c_attn.bias", {3 * kC});
    put(h + "attn.c_proj.weight", {kC, kC}), put(h + "attn.c_proj.bias", {kC});
    put(h + "mlp.c_fc.weight", {kC, 4 * kC}), put(h + "mlp.c_fc.bias", {4 * kC});
    put(h + "mlp.c_proj.weight", {4 * kC, kC}), put(h + "mlp.c_proj.bias", {kC});
    put(h + "attn.bias", {1, 1, kT, kT});  // the mask's buffers
    put(h + "attn.masked_bias", {});
  }
  return file;
}

std::vector<Row> gpt2_logits(const SafeTensors& file, const std::vector<int64_t>& ids) {
  std::map<std::string, Row> p;
  for (const auto& [name, x] : file.tensors) p[name] = x.to_vector();
  const std::size_t C = kC, D = kC / kH;
  const auto norm = [&](const Row& x, const std::string& name) {
    double mean = 0, var = 0;
    for (const double v : x) mean += v / double(C);
    for (const double v : x) var += (v - mean) * (v - mean) / double(C);
    Row y(C);
    for (std::size_t i = 0; i < C; ++i)
      y[i] = (x[i] - mean) / std::sqrt(var + 1e-5) * p[name + ".weight"][i] + p[name + ".bias"][i];
    return y;
  };
  const auto conv1d = [&](const Row& x, const std::string& name) {  // weight (in, out)
    const Row& bias = p[name + ".bias"];
    Row y = product(p[name + ".weight"].data(), x, bias.size(), 1, bias.size());
    add(y, bias);
    return y;
  };
  std::vector<std::vector<Row>> keys(kL), values(kL);
  std::vector<Row> logits;
  for (std::size_t t = 0; t < ids.size(); ++t) {
    Row x(&p["wte.weight"][ids[t] * C], &p["wte.weight"][ids[t] * C] + C);
    add(x, Row(&p["wpe.weight"][t * C], &p["wpe.weight"][t * C] + C));
    for (std::size_t l = 0; l < std::size_t(kL); ++l) {
      const std::string h = "h." + std::to_string(l) + ".";
      const Row qkv = conv1d(norm(x, h + "ln_1"), h + "attn.c_attn");
      keys[l].emplace_back(&qkv[C], &qkv[C] + C);
      values[l].emplace_back(&qkv[2 * C], &qkv[2 * C] + C);
      Row y(C);
      for (std::size_t i = 0; i < C; i += D) attend(&y[i], &qkv[i], keys[l], values[l], i, D);
      add(x, conv1d(y, h + "attn.c_proj"));
      Row u = conv1d(norm(x, h + "ln_2"), h + "mlp.c_fc");
      for (double& v : u)
        v = v / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v)));
      add(x, conv1d(u, h + "mlp.c_proj"));
    }
    const Row& head = p[p.contains("lm_head.weight") ? "lm_head.weight" : "wte.weight"];
    logits.push_back(rows_times(head.data(), norm(x, "ln_f"), kV));
  }
  return logits;
}

}  // namespace

TEST_CASE("a GPT-2 in Hugging Face's layout against a forward pass in double") {
  const TemporaryFolder folder;
  const std::string path = folder.file("model.safetensors");
  const std::vector<int64_t> ids{3, 0, 6, 6, 1, 2};
  const SafeTensors bare = gpt2_file("");
  const std::vector<Row> wanted = gpt2_logits(bare, ids);
  for (const char* prefix : {"", "transformer."}) {
    SafeTensors file = gpt2_file(prefix);
    save_safetensors(path, file);
    GPT model = load_gpt2(path, kH);
    CHECK(model.config.tied_head);
    CHECK(logits_error(model, ids, wanted) < kSingle);
    file.tensors["lm_head.weight"] = file.tensors[std::string(prefix) + "wte.weight"];
    save_safetensors(path, file);
    CHECK(load_gpt2(path, kH).config.tied_head);  // the same numbers twice
  }
  // A head of its own, and float64.
  SafeTensors file = bare;
  Generator rng{.seed = 8};
  file.tensors["lm_head.weight"] = randn({kV, kC}, rng);
  file.tensors["ln_f.bias"] = astype(file.tensors["ln_f.bias"], kFloat64);
  save_safetensors(path, file);
  GPT model = load_gpt2(path, kH);
  CHECK(!model.config.tied_head);
  CHECK(logits_error(model, ids, gpt2_logits(file, ids)) < kSingle);
}

TEST_CASE("a GPT-2 file that does not fit: the tensor, both shapes and the repair") {
  const TemporaryFolder folder;
  const std::string path = folder.file("model.safetensors");
  const auto fault = [&](auto change, int64_t heads = kH) {
    SafeTensors file = gpt2_file("");
    change(file.tensors);
    save_safetensors(path, file);
    return fault_of(path, [&] { load_gpt2(path, heads); });
  };
  using Tensors = std::map<std::string, Tensor>;
  CHECK(fault([](Tensors&) {}) == "");
  CHECK(fault([](Tensors&) {}, 0) ==
        "its width 12 is no multiple of 64, the size of a head in GPT-2: give the number of heads");
  CHECK(fault([](Tensors&) {}, 5) ==
        "its shapes are those of no GPT-2: GPT config: n_embd must be a multiple of n_head; got "
        "n_embd 12, n_head 5");
  CHECK(fault([](Tensors& x) { x.erase("wte.weight"); }) ==
        "has no matrix wte.weight: it is no GPT-2; give the model.safetensors of one");
  CHECK(fault([](Tensors& x) { x["wpe.weight"] = full({3}, 0); }) ==
        "has no matrix wpe.weight: it is no GPT-2; give the model.safetensors of one");
  CHECK(fault([](Tensors& x) { x.erase("h.1.mlp.c_fc.bias"); }) ==
        "has no h.1.mlp.c_fc.bias, which a GPT-2 of 2 layers has; save the whole model again");
  CHECK(fault([](Tensors& x) {
          x["h.0.attn.c_attn.weight"] = full({36, 12}, 0);
        }) ==
        "h.0.attn.c_attn.weight: wanted shape (12, 36); got (36, 12): it is nn.Linear's (out, in), "
        "not Conv1D's (in, out); transpose it");
  CHECK(fault([](Tensors& x) {
          x["h.0.mlp.c_proj.weight"] = full({48, 11}, 0);
        }) ==
        "h.0.mlp.c_proj.weight: wanted shape (48, 12); got (48, 11); it does not belong to this "
        "model");
  CHECK(fault([](Tensors& x) { x["ln_f.bias"] = full({}, 0); }) ==
        "ln_f.bias: wanted shape (12); got (); it does not belong to this model");
  CHECK(fault([](Tensors& x) { x["h.0.attn.rotary"] = full({2}, 0); }) ==
        "h.0.attn.rotary belongs to no GPT-2; remove it");
  CHECK(fault([](Tensors& x) { x["transformer.ln_f.bias"] = full({12}, 0); }) ==
        "has ln_f.bias twice, with and without \"transformer.\"; remove one");
  CHECK(fault([](Tensors& x) { x["ln_f.bias"] = full({12}, 0, kInt64); }) ==
        "ln_f.bias is int64; wanted floating-point numbers: save it as float32");
  CHECK(fault([](Tensors& x) {
          for (const char* name : {"h.0.ln_1.weight", "h.1.ln_1.weight"}) x.erase(name);
        }) ==
        "its shapes are those of no GPT-2: GPT config: n_layer must be from 1 to 1000; got 0");
}
