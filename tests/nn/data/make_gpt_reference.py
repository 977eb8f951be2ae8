# Writes gpt_reference.safetensors beside this file, which tests/nn/gpt_reference_test.cpp reads:
# logits, loss, gradients and the losses of ten AdamW steps of three small GPTs, computed by PyTorch
# in float64, and how far two honest float32 runs of PyTorch are from them.
#
#   pip install torch "numpy<2" safetensors && python make_gpt_reference.py
#
# Nothing here is imported by the library or its tests; the file was made with torch 1.13.1.
import os
import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import save_file

torch.set_num_threads(1)
B, T, V, C, L, H = 2, 33, 61, 48, 2, 4
D = C // H
# Which elements are written, of a gradient and of the logits.
EVERY, EVERY_LOGIT = {"sa": 7, "xsa": 7, "llama": 97}, {"sa": 1, "xsa": 1, "llama": 13}
HIDDEN = 20  # of SwiGLU


def numbers(name, n):
    """Twelve-bit numbers in [-1/2, 1/2), exact in float32, from a generator seeded by the name."""
    x = 0xCBF29CE484222325
    for c in name.encode():
        x = ((x ^ c) * 0x100000001B3) % 2**64
    out = np.empty(n)
    for i in range(n):
        x = (x * 6364136223846793005 + 1442695040888963407) % 2**64
        out[i] = (x >> 52) / 4096 - 0.5
    return out


def shapes(case):
    kv = H if case == "sa" else 2
    s = {"wte.weight": (V, C)}
    if case == "sa":
        s["wpe.weight"] = (T, C)
    elif case == "xsa":
        s["lm_head.weight"] = (V, C)
    norms = ["ln_f"]
    for i in range(L):
        h = f"h.{i}."
        hidden = HIDDEN if case == "llama" else 4 * C
        s |= {h + "attn.c_attn.weight": ((H + 2 * kv) * D, C), h + "attn.c_proj.weight": (C, C),
              h + "mlp.c_fc.weight": (hidden, C), h + "mlp.c_proj.weight": (C, hidden)}
        norms += [h + "ln_1", h + "ln_2"]
        if case == "xsa":
            s[h + "attn.gate"] = (H,)
        if case == "llama":
            s |= {h + "mlp.c_gate.weight": (hidden, C), h + "attn.sink": (H,),
                  h + "attn.q_norm.weight": (D,), h + "attn.k_norm.weight": (D,)}
    s |= {n + ".weight": (C,) for n in norms}
    if case == "sa":
        s |= {n.replace(".weight", ".bias"): d[:1] for n, d in s.items() if n[:1] in "hl"}
    return s


def make_parameters(case, dtype):
    p = {}
    for name, shape in shapes(case).items():
        x = numbers(name, int(np.prod(shape))).reshape(shape) / 4
        if ("ln_" in name or "_norm" in name) and name.endswith("weight"):
            x = x + 1
        p[name] = torch.tensor(x, dtype=dtype, requires_grad=True)
    return p


def flipped(x, flip, dims):
    return x.flip(dims) if flip else x


def forward(p, ids, case, flip):
    """flip reverses the order of every sum over channels and keys: other float32 roundings."""
    def linear(x, name):
        return F.linear(flipped(x, flip, [-1]), flipped(p[name + ".weight"], flip, [-1]),
                        p.get(name + ".bias"))

    def norm(x, name):
        w = p[name + ".weight"]
        x = flipped(x, flip, [-1])
        if case == "sa":
            y = F.layer_norm(x, (C,), None, None, 1e-5)
            return flipped(y, flip, [-1]) * w + p[name + ".bias"]
        return flipped(x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5), flip, [-1]) * w

    def rope(x):  # (B, heads, T, D): pairs (i, i + D/2), or (2i, 2i + 1)
        angle = torch.arange(T, dtype=torch.float64)[:, None] * 10000.0 ** (
            -2 * torch.arange(D // 2, dtype=torch.float64) / D)
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        if case == "llama":
            a, b = x[..., ::2], x[..., 1::2]
            return torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)
        a, b = x[..., :D // 2], x[..., D // 2:]
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def attention(x, h):
        qkv = linear(x, h + "attn.c_attn")
        kv = (qkv.shape[-1] // D - H) // 2
        q, k, v = qkv.split([H * D, kv * D, kv * D], -1)
        q, k, v = (t.view(B, T, -1, D).transpose(1, 2) for t in (q, k, v))
        if case == "llama":
            q, k = norm(q, h + "attn.q_norm"), norm(k, h + "attn.k_norm")
        if case != "sa":
            q, k = rope(q), rope(k)
        k, v = (t.repeat_interleave(H // kv, 1) for t in (k, v))
        s = q @ k.transpose(-1, -2) / D**0.5
        s = s.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), float("-inf"))
        s = flipped(s, flip, [-1])
        if case == "llama":  # the sink is one more key, whose value is 0
            sink = p[h + "attn.sink"][:, None, None].expand(B, H, T, 1)
            a = torch.cat([s, sink], -1).softmax(-1)[..., :-1]
        else:
            a = s.softmax(-1)
        y = a @ flipped(v, flip, [-2])
        if case == "xsa" or (case == "llama" and h == "h.1."):  # the paper's code, with a gate
            vn = F.normalize(v, dim=-1)
            gate = torch.tanh(p[h + "attn.gate"])[:, None, None] if case == "xsa" else 1
            y = y - gate * (y * vn).sum(-1, keepdim=True) * vn
        return linear(y.transpose(1, 2).reshape(B, T, C), h + "attn.c_proj")

    x = p["wte.weight"][ids]
    if case == "sa":
        x = x + p["wpe.weight"]
    for i in range(L):
        h = f"h.{i}."
        x = x + attention(norm(x, h + "ln_1"), h)
        y = norm(x, h + "ln_2")
        u = linear(y, h + "mlp.c_fc")
        if case == "llama":
            u = F.silu(linear(y, h + "mlp.c_gate")) * u
        else:
            u = F.gelu(u, approximate="tanh" if case == "sa" else "none")
        x = x + linear(u, h + "mlp.c_proj")
    head = p["lm_head.weight"] if case == "xsa" else p["wte.weight"]
    return F.linear(flipped(norm(x, "ln_f"), flip, [-1]), flipped(head, flip, [-1]))


def run(case, dtype, ids, targets, flip):
    p = make_parameters(case, dtype)
    if flip:
        ids, targets = ids.flip(0), targets.flip(0)

    def loss():
        return F.cross_entropy(forward(p, ids, case, flip).view(-1, V), targets.reshape(-1))

    logits = flipped(forward(p, ids, case, flip), flip, [0]).detach().double().numpy()
    loss().backward()
    grads = {n: x.grad.double().numpy().copy() for n, x in p.items()}

    # Ten steps: decay on matrices only; the first case clips at 0.5, exactly.
    optimizer = torch.optim.AdamW(
        [{"params": [x for x in p.values() if x.dim() >= 2], "weight_decay": 0.1},
         {"params": [x for x in p.values() if x.dim() < 2], "weight_decay": 0}],
        lr=1e-3, betas=(0.9, 0.95), eps=1e-8)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        y = loss()
        losses.append(y.item())
        y.backward()
        if case == "sa":
            norm = torch.stack([x.grad.norm() for x in p.values()]).norm()
            for x in p.values():
                x.grad *= min(1.0, 0.5 / norm.item())
        optimizer.step()
    losses.append(loss().item())
    return logits, grads, np.array(losses)


out = {}
for case in EVERY:
    tokens = np.floor((numbers(case + ".tokens", B * (T + 1)) + 0.5) * V).astype(np.int64)
    tokens = torch.tensor(tokens.reshape(B, T + 1))
    ids, targets = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    logits, grads, losses = run(case, torch.float64, ids, targets, False)
    low = [run(case, torch.float32, ids, targets, flip) for flip in (False, True)]

    def error(pick):
        return np.array(max(np.abs(pick(r) - pick((logits, grads, losses))).max() for r in low))

    out[f"{case}.ids"], out[f"{case}.targets"] = ids.numpy(), targets.numpy()
    out[f"{case}.logits"] = logits.reshape(-1)[::EVERY_LOGIT[case]].copy()
    out[f"{case}.losses"] = losses
    out[f"{case}.logits.float32_error"] = error(lambda r: r[0])
    out[f"{case}.losses.float32_error"] = error(lambda r: r[2])
    for name, g in grads.items():
        out[f"{case}.grad.{name}"] = g.reshape(-1)[::EVERY[case]].copy()
        out[f"{case}.dot.{name}"] = np.array(g.reshape(-1) @ numbers("dot", g.size))
        out[f"{case}.grad.{name}.float32_error"] = error(lambda r: r[1][name])
    print(case, "losses", losses, "float32 errors", out[f"{case}.logits.float32_error"],
          out[f"{case}.losses.float32_error"])
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpt_reference.safetensors")
save_file({k: np.ascontiguousarray(v) for k, v in out.items()}, path)
print(path, os.path.getsize(path), "bytes")
