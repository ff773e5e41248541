"""What is suggested for a key that the language does not have."""

import pytest

from specs.base.errors import SpecError
from specs.base.registry import kinds, slots
from specs.language.load import load
from specs.language.synonyms import SYNONYMS
from specs.model.model import Model
from specs.model.stack import LayerGroup, LayerRun, Stack


def remedy(reference, assignment):
    with pytest.raises(SpecError) as caught:
        load(reference, [assignment])
    (problem,) = (problem for problem in caught.value.problems if problem.rule == "is not a known key")
    return problem.remedy


@pytest.mark.parametrize(
    ("assignment", "suggestion"),
    [
        # the same key, deeper
        ("layers=6", "Did you mean 'decoder.layers'?"),
        ("heads=3", "Did you mean 'decoder.block.attention.heads'?"),
        ("window=3", "Did you mean 'decoder.block.attention.window'?"),
        ("decoder.heads=3", "Did you mean 'decoder.block.attention.heads'?"),
        ("norm.kind=rms_norm", "Did you mean 'embedding.norm', 'decoder.block.norm' or 'head.norm'?"),
        (
            "bias=true",
            "Did you mean 'decoder.block.norm.bias', 'decoder.block.attention.bias', "
            "'decoder.block.feed_forward.bias' or others?",
        ),
        # what others call it
        ("hidden_size=64", "Did you mean 'd_model'?"),
        ("n_embd=64", "Did you mean 'd_model'?"),
        ("embed_dim=64", "Did you mean 'd_model'?"),
        ("num_hidden_layers=3", "Did you mean 'decoder.layers'?"),
        ("n_layer=3", "Did you mean 'decoder.layers'?"),
        ("num_attention_heads=3", "Did you mean 'decoder.block.attention.heads'?"),
        ("intermediate_size=3", "Did you mean 'decoder.block.feed_forward.hidden'?"),
        ("decoder.block.feed_forward.intermediate_size=3", "Did you mean 'hidden'?"),
        ("decoder.block.attention.num_heads=3", "Did you mean 'heads'?"),
        ("max_position_embeddings=3", "Did you mean 'context_length'?"),
        # a misspelling, or the beginning
        ("d_modle=3", "Did you mean 'd_model'?"),
        ("vocab=3", "Did you mean 'vocab_size'?"),
        ("decoder.block.attention.head=3", "Did you mean 'heads'?"),
        ("context=3", "Did you mean 'context_length'?"),
        # a key of other kinds
        ("decoder.block.attention.kv_heads=3", "Use kind: grouped_query, or remove kv_heads."),
        (
            "decoder.block.attention.num_key_value_heads=3",
            "Use kind: grouped_query, or remove num_key_value_heads.",
        ),
        ("position.theta=3", "Use kind: rope, axial_rope or relative_boxes, or remove theta."),
        # elsewhere
        ("decoder.vocab_size=3", "Did you mean 'vocab_size'?"),
        ("decoder.block.hidden_size=3", "Did you mean 'd_model' or 'decoder.d_model'?"),
        # nothing like it
        ("decoder.block.norm.zzz=3", "Choose from: kind, eps, weight, unit_offset, bias."),
    ],
)
def test_the_nearest_right_key(assignment, suggestion):
    assert remedy("gpt2", assignment) == suggestion


def test_a_key_of_both_stacks():
    assert remedy("t5-small", "num_layers=3") == "Did you mean 'encoder.layers' or 'decoder.layers'?"


def test_a_key_without_its_colon(tmp_path):
    (tmp_path / "a.yaml").write_text("extends: gpt2\ndecoder: {layers 3}\n")
    with pytest.raises(SpecError) as caught:
        load(tmp_path / "a.yaml")
    (problem,) = caught.value.problems
    assert problem.remedy == "Write the key and its value as layers: VALUE."


def test_synonyms_are_those_of_keys_there_are_and_are_none_themselves():
    keys = {key for spec in (Model, Stack, LayerRun, LayerGroup) for key in spec.model_fields}
    keys |= {key for slot in slots() for kind in kinds(slot).values() for key in kind.spec.model_fields}
    nested = {"over", "count", "top", "group_score_top_k", "scores", "normalize"}  # of QK norms and routers
    assert set(SYNONYMS.values()) <= keys | nested
    top = set(Model.model_fields) | set(Stack.model_fields)
    assert not top & set(SYNONYMS)
