"""Every check passes for what is right, and catches what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from specs.base.errors import UserError
from specs.kinds.pooling import TokenPooling
from specs.model.model import Model
from tests.thinned import one_in
from tests.zoo.tiny import BLOCK, NORM, clip, gpt2, t5
from zoo import functional
from zoo.builder import assemble
from zoo.checks import Check, check_behaviour
from zoo.checks import subject as subjects
from zoo.checks.behaviour import run_checks
from zoo.checks.subject import subject_of
from zoo.components import attention as attentions
from zoo.components import position as positions
from zoo.components import token_heads as heads
from zoo.components.head import found_token_outputs, token_outputs
from zoo.components.vocabulary_heads import LanguageModeling
from zoo.core.reduced import fewer_layers, kept_layers, narrowed, small_tables
from zoo.models import stack, token_positions
from zoo.weights.random import RandomWeights

Patch = Callable[[pytest.MonkeyPatch], None]


def bert(**changes: object) -> Model:
    """A BERT of two layers."""
    data: dict[str, Any] = gpt2().model_dump(exclude={"expect", "decoder"})
    layers = {"layers": 2, "block": {**BLOCK, "kind": "post_norm"}}
    return Model.model_validate(
        {**data, "architecture": "encoder", "encoder": layers, "head": {"kind": "pooler"}, **changes}
    )


def seq2seq(**changes: object) -> Model:
    """An encoder-decoder of two layers each."""
    data: dict[str, Any] = gpt2().model_dump(exclude={"expect"})
    data["encoder"] = {"layers": 2, "block": BLOCK}
    return Model.model_validate({**data, "architecture": "encoder-decoder", **changes})


SPECS = {"encoder": bert, "decoder": gpt2, "encoder-decoder": seq2seq}


def statuses(spec: Model, **options: Any) -> dict[str, str]:
    return {check.name: check.status for check in check_behaviour(spec, **options).checks}


def failures(spec: Model) -> set[str]:
    return {name for name, status in statuses(spec).items() if status == "failed"}


@one_in(6)
@pytest.mark.parametrize("architecture", SPECS)
@pytest.mark.parametrize(
    "position", ["learned", "sinusoidal", "rope", "alibi", "relative_bias", "disentangled"]
)
def test_correct_models_pass(architecture: str, position: str) -> None:
    spec = SPECS[architecture](position={"kind": position})
    assert set(statuses(spec).values()) == {"passed"}


def test_the_checks_of_each_architecture() -> None:
    names = {architecture: set(statuses(spec())) for architecture, spec in SPECS.items()}
    shared = {"order", "padding content", "padding side", "padded batch", "finite"}
    encoder = {"bidirectional"} | shared
    caches = {"cache, token by token", "cache, ragged prefill", "cache, empty"}
    decoder = {"causal", "sees the past"} | shared | caches
    assert names["encoder"] == encoder | {"gradients"}
    assert names["decoder"] == decoder | {"gradients"}
    both = {f"encoder: {name}" for name in encoder} | {f"decoder: {name}" for name in decoder}
    assert names["encoder-decoder"] == both | {"cross-attention", "encoder padding", "gradients"}


# ------------------------------------------------------------------------------------------------- sabotage


def without_causal_mask(patch: pytest.MonkeyPatch) -> None:
    whole = functional.attention_bias
    patch.setattr(functional, "attention_bias", lambda *a, causal, **k: whole(*a, causal=False, **k))


def always_causal(patch: pytest.MonkeyPatch) -> None:
    whole = functional.attention_bias

    def bias(mask: Any, position: Any, queries: Any, *rest: Any, **named: Any) -> Any:
        return whole(mask, position, queries, *rest, **{**named, "causal": queries is not None})

    patch.setattr(functional, "attention_bias", bias)


def sees_itself_only(patch: pytest.MonkeyPatch) -> None:
    def attention(query: Tensor, key: Tensor, value: Tensor, bias: Any, **k: Any) -> Tensor:
        return value[:, :, -query.shape[2] :]

    patch.setattr(functional, "attention", attention)


def ignores_the_mask(patch: pytest.MonkeyPatch) -> None:
    whole = functional.attention_bias
    patch.setattr(functional, "attention_bias", lambda mask, *a, **k: whole(None, *a, **k))


def masks_with_infinity(patch: pytest.MonkeyPatch) -> None:
    def attention(
        query: Tensor, key: Tensor, value: Tensor, bias: Tensor, *, scale: float, **k: Any
    ) -> Tensor:
        masked = torch.where(bias < -1e30, -torch.inf, bias)
        return (scale * query @ key.mT + masked).softmax(-1) @ value

    patch.setattr(functional, "attention", attention)


def counts_padding(patch: pytest.MonkeyPatch) -> None:
    def token_positions(mask: Tensor, length: int) -> Tensor:
        return torch.arange(mask.shape[1])[None, -length:].expand(len(mask), -1)

    patch.setattr(functional, "token_positions", token_positions)


def forgets_the_past_in_positions(patch: pytest.MonkeyPatch) -> None:
    whole = functional.token_positions
    patch.setattr(functional, "token_positions", lambda mask, length: whole(mask[:, -length:], length))


def appends_in_front(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(functional, "append", lambda past, new: torch.cat((new, past), 2))


def drops_the_past(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(functional, "append", lambda past, new: torch.cat((torch.zeros_like(past), new), 2))


def fails_on_an_empty_cache(patch: pytest.MonkeyPatch) -> None:
    def append(past: Tensor, new: Tensor) -> Tensor:
        return torch.cat((past, new), 2) if past.shape[2] else torch.cat((past, 2 * new), 2)

    patch.setattr(functional, "append", append)


def mixes_rows(patch: pytest.MonkeyPatch) -> None:
    whole = functional.attention
    patch.setattr(functional, "attention", lambda q, k, v, b, **o: whole(q, k, v, b, **o) + v.mean())


def no_positions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(positions.Learned, "embed", lambda self, x, p: x + self.table.weight[0])


def ignores_the_encoder_mask(patch: pytest.MonkeyPatch) -> None:
    whole = functional.attention_bias

    def bias(mask: Any, position: Any, queries: Any, *rest: Any, **named: Any) -> Any:
        return whole(None if queries is None else mask, position, queries, *rest, **named)

    patch.setattr(functional, "attention_bias", bias)


def ignores_the_encoder(patch: pytest.MonkeyPatch) -> None:
    def forward(self: Any, x: Tensor, scope: Any, encoded: Any) -> Tensor:
        return self.attend(x, self.queries(x), encoded[0] * 0, encoded[1] * 0, scope.attention.cross_bias)

    patch.setattr(attentions.CrossAttention, "forward", forward)


def has_an_unused_parameter(patch: pytest.MonkeyPatch) -> None:
    whole = attentions.Projections.__init__

    def init(self: Any, *args: Any) -> None:
        whole(self, *args)
        self.spare = nn.Linear(3, 3)

    patch.setattr(attentions.Projections, "__init__", init)


def blocks_gradients(patch: pytest.MonkeyPatch) -> None:
    whole = attentions.Projections.queries
    patch.setattr(attentions.Projections, "queries", lambda self, x: whole(self, x).detach())


SABOTAGE: list[tuple[str, Patch, set[str]]] = [
    ("decoder", without_causal_mask, {"causal", "cache, token by token"}),
    ("encoder-decoder", without_causal_mask, {"decoder: causal"}),
    ("encoder", always_causal, {"bidirectional"}),
    ("encoder-decoder", always_causal, {"encoder: bidirectional"}),
    ("encoder", sees_itself_only, {"bidirectional", "gradients"}),
    ("decoder", sees_itself_only, {"sees the past"}),
    ("encoder", ignores_the_mask, {"padding content", "padded batch"}),
    ("decoder", ignores_the_mask, {"padding content", "padding side", "padded batch"}),
    ("encoder", masks_with_infinity, {"finite"}),
    ("decoder", masks_with_infinity, {"finite"}),
    ("encoder", counts_padding, {"padding side"}),
    ("decoder", counts_padding, {"padding side"}),
    ("decoder", forgets_the_past_in_positions, {"cache, ragged prefill"}),
    ("decoder", appends_in_front, {"cache, token by token", "cache, ragged prefill"}),
    ("encoder-decoder", appends_in_front, {"decoder: cache, token by token"}),
    ("decoder", drops_the_past, {"cache, token by token", "cache, ragged prefill"}),
    ("decoder", fails_on_an_empty_cache, {"cache, empty"}),
    ("encoder", mixes_rows, {"padded batch"}),
    ("encoder", no_positions, {"order"}),
    ("encoder-decoder", ignores_the_encoder_mask, {"encoder padding"}),
    ("encoder-decoder", ignores_the_encoder, {"cross-attention"}),
    ("decoder", has_an_unused_parameter, {"gradients"}),
    ("decoder", blocks_gradients, {"gradients"}),
]


@one_in(8)
@pytest.mark.parametrize(
    ("architecture", "sabotage", "caught"), SABOTAGE, ids=[f"{s.__name__}-{a}" for a, s, _ in SABOTAGE]
)
def test_faulty_models_are_caught(
    architecture: str, sabotage: Patch, caught: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sabotage(monkeypatch)
    assert caught <= failures(SPECS[architecture]())


def test_the_patched_functions_are_the_ones_in_use() -> None:
    for module in (stack, token_positions, attentions):
        assert vars(module)["functional"] is functional


def test_relative_positions_of_a_decoder_step_by_its_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def from_zero(queries: Tensor, keys: Tensor) -> Tensor:
        return keys[:, None] - (queries - queries[:, :1])[:, :, None]

    monkeypatch.setattr("zoo.functional.scores.relative_positions", from_zero)
    assert "cache, token by token" in failures(gpt2(position={"kind": "alibi"}))


@one_in(2)
@pytest.mark.parametrize(
    ("position", "limit"),
    [
        ({"kind": "alibi"}, {}),
        ({"kind": "relative_bias"}, {}),
        ({"kind": "disentangled", "buckets": 4, "max_distance": 8}, {}),
        ({"kind": "rope"}, {"window": 2}),
        ({"kind": "rope"}, {"chunk": 3}),
    ],
)
def test_distances_that_count_padding_are_caught(
    position: Any, limit: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    block = {**BLOCK, "attention": {**BLOCK["attention"], **limit}}
    spec = gpt2(position=position, decoder={"layers": 2, "block": block})
    assert not failures(spec)

    def by_place(tokens: Any, x: Tensor, past: int) -> Tensor:
        return torch.arange(past + x.shape[1])[None]

    monkeypatch.setattr(token_positions.TokenPositions, "keys", by_place)
    assert {"padding side", "padded batch"} <= failures(spec)


# ------------------------------------------------------------------------------------------------- variants


def named(checks: tuple[Check, ...], name: str) -> Check:
    return next(check for check in checks if check.name == name)


def test_norms_of_keys_may_shift_all_scores_of_a_query() -> None:
    norms = {"qk_norm": {"norm": NORM, "over": "head"}}
    block = {**BLOCK, "attention": {**BLOCK["attention"], "bias": False, **norms}}
    layers = {"layers": 1, "block": block}
    check = named(check_behaviour(gpt2(decoder=layers)).checks, "gradients")
    assert check.status == "passed"
    assert "except key biases" in check.explanation


@pytest.mark.parametrize(
    ("experts", "top_k", "router"),
    [
        (3, 2, {"scores": "sparse_mixer", "normalize": False}),
        (3, 1, {"normalize": True, "norm": NORM, "bias": True}),
        (1, 1, {"normalize": True, "scores": "sigmoid"}),
        (1, 1, {"normalize": False}),
    ],
)
def test_routers_whose_weights_are_constant_may_have_no_gradient(
    experts: int, top_k: int, router: dict[str, Any]
) -> None:
    expert = {"kind": "mlp", "hidden": 8, "activation": "gelu"}
    mixture = {"kind": "mixture", "experts": experts, "top_k": top_k, "expert": expert, "router": router}
    layers = {"layers": 1, "block": {**BLOCK, "feed_forward": mixture}}
    check = named(check_behaviour(gpt2(decoder=layers)).checks, "gradients")
    assert check.status == "passed"
    assert "except routers whose weights are constant" in check.explanation


def test_texts_hold_the_token_at_which_they_are_pooled() -> None:
    """Otherwise a causal text is pooled at its first token, which sees itself alone."""
    assert named(check_behaviour(clip(vocab_size=600)).checks, "gradients").status == "passed"


def test_sinks_of_one_head_before_a_norm_may_have_no_gradient() -> None:
    attention = {"kind": "multi_head", "heads": 1, "bias": False, "sinks": True}
    layers = {"layers": 1, "block": {**BLOCK, "kind": "reordered_norm", "attention": attention}}
    for spec in (gpt2(decoder=layers), seq2seq(decoder=layers)):
        check = named(check_behaviour(spec).checks, "gradients")
        assert check.status == "passed"
        assert "except sinks of single heads" in check.explanation


@pytest.mark.parametrize(
    ("mixer", "position"),
    [({"kind": "rg_lru", "width": 8, "heads": 2}, "none"), ({"kind": "short_convolution"}, "learned")],
)
def test_states_that_count_no_tokens_are_read_with_a_mask(mixer: dict[str, Any], position: str) -> None:
    block = {**BLOCK, "attention": None, "mixer": mixer}
    spec = gpt2(decoder={"layers": 2, "block": block}, position={"kind": position})
    found = statuses(spec)
    assert {found["cache, empty"], found["cache, token by token"]} == {"passed"}


def test_parameters_without_a_gradient_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    has_an_unused_parameter(monkeypatch)
    check = named(check_behaviour(gpt2()).checks, "gradients")
    assert check.figure == 4
    assert "decoder.blocks.0.attention.spare.weight" in check.reason


def test_a_bidirectional_encoder_without_positions_sees_a_set() -> None:
    check = named(check_behaviour(bert(position={"kind": "none"})).checks, "order")
    assert check.status == "info"
    assert check.figure is not None
    assert check.figure < 1e-12
    assert statuses(gpt2(position={"kind": "none"}))["order"] == "passed"


def test_latent_attention_has_the_biases_of_its_layer() -> None:
    latent = {"kind": "latent", "heads": 2, "kv_rank": 4, "head_dim": 4, "value_dim": 4, "rope_dim": 2}
    layers = {"layers": 2, "block": {**BLOCK, "attention": latent}}
    spec = bert(position={"kind": "relative_bias", "per_layer": True}, encoder=layers)
    tables = [name for name, _ in assemble(spec).named_parameters() if name.endswith("position.table.weight")]
    assert tables == [f"encoder.blocks.{layer}.attention.position.table.weight" for layer in range(2)]
    assert statuses(spec)["order"] == "passed"


@pytest.mark.parametrize("kind", ["convolutional", "stacked_convolutional"])
@pytest.mark.parametrize("make", [bert, t5])
def test_convolutions_over_tokens_pass_padding_over_wherever_it_is(make: Any, kind: str) -> None:
    position = {"kind": kind, "kernel": 4, "groups": 2}
    found = check_behaviour(make(encoder={"layers": 1, "block": BLOCK, "position": position})).checks
    padding = [check for check in found if "padding" in check.name or "padded" in check.name]
    assert len(padding) >= 3
    assert {check.status for check in padding} == {"passed"}


def test_a_window_tells_a_bidirectional_encoder_where_tokens_stand_where_it_is_short() -> None:
    for window, status in ((1, "info"), (2, "passed"), (8, "passed"), (10, "info"), (4096, "info")):
        block = {**BLOCK, "attention": {"kind": "multi_head", "heads": 2, "window": window}}
        spec = bert(position={"kind": "none"}, encoder={"layers": 1, "block": block})
        assert statuses(spec)["order"] == status


@one_in(4)
@pytest.mark.parametrize("make", [bert, gpt2])
@pytest.mark.parametrize("layers", [2, [{"use": "whole"}, {}]])
@pytest.mark.parametrize("position", ["rope", "relative_bias", "alibi", "none"])
def test_windows_of_one_token_leave_queries_and_keys_without_a_use(
    make: Any, layers: Any, position: str
) -> None:
    attention = {"kind": "multi_head", "heads": 2}
    whole = {**BLOCK, "attention": attention}
    block = {**BLOCK, "attention": {**attention, "window": 1}}
    stack = {"layers": layers, "block": block, "blocks": {} if layers == 2 else {"whole": whole}}
    spec = make(**{"encoder" if make is bert else "decoder": stack}, position={"kind": position})
    found = statuses(spec)
    assert "failed" not in found.values()
    sees = found["bidirectional" if make is bert else "sees the past"]
    assert sees == ("skipped" if layers == 2 else "passed")


def test_a_position_of_its_own_tells_an_attention_where_tokens_stand() -> None:
    for own, position, status in (("rope", "none", "passed"), ("none", "rope", "info")):
        block = {**BLOCK, "attention": {"kind": "multi_head", "heads": 2, "position": {"kind": own}}}
        spec = bert(position={"kind": position}, encoder={"layers": 2, "block": block})
        assert statuses(spec)["order"] == status


def test_an_encoder_may_be_causal() -> None:
    found = statuses(bert(encoder={"layers": 2, "block": BLOCK, "causal": True}, head={"kind": "none"}))
    assert set(found.values()) == {"passed"}
    assert {"causal", "sees the past"} <= set(found)
    assert "bidirectional" not in found


def test_an_encoder_that_is_to_be_causal_and_is_not_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    without_causal_mask(monkeypatch)
    assert "causal" in failures(
        bert(encoder={"layers": 2, "block": BLOCK, "causal": True}, head={"kind": "none"})
    )


@one_in(4)
@pytest.mark.parametrize("kind", ["classification", "pooled"])
@pytest.mark.parametrize("pooling", [*get_args(TokenPooling), {"token": 1}])
def test_sequence_vectors_do_not_depend_on_other_rows(
    pooling: object, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = {"labels": 6} if kind == "classification" else {}  # as many as there are tokens
    spec = bert(vocab_size=4, head={"kind": kind, "pooling": pooling, **labels})
    assert set(statuses(spec).values()) == {"passed"}
    whole = type(assemble(spec).head).forward
    monkeypatch.setattr(
        type(assemble(spec).head),
        "forward",
        lambda self, x, tokens: whole(self, x, replace(tokens, mask=None)),
    )
    assert {"padding side", "padding content"} & failures(spec)


def test_a_decoder_cannot_classify_by_its_first_token() -> None:
    with pytest.raises(ValidationError, match="must not be first in a decoder"):
        gpt2(head={"kind": "classification", "labels": 2})


HEADS: list[dict[str, Any]] = [
    {"kind": "none"},
    {"kind": "language_modeling", "softcap": 5.0, "bias": "fixed"},
    {"kind": "classification", "labels": 2, "pooling": "mean"},
    {"kind": "classification", "labels": 2, "pooling": "last", "activation": "gelu", "norm": NORM, "dense_bias": False},
    {"kind": "classification", "labels": 2, "pooling": "max", "activation": "gelu", "transform": "tokens"},
    {"kind": "pooled", "pooling": {"token": 3}, "projection": 5},
    {"kind": "pooled", "pooling": "mean", "normalize": True},
    {"kind": "token_classification", "labels": 6},
    {"kind": "token_classification", "labels": 2, "activation": "gelu", "norm": NORM, "dense_bias": False},
    {"kind": "question_answering"},
    {"kind": "replaced_token_detection", "activation": "gelu"},
    {"kind": "multi_vector", "projection": 5, "projection_bias": True},
    {"kind": "multi_vector", "activation": "gelu", "normalize": False},
    {"kind": "sparse", "norm": {"kind": "layer_norm"}},
    {"kind": "sparse", "activation": None, "pooling": "sum", "logarithms": 2},
    {"kind": "several", "heads": {"dense": {"kind": "pooled", "pooling": "last"}, "sparse": {"kind": "token_weights"}}},
]  # fmt: skip


@one_in(8)
@pytest.mark.parametrize("head", HEADS, ids=lambda head: head["kind"])
@pytest.mark.parametrize("architecture", SPECS)
def test_heads_of_every_architecture(architecture: str, head: dict[str, Any]) -> None:
    assert set(statuses(SPECS[architecture](head=head)).values()) == {"passed"}


@pytest.mark.parametrize("recurrent", [None, {"kind": "lstm", "layers": 2}])
def test_scores_of_spans_depend_on_no_padding(recurrent: Any) -> None:
    head = {"kind": "spans", "label_token": 3, "max_width": 2, "projection": 6, "recurrent": recurrent}
    assert set(statuses(bert(head=head)).values()) == {"passed"}


@pytest.mark.parametrize(
    ("head", "names"),
    [
        ({"kind": "question_answering"}, {"start_logits", "end_logits"}),
        ({"kind": "token_classification", "labels": 2}, {"logits"}),
        ({"kind": "replaced_token_detection"}, {"logits"}),
        ({"kind": "multi_vector"}, {"token_embeddings"}),
        ({"kind": "sparse", "norm": NORM}, set()),
        ({"kind": "token_weights"}, {"token_weights"}),
        ({"kind": "classification", "labels": 2}, set()),
        ({"kind": "masked_language_modeling", "norm": NORM}, {"logits"}),
        ({"kind": "language_modeling"}, {"logits"}),
        ({"kind": "ctc", "labels": 2}, {"logits"}),
        ({"kind": "pooler"}, {"last_hidden_state"}),
        ({"kind": "pooled", "normalize": True}, {"last_hidden_state"}),
        ({"kind": "none"}, {"last_hidden_state"}),
    ],
)
def test_token_outputs_are_distinguished_from_sequence_outputs(head: dict[str, Any], names: set[str]) -> None:
    model = subject_of(bert(head=head)).model
    assert token_outputs(model.head, 8) == found_token_outputs(model.head, 8) == names


def test_what_a_head_states_of_its_outputs_is_not_said_of_a_class_that_extends_it() -> None:
    class Sequences(LanguageModeling):
        def forward(self, x: Tensor, tokens: Any) -> dict[str, Tensor]:
            return {"logits": super().forward(x, tokens)["logits"].mean(1)}

    model = subject_of(gpt2()).model
    model.head.__class__ = Sequences
    assert token_outputs(model.head, 8) == set()


def test_answers_that_see_padding_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = bert(head={"kind": "question_answering"})
    whole = heads.QuestionAnswering.forward

    def forward(self: Any, x: Tensor, tokens: Any) -> dict[str, Tensor]:
        return {
            name: scores - scores.mean(1, keepdim=True) for name, scores in whole(self, x, tokens).items()
        }

    monkeypatch.setattr(heads.QuestionAnswering, "forward", forward)
    assert {"padding content", "padded batch"} <= failures(spec)


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ({"kind": "pooled", "normalize": True, "projection": 1}, "a unit vector of width 1"),
        ({"kind": "token_classification", "labels": 2, "activation": "tanh", "norm": NORM}, "a normalized vector of width 2"),
    ],
)  # fmt: skip
def test_heads_that_keep_only_signs_skip_the_gradient_check(head: dict[str, Any], reason: str) -> None:
    narrow = {"d_model": 2} if "labels" in head else {}
    check = named(check_behaviour(bert(head=head, **narrow)).checks, "gradients")
    assert check.status == "skipped"
    assert check.reason.startswith(reason)


@one_in(6)
@pytest.mark.parametrize("architecture", SPECS)
@pytest.mark.parametrize(
    "changes",
    [
        {"vocab_size": 1},
        {"vocab_size": 2},
        {"context_length": 1},
        {"context_length": 2},
        {"d_model": 2},
        {"context_length": 100_000, "position": {"kind": "rope"}},
    ],
    ids=str,
)
def test_small_and_large_sizes(architecture: str, changes: dict[str, Any]) -> None:
    found = statuses(SPECS[architecture](**changes))
    assert "failed" not in found.values()
    tiny = changes.get("vocab_size") == 1 or changes.get("context_length") == 1 or "d_model" in changes
    assert ("skipped" in found.values()) >= tiny


def test_a_model_of_width_one() -> None:
    block = {**BLOCK, "attention": {"kind": "multi_head", "heads": 1}}
    spec = bert(d_model=1, encoder={"layers": 1, "block": block})
    assert "failed" not in statuses(spec).values()
    bare = bert(d_model=1, encoder={"layers": 1, "block": {**block, "norm": {"kind": "none"}}})
    assert set(statuses(bare).values()) == {"passed"}


@one_in(8)
@pytest.mark.parametrize("layers", [1, 24])
@pytest.mark.parametrize("norm", [NORM, {"kind": "none"}], ids=lambda norm: norm["kind"])
@pytest.mark.parametrize("residual", ["add", "none"])
def test_depth_with_and_without_norms_and_residuals(layers: int, norm: dict[str, Any], residual: str) -> None:
    block = {**BLOCK, "norm": norm, "residual": {"kind": residual}}
    assert not failures(gpt2(decoder={"layers": layers, "block": block}))


def test_given_weights() -> None:
    spec = gpt2()
    report = check_behaviour(spec, RandomWeights(assemble(spec), spec, seed=5))
    assert report.passed
    assert report.weights == "random, seed 5"


def test_as_data() -> None:
    data = check_behaviour(gpt2()).as_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["subject"] == "the model itself"
    unfit = Check("causal", "failed", "", float("nan")).as_dict()
    assert json.loads(json.dumps(unfit, allow_nan=False))["figure"] == "nan"


# ------------------------------------------------------------------------------------------------- reduced models


def test_a_large_model_is_checked_on_a_reduced_model(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = gpt2(decoder={"layers": 50, "block": BLOCK}, vocab_size=5000)
    for limit, description in [
        (10**9, "the model itself"),
        (45_000, "a reduced model of 2 of 50 decoder layers"),
        (12_000, "a reduced model of 2 of 50 decoder layers with a vocabulary of 1,024"),
    ]:
        monkeypatch.setattr(subjects, "MAX_PARAMETERS", limit)
        assert subject_of(spec).description == description
    monkeypatch.setattr(subjects, "MAX_PARAMETERS", 10)
    with pytest.raises(UserError, match="too large to check"):
        subject_of(spec)


def test_a_narrow_reduced_model_keeps_the_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    attention = {"kind": "grouped_query", "heads": 8, "kv_heads": 2}
    spec = gpt2(
        d_model=512,
        position={"kind": "rope"},
        decoder={"layers": 4, "block": {**BLOCK, "attention": attention}},
    )
    monkeypatch.setattr(subjects, "MAX_PARAMETERS", 60_000)
    subject = subject_of(spec)
    assert subject.description.endswith("2 of 4 decoder layers, at 1/8 of the widths")
    block = subject.spec.decoder.block
    assert (subject.spec.d_model, block.attention.heads, block.attention.head_dim) == (64, 8, 8)
    assert all(check.status == "passed" for check in run_checks(subject))


def test_a_reduced_model_with_a_small_vocabulary_seeks_a_token_that_it_has() -> None:
    for token, sought in ((4999, 1023), (7, 7)):
        spec = gpt2(vocab_size=5000, head={"kind": "pooled", "pooling": {"token": token}})
        small = small_tables(spec)
        assert small.head.model_dump()["pooling"] == {"token": sought}
        assert narrowed(small, 2).head == small.head


def test_a_reduced_model_keeps_every_kind_of_block() -> None:
    other = {**BLOCK, "kind": "parallel"}
    pattern = [{"pattern": [{"repeat": 5}, {"use": "wide"}], "repeat": 3}, {"use": "last"}]
    decoder = {
        "layers": pattern,
        "block": BLOCK,
        "blocks": {"wide": other, "last": {**BLOCK, "kind": "sandwich"}},
    }
    spec = gpt2(decoder=decoder)
    stack = spec.last_stack
    assert kept_layers(stack, 2) == [0, 5, 18]
    assert kept_layers(stack, 5) == [0, 1, 2, 5, 18]
    assert kept_layers(gpt2().last_stack, 9) == [0, 1]
    shared = gpt2(decoder={"layers": [{"repeat": 12, "shared": True}], "block": BLOCK})
    assert fewer_layers(shared).decoder.owners() == [0, 0]
    short = fewer_layers(spec, 2)
    assert [run.use for run in short.decoder.runs()] == [None, "wide", "last"]
    assert Model.model_validate(short.model_dump()) == short
    assert assemble(narrowed(short, 2))


def test_every_check_is_announced_before_it_runs() -> None:
    stages = list[str]()
    report = check_behaviour(gpt2(), progress=lambda stage: stages.append(stage.name))
    assert stages[0] == "check causal"
    assert stages[-1] == "check gradients"
    assert len(stages) <= len(report.checks)
