// Files of others' models: the logits of a llama2.c model and of a GPT-2 against forward passes
// written here with nothing but double and std::vector, the text and losses of a real model, and
// everything that can be wrong with a file.
#include "tutorials/demos/pretrained.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "nn/generate.h"
#include "nn/tokenizer.h"
#include "program.h"
#include "tensor/safetensors.h"

using namespace pellucid;
using namespace pellucid::nn;
using demos::load_gpt2;
using demos::load_llama2c;

namespace {

using Row = std::vector<double>;

// y_i = sum_k w[i * step_i + k * step_k] x_k for n rows.
Row product(const double* w, const Row& x, std::size_t n, std::size_t step_i, std::size_t step_k) {
  Row y(n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < x.size(); ++k) y[i] += w[i * step_i + k * step_k] * x[k];
  return y;
}
Row rows_times(const double* w, const Row& x, std::size_t n) {  // w (n, K)
  return product(w, x, n, x.size(), 1);
}
void add(Row& x, const Row& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

// One head of one position: softmax(q.k / sqrt(D)) v over positions 0 .. t.
void attend(double* y, const double* q, const std::vector<Row>& keys,
            const std::vector<Row>& values, std::size_t at, std::size_t D) {
  std::vector<double> p;
  double largest = -INFINITY, total = 0;
  for (const Row& k : keys) {
    double s = 0;
    for (std::size_t d = 0; d < D; ++d) s += q[d] * k[at + d];
    p.push_back(s / std::sqrt(double(D)));
    largest = std::max(largest, p.back());
  }
  for (double& s : p) total += s = std::exp(s - largest);
  for (std::size_t j = 0; j < keys.size(); ++j)
    for (std::size_t d = 0; d < D; ++d) y[d] += p[j] / total * values[j][at + d];
}

struct LlamaSizes {
  int32_t C, hidden, L, H, Hkv, V, T;  // V below 0: an untied head
};

// Logits at every position, from the file's bytes.
std::vector<Row> llama_logits(const std::string& bytes, const std::vector<int64_t>& ids) {
  LlamaSizes s{};
  std::memcpy(&s, bytes.data(), sizeof s);
  std::vector<float> numbers((bytes.size() - sizeof s) / sizeof(float));
  std::memcpy(numbers.data(), bytes.data() + sizeof s, numbers.size() * sizeof(float));
  const Row all(numbers.begin(), numbers.end());
  const auto C = std::size_t(s.C), F = std::size_t(s.hidden), L = std::size_t(s.L), D = C / s.H;
  const std::size_t V = std::size_t(std::abs(s.V)), K = s.Hkv * D;
  const double* at = all.data();
  const auto take = [&](std::size_t n) { return std::exchange(at, at + n); };
  const double *wte = take(V * C), *norm1 = take(L * C), *wq = take(L * C * C),
               *wk = take(L * K * C), *wv = take(L * K * C), *wo = take(L * C * C),
               *norm2 = take(L * C), *w1 = take(L * F * C), *w2 = take(L * C * F),
               *w3 = take(L * F * C), *norm = take(C);
  take(s.T * (D / 2) * 2);
  const double* head = s.V < 0 ? take(V * C) : wte;
  CHECK(at == all.data() + all.size());

  const auto rms = [](const Row& x, const double* w) {
    double square = 0;
    for (const double v : x) square += v * v;
    Row y(x);
    for (std::size_t i = 0; i < x.size(); ++i)
      y[i] = x[i] / std::sqrt(square / double(x.size()) + 1e-5) * w[i];
    return y;
  };
  const auto turn = [&](Row& x, std::size_t t) {
    for (std::size_t i = 0; i < x.size(); i += 2) {
      const double angle = double(t) * std::pow(10000.0, -double(i % D) / double(D));
      const double a = x[i], b = x[i + 1];
      x[i] = a * std::cos(angle) - b * std::sin(angle);
      x[i + 1] = a * std::sin(angle) + b * std::cos(angle);
    }
  };
  std::vector<std::vector<Row>> keys(L), values(L);
  std::vector<Row> logits;
  for (std::size_t t = 0; t < ids.size(); ++t) {
    Row x(wte + ids[t] * C, wte + (ids[t] + 1) * C);
    for (std::size_t l = 0; l < L; ++l) {
      Row h = rms(x, norm1 + l * C), q = rows_times(wq + l * C * C, h, C),
          k = rows_times(wk + l * K * C, h, K), y(C);
      turn(q, t), turn(k, t);
      keys[l].push_back(k), values[l].push_back(rows_times(wv + l * K * C, h, K));
      for (std::size_t i = 0; i < std::size_t(s.H); ++i)
        attend(&y[i * D], &q[i * D], keys[l], values[l], i / (s.H / s.Hkv) * D, D);
      add(x, rows_times(wo + l * C * C, y, C));
      h = rms(x, norm2 + l * C);
      Row gate = rows_times(w1 + l * F * C, h, F), up = rows_times(w3 + l * F * C, h, F);
      for (std::size_t i = 0; i < F; ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
      add(x, rows_times(w2 + l * C * F, gate, C));
    }
    logits.push_back(rows_times(head, rms(x, norm), V));
  }
  return logits;
}

// A model of random numbers in llama2.c's layout.
std::string llama_file(const LlamaSizes& s, int64_t more = 0) {
  const int64_t D = s.C / s.H, K = s.Hkv * D, V = std::abs(s.V);
  const int64_t n = V * s.C * (s.V < 0 ? 2 : 1) + s.C + s.T * (D / 2) * 2 +
                    s.L * (2 * s.C + 2 * s.C * s.C + 2 * K * s.C + 3 * s.C * s.hidden) + more;
  std::string bytes(reinterpret_cast<const char*>(&s), sizeof s);
  Generator rng{.seed = 5};
  for (const double x : (randn({n}, rng) * 0.7).to_vector()) {
    const auto number = static_cast<float>(x);
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  return bytes;
}

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
