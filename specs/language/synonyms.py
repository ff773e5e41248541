"""Names of keys and values in other libraries and papers, for suggestions in errors."""

from specs.base import registry
from specs.base.kind_synonyms import KIND_SYNONYMS, normal
from specs.kinds.activation import ACTIVATIONS

SYNONYMS: dict[str, str] = {
    # the model
    "hidden_size": "d_model",
    "hidden_dim": "d_model",
    "n_embd": "d_model",
    "n_embed": "d_model",
    "embed_dim": "d_model",
    "embedding_dim": "d_model",
    "model_dim": "d_model",
    "dim": "d_model",
    "width": "d_model",
    "n_vocab": "vocab_size",
    "vocabulary_size": "vocab_size",
    "max_position_embeddings": "context_length",
    "n_positions": "context_length",
    "n_ctx": "context_length",
    "context": "context_length",
    "context_size": "context_length",
    "context_window": "context_length",
    "seq_len": "context_length",
    "sequence_length": "context_length",
    "block_size": "context_length",
    "max_seq_len": "context_length",
    "max_seq_length": "context_length",
    "max_sequence_length": "context_length",
    "max_length": "context_length",
    "model_type": "architecture",
    "position_embedding_type": "position",
    "positional_encoding": "position",
    "tie_word_embeddings": "tie_embeddings",
    "weight_tying": "tie_embeddings",
    "initializer_range": "std",
    # a stack
    "num_hidden_layers": "layers",
    "num_layers": "layers",
    "n_layer": "layers",
    "n_layers": "layers",
    "depth": "layers",
    "encoder_layers": "layers",
    "decoder_layers": "layers",
    "is_causal": "causal",
    "layer_types": "blocks",
    # attention
    "num_attention_heads": "heads",
    "num_heads": "heads",
    "n_head": "heads",
    "n_heads": "heads",
    "nhead": "heads",
    "num_key_value_heads": "kv_heads",
    "num_kv_heads": "kv_heads",
    "n_kv_heads": "kv_heads",
    "n_head_kv": "kv_heads",
    "head_size": "head_dim",
    "d_kv": "head_dim",
    "d_head": "head_dim",
    "sliding_window": "window",
    "attention_bias": "bias",
    "qkv_bias": "bias",
    "add_bias": "bias",
    "use_bias": "bias",
    "use_qk_norm": "qk_norm",
    "attn_logit_softcapping": "softcap",
    "final_logit_softcapping": "softcap",
    "logit_softcap": "softcap",
    "q_lora_rank": "query_rank",
    "kv_lora_rank": "kv_rank",
    "qk_rope_head_dim": "rope_dim",
    "qk_nope_head_dim": "head_dim",
    "v_head_dim": "value_dim",
    # positions
    "rope_theta": "theta",
    "rotary_emb_base": "theta",
    "rope_scaling": "scaling",
    "rotary_dim": "dimensions",
    "original_max_position_embeddings": "original_context_length",
    "relative_attention_num_buckets": "buckets",
    "num_buckets": "buckets",
    "relative_attention_max_distance": "max_distance",
    # norms
    "norm_eps": "eps",
    "layer_norm_eps": "eps",
    "layer_norm_epsilon": "eps",
    "rms_norm_eps": "eps",
    "epsilon": "eps",
    # feed-forwards and mixtures
    "intermediate_size": "hidden",
    "ffn_dim": "hidden",
    "n_inner": "hidden",
    "d_ff": "hidden",
    "dim_feedforward": "hidden",
    "hidden_act": "activation",
    "hidden_activation": "activation",
    "activation_function": "activation",
    "mlp": "feed_forward",
    "ffn": "feed_forward",
    "attn": "attention",
    "self_attention": "attention",
    "num_experts": "experts",
    "num_local_experts": "experts",
    "n_routed_experts": "experts",
    "num_experts_per_tok": "top_k",
    "norm_topk_prob": "normalize",
    "routed_scaling_factor": "scale",
    # heads and embeddings
    "num_labels": "labels",
    "num_classes": "labels",
    "pooling_mode": "pooling",
    "type_vocab_size": "token_types",
    "num_channels": "channels",
    "num_mel_bins": "mel_bins",
    "num_register_tokens": "registers",
    "layerscale_value": "layer_scale",
    "use_weighted_layer_sum": "weighted_layer_sum",
    "hidden_dropout_prob": "dropout",
    "attention_dropout": "dropout",
    "type": "kind",
}


_ACTIVATIONS = {**ACTIVATIONS, "relu_squared": "relu2", "squared_relu": "relu2"}


def value_meant(key: str, word: str, kind: object) -> dict[str, str] | None:
    """The words of a spec for the value ``word`` of a key in a part of a kind; None if unknown.

    They name a kind if the part must be of another: ``swiglu`` is no activation of an ``mlp``.
    """
    typed = normal(word)
    if key == "activation" and typed in _ACTIVATIONS:
        return {key: _ACTIVATIONS[typed]}
    for slot, names in KIND_SYNONYMS.items():
        meant = names.get(typed, {})
        if key in meant and kind in registry.kinds(slot):
            return {key: meant[key]} if kind == meant["kind"] else meant
    return None
