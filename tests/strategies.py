"""Random specs over the whole language, small enough to run, and valid by construction."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

ACTIVATIONS = ["relu", "relu2", "gelu", "gelu_tanh", "quick_gelu", "silu", "tanh", "sigmoid"]
EMBEDDED = ["learned", "sinusoidal"]
COMPARED = ["disentangled", "relative_sinusoidal", "relative_key"]
"""Positions whose vectors are compared with queries or keys, which latent attention does not have."""
ARCHITECTURES = ["encoder", "decoder", "encoder-decoder"]

WIDTHS = [8, 16, 24]
"""Widths of stacks: every number of heads below leaves heads of even width."""

Data = dict[str, Any]


@st.composite
def model_data(draw: st.DrawFn, architectures: list[str] = ARCHITECTURES) -> Data:
    """The plain data of a model spec."""
    architecture = draw(st.sampled_from(architectures))
    d_model = draw(st.sampled_from(WIDTHS))
    data: Data = {"name": "drawn", "architecture": architecture, "d_model": d_model}
    data["vocab_size"] = draw(st.integers(7, 40))
    data["context_length"] = draw(st.sampled_from([8, 32]))
    data["position"] = draw(positions())
    data["embedding"] = draw(embeddings(d_model))
    own_width = data["embedding"].get("width", d_model) != d_model
    for stack in ("encoder", "decoder"):
        if stack in architecture:
            cross = stack == "decoder" and architecture == "encoder-decoder"
            own = {"position": draw(positions())} if draw(st.integers(0, 4)) == 0 else {}
            latent = {**data, **own}["position"]["kind"] not in COMPARED
            data[stack] = {**draw(stacks(cross=cross, decoding=stack == "decoder", latent=latent)), **own}
            if draw(st.integers(0, 4)) == 0:
                data[stack]["context_length"] = draw(st.integers(3, 12))
    if "encoder" in data and not data["encoder"]["causal"]:
        draw_summaries(draw, data["encoder"], data["position"])
    if "encoder" in data and not data["encoder"]["causal"] and draw(st.integers(0, 3)) == 0:
        draw_conformer(draw, data["encoder"]["block"])
    draw_rotated_input(draw, data)
    reads_tokens = architecture == "decoder" or draw(st.integers(0, 3)) > 0
    if not reads_tokens:
        draw_whole_inputs(draw, data)
    causal = architecture != "encoder" or bool(data["encoder"]["causal"])
    tokens_last = reads_tokens or architecture != "encoder"
    data["head"] = draw(heads(causal=causal, own_width=own_width, vocabulary=tokens_last))
    if architecture == "decoder" and data["position"]["kind"] == "alibi":
        data["position"]["precision"] = draw(st.sampled_from(["float32", "bfloat16"]))
    data["initialization"] = draw(
        st.sampled_from([{"kind": "normal"}, {"kind": "xavier_uniform"}, {"kind": "t5"}])
    )
    return data


def draw_summaries(draw: st.DrawFn, encoder: Data, position: Data) -> None:
    """Let some attentions with relative biases see sums of blocks."""
    for block in (encoder["block"], *encoder.get("blocks", {}).values()):
        attention = block["attention"]
        if attention is None or attention["kind"] == "latent":
            continue
        acting = attention.get("position") or encoder.get("position") or position
        if acting["kind"] == "relative_bias" and draw(st.booleans()):
            size = draw(st.sampled_from([1, 2]))
            attention["block_summaries"] = {"size": size, "norm": draw(norms(or_none=False))}


def draw_rotated_input(draw: st.DrawFn, data: Data) -> None:
    """Let rotary positions turn the input of queries and keys, where heads divide it."""
    stacks = [data[name] for name in ("encoder", "decoder") if name in data]
    blocks = [block for stack in stacks for block in (stack["block"], *stack.get("blocks", {}).values())]
    every = [block["attention"] for block in blocks if block["attention"] is not None]
    divided = all(each["kind"] != "latent" and each["head_dim"] is None for each in every)
    if data["position"]["kind"] == "rope" and divided and draw(st.booleans()):
        data["position"]["rotates"] = "input"


def draw_conformer(draw: st.DrawFn, block: Data) -> None:
    """Let a block have a convolution over time and a second feed-forward."""
    if block["kind"] == "parallel":
        del block["norms"]
    block["kind"] = "conformer"
    block["convolution"] = {
        "kernel": draw(st.sampled_from([1, 3, 7])),
        "activation": draw(st.sampled_from(ACTIVATIONS)),
        "norm": draw(st.just({"kind": "batch_norm"}) | norms()),
        "bias": draw(st.booleans()),
        "causal": draw(st.booleans()),
    }


def draw_whole_inputs(draw: st.DrawFn, data: Data) -> None:
    """Let the encoder read images or sounds in place of tokens."""
    encoder: Data = data["encoder"]
    alone = data["architecture"] == "encoder"  # decoders cannot tell vectors made of padding from others
    embedding = draw(
        patches()
        | spectrograms()
        | filtered_waveforms(data["d_model"])
        | (subsampled_spectrograms() if alone else st.nothing())
    )
    if data["architecture"] == "encoder-decoder":
        encoder["embedding"] = embedding
        if embedding["kind"] != "filtered_waveform" and draw(st.booleans()):
            encoder["d_model"] = draw(st.sampled_from(WIDTHS))
    else:
        del data["vocab_size"]
        data["embedding"] = embedding
        if embedding["kind"] == "patches":
            del data["context_length"]
    if embedding["kind"] == "patches":
        encoder.pop("context_length", None)
        draw_patch_positions(draw, encoder)


def draw_patch_positions(draw: st.DrawFn, encoder: Data) -> None:
    """Let some attentions to patches know their rows and columns."""
    for block in (encoder["block"], *encoder.get("blocks", {}).values()):
        attention = block["attention"]
        if attention is None or attention["kind"] == "latent" or "block_summaries" in attention:
            continue
        kind = draw(st.sampled_from([None, "relative_bias_2d", "axial_rope"]))
        if kind == "relative_bias_2d":
            attention["position"] = {"kind": kind, "per_layer": draw(st.booleans())}
        elif kind == "axial_rope":
            attention |= {"position": {"kind": kind}, "head_dim": draw(st.sampled_from([4, 8]))}


def patches() -> st.SearchStrategy[Data]:
    """Images of up to nine patches, at times with pixels to spare."""
    sizes = st.sampled_from([(6, 2), (7, 3), (4, 4), (5, 2)])
    return st.builds(
        lambda size, tokens, **rest: {
            **{"kind": "patches", "image_size": size[0], "patch_size": size[1], **rest},
            **dict(zip(("class_token", "distillation_token"), tokens, strict=True)),
        },
        sizes,
        st.sampled_from([(False, False), (True, False), (True, True)]),
        channels=st.integers(1, 3), registers=st.sampled_from([0, 0, 1, 3]), bias=st.booleans(),
    )  # fmt: skip


def spectrograms() -> st.SearchStrategy[Data]:
    """Sounds of a few bands."""
    return st.fixed_dictionaries(
        {
            "kind": st.just("spectrogram"),
            "mel_bins": st.integers(1, 4),
            "kernel": st.sampled_from([1, 3, 5]),
            "stride": st.integers(1, 3),
            "activation": st.sampled_from(ACTIVATIONS),
        }
    )


def subsampled_spectrograms() -> st.SearchStrategy[Data]:
    """Sounds of a few bands and any length."""
    return st.fixed_dictionaries(
        {
            "kind": st.just("subsampled_spectrogram"),
            "mel_bins": st.integers(1, 7),
            "channels": st.integers(1, 4),
            "convolutions": st.integers(1, 3),
            "kernel": st.sampled_from([1, 3, 5]),
            "stride": st.integers(1, 3),
            "activation": st.sampled_from(ACTIVATIONS),
            "scale": st.sampled_from([None, "sqrt_d_model", 2.0]),
        }
    )


def filtered_waveforms(d_model: int) -> st.SearchStrategy[Data]:
    """Recordings through one to three convolutions."""
    sizes = st.sampled_from([(1, 1), (3, 1), (3, 2), (4, 4)])
    shapes = st.lists(st.tuples(st.integers(1, 6), sizes), max_size=2)
    return st.builds(
        lambda first, last, **rest: {
            "kind": "filtered_waveform",
            "convolutions": [
                {"channels": channels, "kernel": kernel, "stride": stride}
                for channels, (kernel, stride) in [*first, (d_model, last)]
            ],
            **rest,
        },
        shapes, sizes, filter_activation=st.sampled_from(ACTIVATIONS), activation=st.sampled_from(ACTIVATIONS),
    )  # fmt: skip


@st.composite
def positions(draw: st.DrawFn) -> Data:
    """A position that fits embeddings of even width, heads of even width and stacks with equally many heads."""
    kind = draw(
        st.sampled_from(
            [
                "learned", "sinusoidal", "rope", "alibi", "relative_bias", "disentangled", "relative_sinusoidal",
                "relative_key", "none",
            ]
        )
    )  # fmt: skip
    data: Data = {"kind": kind}
    match kind:
        case "learned":
            data["offset"] = draw(st.sampled_from([0, 2]))
        case "sinusoidal":
            data["layout"] = draw(st.sampled_from(["interleaved", "half_split"]))
            data["spacing"] = draw(st.sampled_from(["paper", "tensor2tensor"]))
            data["table"] = draw(st.booleans())
        case "rope":
            data["layout"] = draw(st.sampled_from(["half_split", "interleaved"]))
            data["dimensions"] = draw(st.sampled_from([None, 2]))
            data["scaling"] = draw(st.none() | rope_scalings(data["dimensions"]))
        case "alibi":
            data["scale"] = draw(st.sampled_from([1.0, 0.25]))
        case "disentangled":
            data["buckets"], data["max_distance"] = draw(st.sampled_from([(None, 5), (4, 12), (6, 9)]))
            data["terms"] = draw(st.sampled_from(["both", "content_to_position", "position_to_content"]))
            data["projections"] = draw(st.sampled_from(["shared", "own"]))
        case "relative_key":
            data["before"], data["after"] = draw(st.sampled_from([(64, 8), (0, 0), (2, 3)]))
        case "relative_bias":
            data["buckets"], data["max_distance"] = draw(
                st.sampled_from([(4, 16), (7, 9), (8, 5), (10, 20), (32, 128)])
            )
            data["per_layer"] = draw(st.booleans())
    if data.get("scaling", 0) is None:
        del data["scaling"]
    return data


def rope_scalings(dimensions: int | None) -> st.SearchStrategy[Data]:
    """How rotary frequencies are rescaled; one kind has a number for each pair of so many dimensions."""
    longrope = {"kind": "longrope", "short_factor": [1.5], "long_factor": [3.0]}
    llama3 = {"kind": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    return st.sampled_from(
        [
            {"kind": "linear", "factor": 2.0},
            {**llama3, "original_context_length": 16},
            {"kind": "yarn", "factor": 4.0, "original_context_length": 16},
            *([] if dimensions is None else [{**longrope, "original_context_length": n} for n in (3, 9, 16)]),
        ]
    )


@st.composite
def embeddings(draw: st.DrawFn, d_model: int) -> Data:
    """An embedding, at times with a width of its own."""
    data: Data = {"token_types": draw(st.sampled_from([0, 0, 2]))}
    data["scale"] = draw(st.sampled_from([None, "sqrt_d_model", 2.0]))
    if draw(st.booleans()):
        data["norm"] = draw(norms(or_none=False))
    if draw(st.integers(0, 3)) == 0:
        data["width"] = draw(st.sampled_from([d_model, 6]))
        projections = st.fixed_dictionaries(
            {"bias": st.booleans(), "place": st.sampled_from(["first", "last"])}
        )
        data["projection"] = draw(st.none() | projections)
    return data


def norms(*, or_none: bool = True) -> st.SearchStrategy[Data]:
    """A norm; seldom none."""
    some = [
        {"kind": "layer_norm"},
        {"kind": "layer_norm", "bias": False},
        {"kind": "layer_norm", "eps": 1e-12},
        {"kind": "layer_norm", "weight": False, "bias": False},
        {"kind": "layer_norm", "unit_offset": True},
    ]
    some += [
        {"kind": "rms_norm"},
        {"kind": "rms_norm", "eps": 1e-5},
        {"kind": "rms_norm", "unit_offset": True},
    ]
    return st.sampled_from(some + ([{"kind": "none"}] if or_none else []))


@st.composite
def stacks(draw: st.DrawFn, *, cross: bool, decoding: bool, latent: bool) -> Data:
    """A stack of one to four layers, at times in a pattern of named blocks."""
    count = draw(st.sampled_from([1, 2, 3, 4]))
    block = draw(blocks(count, cross=cross, latent=latent, decoding=decoding))
    data: Data = {"layers": draw(st.integers(1, 3)), "block": block}
    mixes = decoding and draw(st.integers(0, 2)) == 0
    if mixes or draw(st.integers(0, 3)) == 0:
        data["blocks"] = {"other": draw(blocks(count, cross=cross, latent=latent, decoding=decoding))}
        patterns: list[list[Data]] = [
            [{"use": "other"}, {"repeat": 2}],
            [{"pattern": [{"repeat": 1}, {"use": "other"}], "repeat": 2}],
            [{"use": "other", "repeat": 2, "shared": True}, {"repeat": 1}],
            [{"pattern": [{"repeat": 1}, {"use": "other"}], "repeat": 2, "shared": True}],
        ]
        if mixes:
            draw_without_attention(draw, data["blocks"]["other"], cross=cross)
        else:
            patterns.append([{"use": "other", "repeat": 2}])
        if (data["blocks"]["other"].get("mixer") or {}).get("kind") == "rwkv7":
            data["blocks"]["later"] = with_first_values(data["blocks"]["other"])
            patterns = [[{"use": "other"}, {"repeat": 1}, {"use": "later", "repeat": 2}]]
        data["layers"] = draw(st.sampled_from(patterns))
    data["final_norm"] = draw(st.sampled_from([None, True, False]) | norms(or_none=False))
    data["weighted_layer_sum"] = draw(st.sampled_from([False, False, False, True]))
    if not decoding:
        data["causal"] = draw(st.sampled_from([None, None, True]))
    return data


def with_first_values(block: Data) -> Data:
    """A block of RWKV-7 whose values are mixed with those of the first layer."""
    return {**block, "mixer": {**block["mixer"], "value_rank": 2}}


def draw_without_attention(draw: st.DrawFn, block: Data, *, cross: bool) -> None:
    """Leave a block's attention out, or put a mixer in its place, or beside it."""
    if draw(st.integers(0, 3)) == 0:
        block["mixer"] = draw(mixers())
        return
    if cross:
        block.setdefault("cross_attention", draw(attentions(2, local=False)))
    block["attention"] = block["sharing"] = None
    block.pop("attention_norm", None)
    if draw(st.integers(0, 5)) == 0:
        block.pop("feed_forward_residual", None)
        return
    block["mixer"] = draw(mixers())
    if draw(st.integers(0, 2)) == 0:
        block["feed_forward"] = None
        block.pop("feed_forward_norm", None)
        block.pop("feed_forward_residual", None)


def multipliers(*parts: str) -> st.SearchStrategy[Data]:
    """Constant factors on some parts of a component."""
    return st.just({}) | st.dictionaries(st.sampled_from(parts), st.sampled_from([1.0, 0.5, 1.5]))


@st.composite
def mixers(draw: st.DrawFn) -> Data:
    """A mixer with a state of constant size."""
    convolving = ["short_convolution", "gated_delta_net", "kimi_delta_attention", "mamba", "mamba2", "rg_lru"]
    shifting = ["rwkv7", "rwkv_channel_mix"]
    data: Data = {"kind": draw(st.sampled_from([*convolving, *shifting, "linear_attention"]))}
    if data["kind"] in convolving:
        data["kernel_size"] = draw(st.sampled_from([2, 3, 5]))
    match data["kind"]:
        case "short_convolution":
            data["bias"] = draw(st.booleans())
        case "gated_delta_net":
            data["heads"], data["key_heads"] = draw(st.sampled_from([(1, 1), (2, 1), (4, 2)]))
            data["key_width"], data["value_width"] = draw(st.sampled_from([(4, 4), (3, 6)]))
        case "kimi_delta_attention":
            data["heads"], data["head_dim"] = draw(st.sampled_from([(1, 4), (2, 3)]))
        case "linear_attention":
            data["heads"] = draw(st.sampled_from([1, 3, 4]))
            data["key_width"], data["value_width"] = draw(st.sampled_from([(4, 4), (3, 6), (1, 2)]))
            data["activation"], data["gate"] = (
                draw(st.sampled_from(ACTIVATIONS)),
                draw(st.sampled_from(ACTIVATIONS)),
            )
            data["decay"] = {"kind": draw(st.sampled_from(["slopes", "retention"]))}
            data["output_norm"] = {"norm": draw(norms()), "over": draw(st.sampled_from(["width", "head"]))}
        case "mamba":
            data["width"], data["step_rank"] = draw(st.sampled_from([(8, 3), (12, 4)]))
            data["heads"] = draw(st.sampled_from([1, 1, 2, 4]))
            data["norm"] = draw(st.none() | norms())
            data["state_size"] = 4 if data["norm"] else draw(st.sampled_from([1, 4]))
        case "mamba2":
            data["heads"], data["groups"] = draw(st.sampled_from([(1, 1), (4, 1), (4, 2)]))
            data["head_dim"], data["state_size"] = draw(st.sampled_from([(4, 3), (2, 4)]))
            data["norm"] = draw(st.sampled_from([None, {"gate": "before"}, {"gate": "after"}]))
            data["step_limit"] = draw(st.sampled_from([None, {"least": 0.01, "most": 0.2}]))
            data["multipliers"] = draw(
                multipliers("input", "gate", "value", "key", "query", "step", "output")
            )
        case "rwkv7":
            data["heads"], data["head_dim"] = draw(st.sampled_from([(1, 4), (2, 3)]))
            data["decay_rank"], data["update_rank"], data["gate_rank"] = draw(
                st.sampled_from([(2, 2, 2), (3, 1, 5)])
            )
        case "rwkv_channel_mix":
            data["hidden"], data["activation"] = (
                draw(st.sampled_from([8, 12])),
                draw(st.sampled_from(ACTIVATIONS)),
            )
        case "rg_lru":
            data["width"], data["heads"] = draw(st.sampled_from([(8, 1), (12, 3)]))
    if data["kind"] in ("mamba", "mamba2"):
        data["bias"], data["convolution_bias"] = draw(st.booleans()), draw(st.booleans())
    return data


@st.composite
def blocks(draw: st.DrawFn, head_count: int, *, cross: bool, latent: bool, decoding: bool) -> Data:
    """A block whose self-attention has ``head_count`` heads; residuals are seldom off."""
    kinds = ["pre_norm", "post_norm", "parallel", "sandwich", "reordered_norm", "normed_residual"]
    data: Data = {"kind": draw(st.sampled_from(kinds))}
    data["norm"] = draw(norms())
    data["attention"] = draw(
        latent_attentions(head_count)
        if latent and draw(st.integers(0, 5)) == 0
        else attentions(head_count, decoding=decoding)
    )
    mixed = draw(st.integers(0, 3)) == 0
    data["feed_forward"] = draw(mixtures() if mixed else feed_forwards())
    faint = mixed or data["norm"]["kind"] == "none"  # without residuals, tokens would hardly differ
    data["residual"] = {"kind": draw(st.sampled_from(["add", "add", "add", "add" if faint else "none"]))}
    if data["residual"]["kind"] == "add":
        data["residual"]["scale"] = draw(st.sampled_from([1.0, 1.0, 0.5]))
        data["residual"]["stream_scale"] = draw(st.sampled_from([1.0, 1.0, 1.5]))
        if data["kind"] != "parallel" and draw(st.integers(0, 4)) == 0:
            data["feed_forward_residual"] = {"kind": "add", "scale": draw(st.sampled_from([1.0, 0.25]))}
    # With 1e-5, half precision has nothing left to see.
    data["layer_scale"] = draw(st.sampled_from([None, None, None, 1.0, 0.1]))
    data["dropout"] = draw(st.sampled_from([0.0, 0.1]))
    if data["kind"] == "parallel":
        data["norms"] = draw(st.sampled_from(["shared", "separate"]))
    if data.get("norms") != "shared" and draw(st.integers(0, 4)) == 0:
        data[draw(st.sampled_from(["attention_norm", "feed_forward_norm"]))] = draw(norms())
    data["sharing"] = draw(sharing(data)) if draw(st.integers(0, 4)) == 0 else None
    if cross and (data["attention"]["kind"] == "latent" or draw(st.booleans())):
        data["cross_attention"] = draw(attentions(draw(st.sampled_from([1, 2, 4])), local=False))
    return data


@st.composite
def sharing(draw: st.DrawFn, block: Data) -> Data:
    """Weights that all layers of a block share, at times with adapters."""
    adapters = {
        "rank": draw(st.sampled_from([1, 3])),
        "attention": block["attention"]["kind"] != "latent" and draw(st.booleans()),
        "feed_forward": block["feed_forward"]["kind"] != "mixture",
    }
    adapted = adapters["attention"] or adapters["feed_forward"]
    return {"sets": 1, "adapters": adapters if adapted and draw(st.booleans()) else None}


@st.composite
def feed_forwards(draw: st.DrawFn) -> Data:
    """A feed-forward with a hidden layer."""
    data: Data = {"kind": draw(st.sampled_from(["mlp", "gated"]))}
    data["hidden"] = draw(st.sampled_from([5, 16, 32]))
    data["activation"] = draw(st.sampled_from(ACTIVATIONS))
    data["bias"] = draw(st.sampled_from([True, False, "output"]))
    if data["kind"] == "gated" and draw(st.booleans()):
        data["limit"], data["up_offset"] = (
            draw(st.sampled_from([None, 0.7])),
            draw(st.sampled_from([None, 1.0])),
        )
        data["multipliers"] = draw(multipliers("gate", "output"))
    return data


@st.composite
def mixtures(draw: st.DrawFn) -> Data:
    """A mixture of experts: one that chooses some, and one that takes all."""
    experts, top_k = draw(st.sampled_from([(4, 2), (4, 1), (2, 2), (6, 3)]))
    router: Data = {"scores": draw(st.sampled_from(["softmax", "sigmoid", "sparse_mixer"]))}
    router["normalize"] = top_k > 1 and draw(st.booleans())
    router["bias"], router["score_correction_bias"] = draw(st.booleans()), draw(st.booleans())
    router["scale"] = draw(st.sampled_from([1.0, 2.5]))
    router["weighs"] = draw(st.sampled_from(["output", "output", "input"]))
    if experts > top_k and draw(st.booleans()):
        router["groups"] = {
            "count": 2,
            "top": 1 if top_k == 1 else 2,
            "group_score_top_k": draw(st.sampled_from([1, 2])),
        }
    data: Data = {"kind": "mixture", "experts": experts, "top_k": top_k, "router": router}
    data["expert"] = draw(feed_forwards())
    if draw(st.booleans()):
        data["shared"], data["shared_gate"] = draw(feed_forwards()), draw(st.booleans())
    return data


@st.composite
def attentions(draw: st.DrawFn, head_count: int, *, local: bool = True, decoding: bool = False) -> Data:
    """Any kind of attention with a number of heads; ``local`` ones may have a window and a position of their own, and those of
    a decoder what counts from the first token on."""
    kind = draw(st.sampled_from(["multi_head", "grouped_query", "multi_query"]))
    data: Data = {"kind": kind, "heads": head_count}
    data["head_dim"] = draw(st.sampled_from([6, 16] if head_count == 3 else [None, None, 2, 6, 8, 16]))
    if kind == "grouped_query":
        data["kv_heads"] = draw(st.sampled_from([n for n in range(1, head_count + 1) if head_count % n == 0]))
    names = ("query", "key", "value", "output")
    data["bias"] = draw(st.booleans() | st.fixed_dictionaries(dict.fromkeys(names, st.booleans())))
    data["scale"] = draw(st.sampled_from([None, None, 1.0, 0.1]))
    data["softcap"] = draw(st.sampled_from([None, None, 2.0]))
    data["sinks"] = draw(st.sampled_from([False, False, True]))
    data["clip"] = draw(st.sampled_from([None, None, 1.5]))
    data["multipliers"] = draw(multipliers("input", "output"))
    if (
        data["head_dim"] != 2 and draw(st.integers(0, 3)) == 0
    ):  # a layer norm leaves two values their signs alone
        norm = draw(norms(or_none=False))
        data["qk_norm"] = {"norm": norm, "over": draw(st.sampled_from(["head", "width", "each_head"]))}
    if local:
        data["window"] = draw(st.sampled_from([None, None, None, 1, 2, 5]))
    if decoding and data["window"] is None:
        data["chunk"] = draw(st.sampled_from([None, None, None, 2, 5]))
    if local and draw(st.integers(0, 3)) == 0:
        data["position"] = draw(positions().filter(lambda each: each["kind"] not in EMBEDDED))
        if decoding and data["position"]["kind"] in ("rope", "none") and draw(st.booleans()):
            growth = {"beta": 0.5, "length": draw(st.integers(1, 6)), "offset": draw(st.integers(0, 1))}
            data["position"]["query_scaling"] = growth
    return data


@st.composite
def latent_attentions(draw: st.DrawFn, head_count: int) -> Data:
    """Latent attention with a number of heads."""
    data: Data = {"kind": "latent", "heads": head_count, "kv_rank": draw(st.sampled_from([4, 9]))}
    data["query_rank"] = draw(st.sampled_from([None, 6]))
    data["head_dim"], data["value_dim"] = draw(st.sampled_from([3, 6])), draw(st.sampled_from([4, 6]))
    data["rope_dim"] = draw(st.sampled_from([2, 4]))
    data["norm"], data["bias"] = draw(norms(or_none=False)), draw(st.booleans())
    data["scale"] = draw(st.sampled_from([None, None, 0.1]))
    return data


@st.composite
def heads(draw: st.DrawFn, *, causal: bool, own_width: bool, vocabulary: bool) -> Data:
    """Any head that suits the model."""
    kinds = [
        "none",
        *(["language_modeling", "masked_language_modeling", "sparse"] if vocabulary else []),
        "classification", "pooled", "token_classification", "question_answering", "replaced_token_detection",
        "multi_vector", "token_weights", *([] if causal else ["pooler"]),
        *(["spans"] if vocabulary and not causal else []),
    ]  # fmt: skip
    kind = draw(st.sampled_from(kinds))
    data: Data = {"kind": kind}
    match kind:
        case "language_modeling":
            data["projection"] = draw(st.booleans())
            data["tie_embeddings"] = (data["projection"] or not own_width) and draw(st.booleans())
            data["bias"] = draw(st.sampled_from([False, True, "fixed"]))
            data["softcap"] = draw(st.sampled_from([None, None, 5.0]))
            data["scale"] = draw(st.sampled_from([None, "inverse_sqrt_d_model", 0.5]))
        case "masked_language_modeling" | "sparse":
            data["tie_embeddings"], data["bias"] = draw(st.booleans()), draw(st.booleans())
            data["activation"] = draw(st.sampled_from([None, *ACTIVATIONS]))
            if data["activation"]:
                data["norm"], data["dense_bias"] = draw(norms()), draw(st.booleans())
            elif own_width:
                data["tie_embeddings"] = False
            if kind == "sparse":
                data["pooling"] = draw(st.sampled_from(["max", "sum"]))
                data["logarithms"] = draw(st.sampled_from([1, 2]))
        case "classification" | "token_classification":
            data["labels"] = draw(st.integers(1, 8))
            data["bias"] = draw(st.booleans())
        case "pooled" | "multi_vector":
            data["projection"] = draw(st.sampled_from([None, 5]))
            data["normalize"] = draw(st.booleans())
        case "spans":
            data |= {"label_token": draw(st.integers(0, 6)), "max_width": draw(st.integers(1, 3))}
            data["projection"] = draw(st.sampled_from([None, 6]))
            if data["projection"]:
                data["recurrent"] = draw(
                    st.none()
                    | st.builds(lambda layers: {"kind": "lstm", "layers": layers}, st.integers(1, 2))
                )
            return data
        case "question_answering" | "replaced_token_detection":
            data["bias"] = draw(st.booleans())
    if kind in ("classification", "pooled"):
        summaries = ["mean", "max", "weighted_mean", "mean_sqrt_length"]
        places = ["last", *summaries, *([{"token": draw(st.integers(0, 6))}] if vocabulary else [])]
        data["pooling"] = draw(st.sampled_from(places if causal else ["first", *places]))
    if kind not in (
        "none",
        "pooler",
        "language_modeling",
        "masked_language_modeling",
        "sparse",
        "token_weights",
    ):
        data["activation"] = draw(st.sampled_from([None, "tanh", "relu"]))
        if data["activation"]:
            data["dense_bias"] = draw(st.booleans())
            data["norm"] = draw(st.none() | norms())
            if "pooling" in data:
                data["transform"] = draw(st.sampled_from(["vector", "vector", "tokens"]))
    return data
