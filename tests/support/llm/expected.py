#!/usr/bin/env python3
"""Computes what the models of tiny_models.py answer, with PyTorch and transformers (5.x).

    expected.py >expected.json

Not part of the tests, which read the file: run it by hand after a change of tiny_models.py.
"""

import json
import math
import sys

import torch
import transformers

import tiny_models

PROMPT = [(7 * i * i + 3 * i + 1) % tiny_models.VOCABULARY for i in range(90)]
GENERATED = 12
# Between the best score and the next, since others round differently: the answer ends before a
# smaller margin.
MARGIN_MIN = 0.01
CLASSES = {
    "mistral": "Mistral",
    "mixtral": "Mixtral",
    "qwen2": "Qwen2",
    "qwen3": "Qwen3",
    "qwen3moe": "Qwen3Moe",
}
NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "ffn_gate_inp": "mlp.gate",
    "ffn_down_exps": "mlp.experts.down_proj",
}


def rope_parameters(shape):
    keys = shape["files"][0]
    kind = keys.get("rope.scaling.type", "llama3" if "divisors" in shape else "default")
    out = {"rope_type": kind, "rope_theta": 10000.0}
    if kind == "llama3":
        scaling = shape["divisors"]
        out["factor"], out["original_max_position_embeddings"] = scaling["factor"], scaling["context"]
        out["low_freq_factor"], out["high_freq_factor"] = scaling["low"], scaling["high"]
    elif kind != "default":
        out["factor"] = keys["rope.scaling.factor"]
    if kind == "yarn":
        out["original_max_position_embeddings"] = keys["rope.scaling.original_context_length"]
        out["beta_fast"] = keys.get("rope.scaling.yarn_beta_fast", 32)
        out["beta_slow"] = keys.get("rope.scaling.yarn_beta_slow", 1)
        own = 1 + 0.1 * math.log(out["factor"])  # GGUF has a factor beside it
        out["attention_factor"] = own * keys.get("rope.scaling.attn_factor", 1.0)
    return out


def config_of(name):
    shape = tiny_models.shape_of(name)
    more = {}
    if "experts" in shape:
        more["num_experts_per_tok"] = shape["used"]
        more["num_local_experts" if name == "mixtral" else "num_experts"] = shape["experts"]
    if name == "qwen3moe":
        more.update(moe_intermediate_size=shape["ff"], norm_topk_prob=True)
    if name == "mistral":
        more["sliding_window"] = shape["files"][0]["attention.sliding_window"]
    return getattr(transformers, CLASSES.get(name, "Llama") + "Config")(
        vocab_size=tiny_models.VOCABULARY,
        hidden_size=shape["dim"],
        intermediate_size=shape["ff"],
        num_hidden_layers=tiny_models.LAYERS,
        num_attention_heads=shape["heads"],
        num_key_value_heads=shape["kv_heads"],
        head_dim=shape["head"],
        max_position_embeddings=256,
        rms_norm_eps=1e-5,
        rope_parameters=rope_parameters(shape),
        tie_word_embeddings=False,
        attn_implementation="eager",
        experts_implementation="eager",
        **more,
    )


def weights_of(name):
    """The file's tensors under the names, and in the order of rows, of transformers."""
    shape = tiny_models.shape_of(name)
    state = {}
    for tensor, (size, values) in tiny_models.tensors_of(name).items():
        value = torch.tensor(values.tolist(), dtype=torch.float64).reshape(size)
        *block, part, kind = tensor.split(".")
        if part in ("attn_q", "attn_k") and shape["arch"] == "llama":
            # Files of this family have the two elements of a pair side by side.
            pairs = value.reshape(-1, shape["head"] // 2, 2, *size[1:])
            value = pairs.swapaxes(1, 2).reshape(size)
        prefix = f"model.layers.{block[1]}." if block else ""
        if part.endswith("_exps"):
            state[f"{prefix}{part}"] = value
        elif part != "rope_freqs":
            state[f"{prefix}{NAMES[part]}.{kind}"] = value
    for layer in range(tiny_models.LAYERS if "experts" in shape else 0):
        prefix = f"model.layers.{layer}."
        gate, up, down = (state.pop(f"{prefix}ffn_{part}_exps") for part in ("gate", "up", "down"))
        state[f"{prefix}mlp.experts.gate_up_proj"] = torch.cat((gate, up), dim=1)
        state[f"{prefix}mlp.experts.down_proj"] = down
    return state


def bytes_per_token(name):
    """Bytes of the weights that one token reads."""
    shape = tiny_models.shape_of(name)
    total = 0
    for tensor, (size, _) in tiny_models.tensors_of(name).items():
        if tensor in ("token_embd.weight", "rope_freqs.weight"):
            continue
        share = shape["used"] / shape["experts"] if "_exps" in tensor else 1
        total += 4 * math.prod(size) * share
    return int(total)


def answer(name):
    config = config_of(name)
    model = getattr(transformers, CLASSES.get(name, "Llama") + "ForCausalLM")(config).double()
    model.load_state_dict(weights_of(name))
    ids = list(PROMPT)
    first = None
    with torch.no_grad():
        for _ in range(GENERATED):
            logits = model(torch.tensor([ids]), use_cache=False).logits[0, -1]
            first = logits if first is None else first
            best, second = torch.topk(logits, 2).values.tolist()
            if best - second < MARGIN_MIN:
                break
            ids.append(int(logits.argmax()))
    if len(ids) < len(PROMPT) + 4:
        sys.exit(f"{name}: another seed is needed, token {len(ids)} might be another")
    return {
        "files": [file for file, _ in tiny_models.files_of(name)],
        "bytes_per_token": bytes_per_token(name),
        "logits": [round(logit, 5) for logit in first.tolist()],
        "ids": ids[len(PROMPT) :],
    }


def main():
    models = [answer(name) for name in tiny_models.MODELS]
    lines = ",\n".join(json.dumps(model) for model in models)
    print(f'{{"prompt": {PROMPT},\n"models": [\n{lines}\n]}}')


if __name__ == "__main__":
    main()
