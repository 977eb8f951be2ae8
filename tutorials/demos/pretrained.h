// Models that others trained, as GPTs of ours. The functions throw std::runtime_error naming the
// file, what does not fit, and the likely repair.
#pragma once
#include <string>

#include "nn/checkpoint.h"

namespace pellucid::demos {

// A file of llama2.c's version 0 (https://github.com/karpathy/llama2.c, its legacy_export): 7 int32
//
//   dim C, hidden, layers L, heads H, key heads Hkv, vocabulary V (below 0: untied head), context T
//
// then float32 tensors, D = C / H:
//
//   wte (V, C), ln_1 (L, C), q (L, H D, C), k and v (L, Hkv D, C), c_proj (L, C, H D), ln_2 (L, C),
//   c_gate (L, hidden, C), mlp.c_proj (L, C, hidden), c_fc (L, hidden, C), ln_f (C),
//   cosines and sines of RoPE (T, D / 2), which are not used; lm_head (V, C) if untied
nn::GPT load_llama2c(const std::string& path);

// GPT-2 as Hugging Face's safetensors have it, names with or without "transformer.": its matrices
// are Conv1D's (in, out), and turned here. The file does not tell the number of heads; 0: C / 64,
// as in all of GPT-2's sizes.
nn::GPT load_gpt2(const std::string& path, int64_t n_head = 0);

// What the --model of `sample` and `eval` names: a run's folder, or one of these files (GPT-2's
// ends in .safetensors) together with its tokenizer's.
nn::TrainedModel load_any_model(const std::string& path, const std::string& tokenizer);

}  // namespace pellucid::demos
