"""DeepSeek-V2 and V3 (DeepSeek-AI, 2024): ``DeepseekV2Config``, ``DeepseekV3Config``."""

from __future__ import annotations

import math

from specs.feed_forward import TwoLayer
from specs.latent import Latent
from specs.mixture import Groups, Mixture
from specs.model import Model
from specs.position import Rope
from specs.rope_scaling import YarnScaling
from zoo.configs.activations import read_activation, write_activation
from zoo.configs.config import REQUIRED, Config
from zoo.configs.decoders import CONTEXT, eps_of, only_block, stack_of, std_of
from zoo.configs.family import ConfigFamily, Data, UnfitError
from zoo.configs.heads import decoder_classes
from zoo.configs.layers import layered
from zoo.configs.llamas import Defaults, rms_norm
from zoo.configs.mixtures import dense_of, expert_of, mixtures_of, training_alone
from zoo.configs.rope import read_rope, rope_of, write_rope, yarn_amplitude, yarn_mscale

_V2 = Defaults(vocab_size=102400)
_V3 = Defaults(
    vocab_size=129280, hidden_size=7168, intermediate_size=18432, layers=61, heads=128, context=4096
)


def _read_body(
    config: Config, defaults: Defaults, mixture: Data, *, dense_first: int, bias: bool, layout: str
) -> Data:
    """The spec of a config; ``mixture`` is without its experts' shape, ``bias`` that of ordinary feed-forwards."""
    training_alone(config)
    config.ignore("ep_size")
    config.must("moe_layer_freq", 1, "all layers after the first few have a mixture")
    d_model = config.int("hidden_size", default=defaults.hidden_size)
    context = config.int("max_position_embeddings", default=defaults.context)
    layers = config.layers("num_hidden_layers", default=defaults.layers)
    attention = _read_attention(config, defaults)
    rotated = attention["rope_dim"]
    dense = {
        "kind": "gated",
        "hidden": config.int("intermediate_size", default=defaults.intermediate_size),
        "activation": read_activation(config, "hidden_act", "silu"),
        "bias": bias,
    }
    hidden = config.int("moe_intermediate_size", default=2048 if defaults is _V3 else 1407)
    shared = config.int("n_shared_experts", default=1 if defaults is _V3 else 2)
    mixture = {
        "kind": "mixture",
        "expert": {**dense, "hidden": hidden, "bias": False},
        "shared": {**dense, "hidden": shared * hidden},
        **mixture,
    }
    block = {
        "kind": "pre_norm",
        "norm": rms_norm(config, defaults),
        "attention": attention,
        "feed_forward": mixture,
    }
    first = config.int("first_k_dense_replace", default=dense_first)
    names = ["dense" if layer < first else None for layer in range(layers)]
    position = read_rope(config, width=rotated, context=context, theta=defaults.theta)
    if "dimensions" in position:
        config.refuse("partial_rotary_factor", "must be 1: qk_rope_head_dim says what is rotated")
    return {
        "architecture": "decoder",
        "vocab_size": config.int("vocab_size", default=defaults.vocab_size),
        "d_model": d_model,
        "context_length": context,
        "position": {**position, "layout": layout},
        "decoder": layered(block, {"dense": {"feed_forward": dense}}, names),
        "initialization": {"kind": "normal", "std": config.float("initializer_range", default=0.02)},
    }


def _read_attention(config: Config, defaults: Defaults) -> Data:
    heads = config.int("num_attention_heads", default=defaults.heads)
    config.must("num_key_value_heads", heads, "every head has keys and values of its own")
    unrotated = config.int("qk_nope_head_dim", default=128)
    rotated = config.int("qk_rope_head_dim", default=64)
    config.must("head_dim", rotated, "it is what is rotated, qk_rope_head_dim")
    config.must("qk_head_dim", unrotated + rotated, "it is qk_nope_head_dim + qk_rope_head_dim")
    return {
        "kind": "latent",
        "heads": heads,
        "query_rank": config.int("q_lora_rank", default=None if config.null("q_lora_rank") else 1536),
        "kv_rank": config.int("kv_lora_rank", default=512),
        "head_dim": unrotated,
        "rope_dim": rotated,
        "value_dim": config.int("v_head_dim", default=128),
        "bias": config.bool("attention_bias", default=False),
        "scale": _read_scale(config, unrotated + rotated),
        "dropout": config.float("attention_dropout", default=0.0),
    }


def _read_scale(config: Config, width: int) -> float | None:
    """The scale of scores where YaRN multiplies it by the square of an amplitude."""
    scaling = config.part("rope_scaling") or config.part("rope_parameters")
    mscale = None if scaling is None else scaling.float("mscale_all_dim")
    if scaling is None or not mscale:
        return None
    amplitude: float = yarn_amplitude(scaling.float("factor", default=REQUIRED), mscale)
    return width**-0.5 * amplitude**2


def _read_groups(config: Config, groups: int | None, top: int | None, best: int) -> Data:
    """The groups of experts, where there are several."""
    count = config.int("n_group", default=groups)
    open_ = config.int("topk_group", default=top)
    if count is None:
        config.refuse("n_group", "must be a number: 1 for experts that are not grouped")
    if open_ is None:
        config.refuse("topk_group", "must be a number: n_group for groups that are all open")
    return {} if count == 1 else {"groups": {"count": count, "top": open_, "best": best}}


def _read_v2(config: Config, class_name: str) -> Data:
    config.must("scoring_func", "softmax", "the reference has no other")
    config.must("norm_topk_prob", False, "the reference does not normalise")
    method = config.choice("topk_method", {"greedy": False, "group_limited_greedy": True}, "greedy")
    groups = _read_groups(config, None, None, 1) if method else {}
    config.ignore("n_group", "topk_group")  # of which the greedy choice makes nothing
    scale = config.float("routed_scaling_factor", default=1.0)
    experts = config.int("n_routed_experts", "num_experts", default=64)
    top_k = config.int("num_experts_per_tok", default=REQUIRED)
    if groups:  # experts of closed groups may be among the chosen, with the weight 0
        size = experts // max(1, groups["groups"]["count"])
        top_k = min(top_k, max(1, groups["groups"]["top"] * size))
    mixture = {
        "experts": experts,
        "top_k": top_k,
        "router": {"normalize": False, "scale": scale, **groups},
    }
    bias = config.bool("mlp_bias", default=False)
    return _read_body(config, _V2, mixture, dense_first=0, bias=bias, layout="interleaved")


def _read_v3(config: Config, class_name: str) -> Data:
    config.must("scoring_func", "sigmoid", "the reference has no other")
    config.must("topk_method", "noaux_tc", "the reference has no other")
    config.ignore(
        "num_nextn_predict_layers", "num_mtp_layers"
    )  # layers beyond, of which the model itself has no use
    scale = config.float("routed_scaling_factor", default=2.5)
    normalize = config.bool("norm_topk_prob", default=True)
    groups = _read_groups(config, 8, 4, 2)
    mixture = {
        "experts": config.int("n_routed_experts", "num_local_experts", default=256),
        "top_k": config.int("num_experts_per_tok", default=8),
        "router": {"scores": "sigmoid", "correction": True, "normalize": normalize, "scale": scale, **groups},
    }
    layout = "interleaved" if config.bool("rope_interleave", default=True) else "half_split"
    return _read_body(config, _V3, mixture, dense_first=3, bias=False, layout=layout)


def _write_body(model: Model) -> Data:
    block, dense, mixtures = only_block(model), dense_of(model), mixtures_of(model)
    attention = block.attention
    if not isinstance(attention, Latent):
        raise UnfitError(f"attention kind {attention.kind}")
    return {
        "vocab_size": model.vocab_size,
        "hidden_size": model.d_model,
        "num_hidden_layers": stack_of(model).depth,
        "max_position_embeddings": model.context_length or CONTEXT,
        "rms_norm_eps": eps_of(block.norm),
        "hidden_act": write_activation(dense.activation),
        "intermediate_size": dense.hidden,
        **_write_attention(attention, rope_of(model.position_of(stack_of(model)))),
        **_write_mixture(next(filter(None, mixtures), None)),
        "first_k_dense_replace": next(
            (i for i, each in enumerate(mixtures) if each is not None), len(mixtures)
        ),
        **std_of(model),
    }


def _write_attention(attention: Latent, position: Rope) -> Data:
    return {
        "num_attention_heads": attention.heads,
        "num_key_value_heads": attention.heads,
        "q_lora_rank": attention.query_rank,
        "kv_lora_rank": attention.kv_rank,
        "qk_nope_head_dim": attention.head_dim,
        "qk_rope_head_dim": attention.rope_dim,
        "v_head_dim": attention.value_dim,
        "attention_bias": attention.bias,
        "attention_dropout": attention.dropout,
        **_with_mscale(write_rope(position, width=attention.rope_dim), attention, position),
    }


def _with_mscale(fields: Data, attention: Latent, position: Rope) -> Data:
    """The fields of a rotary position, and those that say by how much it multiplies the scale of scores."""
    usual = (attention.head_dim + attention.rope_dim) ** -0.5
    if attention.scale is None or math.isclose(attention.scale, usual, rel_tol=1e-12):
        return fields
    scaling = position.scaling
    if not isinstance(scaling, YarnScaling) or scaling.factor == 1:
        raise UnfitError(f"a scale of attention of {attention.scale:g} without scaling of kind yarn")
    whole = math.sqrt(attention.scale / usual)
    mscales = {"mscale_all_dim": yarn_mscale(scaling.factor, whole)}
    if scaling.attention_factor is not None:
        mscales["mscale"] = yarn_mscale(scaling.factor, scaling.attention_factor * whole)
    return {**fields, "rope_scaling": {**fields["rope_scaling"], **mscales}}


def _write_mixture(mixture: Mixture | None) -> Data:
    if mixture is None:  # all layers are dense, and what a mixture would be does not matter
        return {"num_experts_per_tok": 1}
    expert, shared, router = expert_of(mixture), mixture.shared, mixture.router
    if not isinstance(shared, TwoLayer) or shared.hidden % expert.hidden:
        raise UnfitError("a mixture without a shared feed-forward as wide as some experts together")
    groups = router.groups or Groups(count=1, top=1)
    return {
        "n_routed_experts": mixture.experts,
        "num_experts_per_tok": mixture.top_k,
        "moe_intermediate_size": expert.hidden,
        "n_shared_experts": shared.hidden // expert.hidden,
        "routed_scaling_factor": router.scale,
        "norm_topk_prob": router.normalize,
        "n_group": groups.count,
        "topk_group": groups.top,
    }


def _write_v2(model: Model) -> Data:
    mixture = next(filter(None, mixtures_of(model)), None)
    grouped = mixture is not None and mixture.router.groups is not None
    ordinary = dense_of(model) if mixture is None else mixture.shared
    return {
        **_write_body(model),
        "mlp_bias": getattr(ordinary, "bias", False),
        "topk_method": "group_limited_greedy" if grouped else "greedy",
        "scoring_func": "softmax",
    }


def _write_v3(model: Model) -> Data:
    interleaved = rope_of(model.position_of(stack_of(model))).layout == "interleaved"
    return {
        **_write_body(model),
        "rope_interleave": interleaved,
        "topk_method": "noaux_tc",
        "scoring_func": "sigmoid",
        "num_nextn_predict_layers": 0,
    }


_WITHOUT = ("ForQuestionAnswering",)
FAMILIES = (
    ConfigFamily(
        "deepseek_v2",
        _read_v2,
        _write_v2,
        decoder_classes("DeepseekV2", tied=False, without=(*_WITHOUT, "ForTokenClassification")),
    ),
    ConfigFamily(
        "deepseek_v3", _read_v3, _write_v3, decoder_classes("DeepseekV3", tied=False, without=_WITHOUT)
    ),
)
