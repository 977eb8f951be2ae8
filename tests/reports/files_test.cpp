// Known faults of files, beyond those of tests/tensor/safetensors_test.cpp: tied weights.
#include "nn/optim.h"
#include "nn/tiny_gpt.h"
#include "reports.h"
#include "tensor/file_helpers.h"
#include "tensor/safetensors.h"

using namespace pellucid;
using namespace pellucid::nn;

TEST_CASE(
    "a tied head is stored once, tied again after loading, listed once and stepped once "
    "(safetensors/safetensors#98, safetensors/safetensors#304)") {
  const TemporaryFolder folder;
  for (const auto& [key, config] : tiny_configs()) {
    CAPTURE(key);
    GPT model = tiny_gpt(config), other = tiny_gpt(config, 2);
    const bool tied = config.tied_head;
    int heads = 0, tables = 0;
    for (const auto& [name, x] : model.named_parameters()) {
      heads += name == "lm_head.weight";
      tables += name == "wte.weight";
    }
    CHECK(heads == (tied ? 0 : 1));
    CHECK(tables == 1);

    // The file holds each element once, and loading leaves both names at one tensor.
    const std::string path = folder.file("model.safetensors");
    save_safetensors(path, {model.state_dict(), {}});
    const SafeTensors file = load_safetensors(path);
    CHECK(file.tensors.contains("lm_head.weight") == !tied);
    int64_t elements = 0;
    for (const auto& [name, x] : file.tensors) elements += x.numel();
    CHECK(elements == model.num_parameters());
    other.load_state_dict(file.tensors);
    CHECK((other.lm_head.weight.impl() == other.wte.weight.impl()) == tied);
    const Tensor ids = random_ids(2, config.block_size, config.vocab_size, 1);
    CHECK(same_bits(other.forward(ids), model.forward(ids)));

    // One step of AdamW moves it as any other parameter: once, by the sum of both uses' gradients.
    AdamW optimizer({{model.named_parameters(), 0.1}});
    CHECK(optimizer.state_dict().contains("wte.weight.exp_avg"));
    CHECK(optimizer.state_dict().contains("lm_head.weight.exp_avg") == !tied);
    model.loss(ids, ids).backward();
    const Tensor w = model.wte.weight.detach() * 1.0, g = model.wte.weight.grad();
    const Tensor m = zeros_like(w), v = zeros_like(w);
    optimizer.step(0.01);
    adamw_(w, g, m, v, {.lr = 0.01, .weight_decay = 0.1, .step = 1});
    CHECK(same_bits(model.wte.weight, w));
    CHECK(same_bits(model.lm_head.weight, tied ? w : model.lm_head.weight));
    // The tied gradient is the sum of those that an untied model with the same numbers has.
    if (!tied) continue;
    GPTConfig split = config;
    split.tied_head = false;
    GPT untied = tiny_gpt(split);
    StateDict state = other.state_dict();
    state["lm_head.weight"] = other.wte.weight.detach() * 1.0;
    untied.load_state_dict(state);
    untied.loss(ids, ids).backward();
    const Tensor both = untied.wte.weight.grad() + untied.lm_head.weight.grad();
    const Values sum_of_two = both.to_vector(), one = g.to_vector();
    const Values a = untied.wte.weight.grad().to_vector(),
                 b = untied.lm_head.weight.grad().to_vector();
    for (std::size_t i = 0; i < one.size(); ++i)  // the same two numbers, added
      CHECK(std::abs(one[i] - sum_of_two[i]) <= 2 * 0x1p-53 * (std::abs(a[i]) + std::abs(b[i])));
  }
}
