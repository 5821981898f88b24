#!/usr/bin/env python3
"""Writes tiny models of every architecture with random weights as GGUF files of F32 tensors.

    tiny_models.py FOLDER

The name of a model is the seed of its weights: the same files come out everywhere.  expected.py
computes what these models answer.
"""

import array
import math
import pathlib
import random
import string
import struct
import sys

UINT32, FLOAT32, BOOL, STRING, ARRAY = 4, 6, 7, 8, 9
ALIGNMENT = 32
VOCABULARY = 64
LAYERS = 2

# Each model: its shape, and keys beside those of the shape.  `files` are variants of the keys that
# mean the same.  The keys of scaled rotary embeddings have values that the prompt can tell apart.
SHAPE = {"arch": "llama", "dim": 32, "ff": 48, "heads": 4, "kv_heads": 2, "head": 8, "files": [{}]}
LLAMA3 = {"factor": 8.0, "low": 1.0, "high": 4.0, "context": 64}
MODELS = {
    "llama3": {"head": 16, "divisors": LLAMA3},
    "linear": {
        "files": [
            {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0},
            {"rope.scaling.factor": 4.0},
            {"rope.scale_linear": 4.0},
        ]
    },
    "yarn": {
        "head": 16,
        "files": [
            {
                "rope.scaling.type": "yarn",
                "rope.scaling.factor": 4.0,
                "rope.scaling.original_context_length": 2048,
                "rope.scaling.finetuned": True,
            }
        ],
    },
    "yarn_keys": {
        "head": 16,
        "files": [
            {
                "rope.scaling.type": "yarn",
                "rope.scaling.factor": 8.0,
                "rope.scaling.original_context_length": 2048,
                "rope.scaling.attn_factor": 1.25,
                "rope.scaling.yarn_beta_fast": 8.0,
                "rope.scaling.yarn_beta_slow": 2.0,
            }
        ],
    },
    "mistral": {"files": [{"attention.sliding_window": 24}]},
    "mixtral": {"experts": 4, "used": 2},
    "qwen2": {"arch": "qwen2", "biases": True},
    "qwen3": {"arch": "qwen3", "head": 16, "norms": True},
    "qwen3moe": {"arch": "qwen3moe", "head": 16, "norms": True, "experts": 8, "used": 3, "ff": 24},
}


def shape_of(name):
    return {**SHAPE, **MODELS[name]}


def rope_divisors(shape):
    """What Llama 3 divides the frequency of each pair by, from its wave length."""
    scaling = shape["divisors"]
    divisors = []
    for pair in range(shape["head"] // 2):
        waves = scaling["context"] * 10000.0 ** (-2 * pair / shape["head"]) / (2 * math.pi)
        kept = (waves - scaling["low"]) / (scaling["high"] - scaling["low"])
        kept = min(1.0, max(0.0, kept))
        divisors.append(1 / (kept + (1 - kept) / scaling["factor"]))
    return divisors


def draw(name, tensor, count, middle, spread):
    """Even random numbers with this standard deviation."""
    source = random.Random(f"{name}/{tensor}")
    width = spread * 2 * math.sqrt(3)
    return array.array("f", (middle + width * (source.random() - 0.5) for _ in range(count)))


def tensors_of(name):
    """Pairs of (shape, values) by name; the fastest dimension comes last."""
    shape = shape_of(name)
    dim, ff, query = shape["dim"], shape["ff"], shape["heads"] * shape["head"]
    kv = shape["kv_heads"] * shape["head"]
    shapes = {"token_embd.weight": (VOCABULARY, dim), "output.weight": (VOCABULARY, dim)}
    shapes["output_norm.weight"] = (dim,)
    layer = {
        "attn_norm.weight": (dim,),
        "attn_q.weight": (query, dim),
        "attn_k.weight": (kv, dim),
        "attn_v.weight": (kv, dim),
        "attn_output.weight": (dim, query),
        "ffn_norm.weight": (dim,),
    }
    if shape.get("biases"):
        layer.update({f"attn_{part}.bias": (layer[f"attn_{part}.weight"][0],) for part in "qkv"})
    if shape.get("norms"):
        layer.update({f"attn_{part}_norm.weight": (shape["head"],) for part in "qk"})
    stack, suffix = (), ""
    if "experts" in shape:
        layer["ffn_gate_inp.weight"] = (shape["experts"], dim)
        stack, suffix = (shape["experts"],), "_exps"
    for part, size in (("gate", (ff, dim)), ("up", (ff, dim)), ("down", (dim, ff))):
        layer[f"ffn_{part}{suffix}.weight"] = stack + size
    for number in range(LAYERS):
        shapes.update({f"blk.{number}.{tensor}": size for tensor, size in layer.items()})
    tensors = {}
    for tensor, size in shapes.items():
        norm = tensor.endswith("norm.weight")
        spread = 0.2 if norm else 0.5 if tensor.endswith("bias") else 2 / math.sqrt(size[-1])
        values = draw(name, tensor, math.prod(size), 1.0 if norm else 0.0, spread)
        tensors[tensor] = (size, values)
    if "divisors" in shape:
        tensors["rope_freqs.weight"] = ((shape["head"] // 2,), array.array("f", rope_divisors(shape)))
    return tensors


def keys_of(name, more):
    shape = shape_of(name)
    keys = {
        "context_length": 256,
        "embedding_length": shape["dim"],
        "feed_forward_length": shape["ff"],
        "block_count": LAYERS,
        "attention.head_count": shape["heads"],
        "attention.head_count_kv": shape["kv_heads"],
        "attention.key_length": shape["head"],
        "attention.value_length": shape["head"],
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.dimension_count": shape["head"],
        "rope.freq_base": 10000.0,
    }
    if "experts" in shape:
        keys.update({"expert_count": shape["experts"], "expert_used_count": shape["used"]})
        if shape["arch"] != "llama":
            keys.update({"expert_feed_forward_length": shape["ff"], "feed_forward_length": 1000})
    keys.update(more)
    return {f"{shape['arch']}.{key}": value for key, value in keys.items()}


def text(value):
    return struct.pack("<Q", len(value.encode())) + value.encode()


def value_of(value):
    if isinstance(value, str):
        return struct.pack("<I", STRING) + text(value)
    if isinstance(value, list):
        items = b"".join(value_of(item)[4:] for item in value)
        return struct.pack("<I", ARRAY) + value_of(value[0])[:4] + struct.pack("<Q", len(value)) + items
    if isinstance(value, bool):
        return struct.pack("<I?", BOOL, value)
    if isinstance(value, float):
        return struct.pack("<If", FLOAT32, value)
    return struct.pack("<II", UINT32, value)


def write(path, name, more):
    keys = {"general.architecture": shape_of(name)["arch"], **keys_of(name, more)}
    keys["tokenizer.ggml.model"] = "llama"
    keys["tokenizer.ggml.tokens"] = ["<unk>", "\u2581", *string.ascii_letters, *string.digits]
    keys["tokenizer.ggml.scores"] = [0.0] * VOCABULARY
    tensors = tensors_of(name)
    out = bytearray(struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(keys)))
    for key, value in keys.items():
        out += text(key) + value_of(value)
    data = bytearray()
    for tensor, (size, values) in tensors.items():
        out += text(tensor) + struct.pack(f"<I{len(size)}Q", len(size), *reversed(size))
        out += struct.pack("<IQ", 0, len(data))
        data += values.tobytes()
        data += bytes(-len(data) % ALIGNMENT)
    out += bytes(-len(out) % ALIGNMENT)
    path.write_bytes(out + data)


def files_of(name):
    """Names of the files of a model, with their keys."""
    variants = shape_of(name)["files"]
    for number, more in enumerate(variants):
        yield f"{name}{number if len(variants) > 1 else ''}.gguf", more


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    for name in MODELS:
        for file, more in files_of(name):
            write(pathlib.Path(arguments[0]) / file, name, more)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
