#include "tutorials/demos/pretrained.h"

#include <array>
#include <filesystem>
#include <stdexcept>

#include "tensor/files.h"
#include "tensor/safetensors.h"

namespace pellucid::demos {
namespace {

using nn::Block;
using nn::GPT;
using nn::GPTConfig;
using nn::StateDict;

template <class... Parts>
[[noreturn]] void fail_file(const std::string& path, const Parts&... parts) {
  std::ostringstream text;
  text << path << ": ";
  (text << ... << parts);
  throw std::runtime_error(text.str());
}

// ---- llama2.c ----

constexpr int32_t kNewerMagic = 0x616b3432;  // "ak42": versions 1 and 2 begin with it

GPTConfig read_header(InputFile& file) {
  std::array<int32_t, 7> sizes{};
  if (file.size() < sizeof sizes)
    file.fail("has " + std::to_string(file.size()) +
              " bytes, fewer than the header of a llama2.c model; get it again");
  file.read(sizes.data(), sizeof sizes);
  const auto [dim, hidden, layers, heads, kv_heads, vocabulary, context] = sizes;
  if (dim == kNewerMagic)
    file.fail("is a llama2.c model of version " + std::to_string(hidden) +
              "; only version 0 is read: export it with --version 0");
  GPTConfig c;
  c.n_embd = dim, c.n_hidden = hidden, c.n_layer = layers, c.n_head = heads;
  c.n_kv_head = kv_heads, c.vocab_size = std::abs(int64_t{vocabulary}), c.block_size = context;
  c.tied_head = vocabulary > 0;
  c.norm = "rms_norm", c.position = "rope", c.rope_layout = "adjacent", c.mlp = "swiglu";
  c.attention = "sa", c.bias = false;
  try {
    CHECK_ARG(kv_heads > 0 && hidden > 0, "key heads and hidden must be positive; got ", kv_heads,
              " and ", hidden);
    c.validate();
  } catch (const std::invalid_argument& error) {
    file.fail(std::string("is no llama2.c model of version 0: by its header, ") + error.what());
  }
  return c;
}

void check_size(const InputFile& file, const GPTConfig& c) {
  const int64_t C = c.n_embd, D = C / c.n_head;
  const int64_t attention = C * (c.n_head + 2 * c.kv_heads()) * D + C * C;
  const int64_t layer = 2 * C + attention + 3 * C * c.n_hidden;
  const int64_t numbers =
      (c.tied_head ? 1 : 2) * c.vocab_size * C + c.n_layer * layer + C + c.block_size * (D / 2) * 2;
  const uint64_t wanted = 7 * sizeof(int32_t) + sizeof(float) * static_cast<uint64_t>(numbers);
  if (file.size() == wanted) return;
  std::ostringstream fault;
  fault << "has " << file.size() << " bytes, but a llama2.c model with its header's sizes (dim "
        << C << ", hidden " << c.n_hidden << ", layers " << c.n_layer << ", heads " << c.n_head
        << ", key heads " << c.n_kv_head << ", vocabulary " << c.vocab_size << ", context "
        << c.block_size << ") has " << wanted << "; get it again";
  file.fail(fault.str());
}

// ---- GPT-2 ----

// By our names: without the prefix, and without the buffers that hold the causal mask.
StateDict gpt2_tensors(const std::string& path) {
  const std::string prefix = "transformer.";
  StateDict state;
  const SafeTensors file = [&] {
    try {
      return load_safetensors(path);
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(std::string(error.what()) + "; get it again");
    }
  }();
  for (const auto& [key, x] : file.tensors) {
    const std::string name = key.starts_with(prefix) ? key.substr(prefix.size()) : key;
    if (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias")) continue;
    if (!state.emplace(name, x).second)
      fail_file(path, "has ", name, " twice, with and without \"", prefix, "\"; remove one");
    if (!is_floating(x.dtype()))
      fail_file(path, key, " is ", pellucid::name(x.dtype()),
                "; wanted floating-point numbers: save it as float32");
  }
  return state;
}

const Tensor& matrix(const std::string& path, const StateDict& state, const char* name) {
  const auto found = state.find(name);
  if (found == state.end() || found->second.dim() != 2)
    fail_file(path, "has no matrix ", name, ": it is no GPT-2; give the model.safetensors of one");
  return found->second;
}

bool same_values(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && any(not_equal(a, b)).item() == 0;
}

GPTConfig gpt2_config(const std::string& path, const StateDict& state, int64_t n_head) {
  const Tensor &wte = matrix(path, state, "wte.weight"), &wpe = matrix(path, state, "wpe.weight");
  GPTConfig c;
  c.vocab_size = wte.size(0), c.n_embd = wte.size(1), c.block_size = wpe.size(0);
  c.n_layer = 0;
  while (state.contains("h." + std::to_string(c.n_layer) + ".ln_1.weight")) ++c.n_layer;
  const auto head = state.find("lm_head.weight");
  c.tied_head = head == state.end() || same_values(head->second, wte);
  c.mlp = "gelu_tanh", c.attention = "sa";
  if (n_head == 0 && c.n_embd % 64 != 0)
    fail_file(path, "its width ", c.n_embd,
              " is no multiple of 64, the size of a head in GPT-2: give the number of heads");
  c.n_head = n_head == 0 ? c.n_embd / 64 : n_head;
  try {
    c.validate();
  } catch (const std::invalid_argument& error) {
    fail_file(path, "its shapes are those of no GPT-2: ", error.what());
  }
  return c;
}

bool is_conv1d(const std::string& name) {
  return name.ends_with("c_attn.weight") || name.ends_with("c_proj.weight") ||
         name.ends_with("c_fc.weight");
}

}  // namespace

GPT load_llama2c(const std::string& path) {
  InputFile file(path);
  const GPTConfig c = read_header(file);
  check_size(file, c);

  GPT model(c);
  NoGradGuard no_grad;
  const auto read = [&](const Tensor& x) {
    file.read(x.data(), static_cast<std::size_t>(x.numel()) * sizeof(float));
  };
  const auto each_layer = [&](const auto& tensor_of) {
    for (const Block& block : model.h) read(tensor_of(block));
  };
  const int64_t D = c.n_embd / c.n_head;
  const auto rows = [&](int64_t first, int64_t heads) {  // of c_attn
    each_layer([&](const Block& b) {
      return slice(b.attn.c_attn.weight, 0, first * D, (first + heads) * D);  // (heads D, C)
    });
  };
  read(model.wte.weight);
  each_layer([](const Block& b) { return b.ln_1.weight; });
  rows(0, c.n_head), rows(c.n_head, c.n_kv_head), rows(c.n_head + c.n_kv_head, c.n_kv_head);
  each_layer([](const Block& b) { return b.attn.c_proj.weight; });
  each_layer([](const Block& b) { return b.ln_2.weight; });
  each_layer([](const Block& b) { return b.mlp.c_gate.weight; });
  each_layer([](const Block& b) { return b.mlp.c_proj.weight; });
  each_layer([](const Block& b) { return b.mlp.c_fc.weight; });
  read(model.ln_f.weight);
  for (int i = 0; i < 2; ++i) read(empty({c.block_size, D / 2}));  // RoPE's tables
  if (!c.tied_head) read(model.lm_head.weight);
  return model;
}

GPT load_gpt2(const std::string& path, int64_t n_head) {
  StateDict state = gpt2_tensors(path);
  const GPTConfig c = gpt2_config(path, state, n_head);
  if (c.tied_head) state.erase("lm_head.weight");

  GPT model(c);
  NoGradGuard no_grad;
  for (const auto& [name, ours] : model.state_dict()) {
    const auto found = state.find(name);
    if (found == state.end())
      fail_file(path, "has no ", name, ", which a GPT-2 of ", c.n_layer,
                " layers has; save the whole model again");
    Tensor& x = found->second;
    const Shape stored = x.shape();
    if (is_conv1d(name) && x.dim() == 2) x = transpose(x, 0, 1);  // (out, in)
    if (x.shape() != ours.shape()) {
      const bool turned = is_conv1d(name) && stored == ours.shape();
      Shape wanted = ours.shape();
      if (is_conv1d(name)) std::swap(wanted[0], wanted[1]);
      fail_file(path, name, ": wanted shape ", wanted, "; got ", stored,
                turned ? ": it is nn.Linear's (out, in), not Conv1D's (in, out); transpose it"
                       : "; it does not belong to this model");
    }
    x = astype(x, kFloat32);
  }
  for (const auto& [name, x] : state)
    if (!model.state_dict().contains(name))
      fail_file(path, name, " belongs to no GPT-2; remove it");
  for (const auto& [name, ours] : model.state_dict()) copy_(ours, state.at(name));
  return model;
}

nn::TrainedModel load_any_model(const std::string& path, const std::string& tokenizer) {
  if (!std::filesystem::is_regular_file(path)) {
    CHECK_ARG(tokenizer.empty(), path, ": a run has its own tokenizer; leave --tokenizer out");
    return nn::load_model(path);
  }
  CHECK_ARG(!tokenizer.empty(), path,
            ": is a file: give the folder of a run, or the file's tokenizer by --tokenizer FILE");
  nn::TrainedModel trained{
      .config = {},
      .data = {},
      .tokenizer = nn::Tokenizer::load(tokenizer),
      .model = path.ends_with(".safetensors") ? load_gpt2(path) : load_llama2c(path)};
  for (const auto& [name, x] : trained.model.state_dict())
    if (all(isfinite(x)).item() == 0)
      fail_file(path, name, " holds a number that is not finite; get it again");
  trained.config.model = trained.model.config;
  trained.data.documents = "files";  // a text begins after the end-of-text token
  CHECK_ARG(trained.tokenizer.vocab_size() == trained.config.model.vocab_size, tokenizer, ": has ",
            trained.tokenizer.vocab_size(), " tokens, but the model ", path, " has ",
            trained.config.model.vocab_size, "; give the tokenizer that it was trained with");
  trained.model.eval();
  return trained;
}

}  // namespace pellucid::demos
