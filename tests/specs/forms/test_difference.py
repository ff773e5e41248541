"""What differs between two specs, and the assignments that turn one into the other."""

import pytest
from hypothesis import given, settings

from specs.base.errors import path_text
from specs.forms.canonical import complete
from specs.forms.difference import Difference, differences
from specs.forms.resolved import resolved
from specs.forms.variation import assignments
from specs.language.document import Document
from specs.language.load import load, read, varied
from specs.language.named_blocks import with_named_blocks
from specs.language.preset_files import preset_names
from specs.language.validation import validate
from specs.model.model import Model
from tests.strategies import model_data
from tests.thinned import one_in


def document_of(data):
    """The document of drawn data, whose named blocks are whole."""
    return Document(resolved(Model.model_validate(data)))


def stated(a, b):
    """The differences that do not follow from others, by path."""
    return {path_text(each.path): (each.a, each.b) for each in differences(a, b) if not each.follows}


# ---------------------------------------------------------------------------------------------------- sameness


@one_in(12)
@pytest.mark.parametrize("name", preset_names())
def test_a_preset_is_the_same_as_itself(name):
    assert differences(load(name), load(name)) == []
    assert assignments(read(name), read(name)) == []


@settings(max_examples=30, deadline=None)
@given(model_data(), model_data())
def test_two_specs_differ_either_way_round_alike_and_only_where_they_say_different_things(first, second):
    a, b = Model.model_validate(first), Model.model_validate(second)
    there, back = differences(a, b), differences(b, a)
    turned = [Difference(d.path_b, d.path, d.layers, d.b, d.a, d.follows) for d in back]
    assert sorted(map(repr, there)) == sorted(map(repr, turned))
    assert bool(there) == (complete(a) != complete(b))
    assert any(not each.follows for each in there) == bool(there)
    assert differences(a, a) == []


SAME = {
    "defaults": ("gpt2", ["decoder.block.attention.head_dim=64"]),
    "scale": ("gemma-2b", ["embedding.scale=45.254833995939045"]),
    "kind": ("llama-2-7b", ["decoder.block.attention.kind=grouped_query", "decoder.block.attention.kv_heads=32"]),
    "width": ("t5-small", ["encoder.d_model=512", "decoder.d_model=512"]),
    "layers": ("gpt2", ["decoder.layers=[{repeat: 4}, {pattern: [{repeat: 2}], repeat: 4}]"]),
    "position": ("llama-3-8b", ["decoder.position={kind: rope, theta: 500000.0}"]),
    "norms": ("gpt2", ["decoder.block.attention_norm={kind: layer_norm, eps: 1.0e-5}"]),
    "residuals": ("gpt2", ["decoder.block.feed_forward_residual={kind: add, scale: 1.0}"]),
    "names": ("gpt2", ["name=other", "summary=Another", "year=2020", "source=nowhere"]),
}  # fmt: skip


@pytest.mark.parametrize(("name", "changes"), SAME.values(), ids=SAME)
def test_equivalent_specs_are_equal(name, changes):
    assert differences(load(name), load(name, changes)) == []


def test_files_that_extend_repeat_or_alias_say_the_same(tmp_path):
    (tmp_path / "mine.yaml").write_text("extends: t5-small\nname: mine\n")
    text = """
        name: other
        architecture: encoder-decoder
        vocab_size: 32128
        d_model: 512
        position: {kind: relative_bias}
        embedding: {dropout: 0.1}
        encoder: {layers: 6, block: &block {
          kind: pre_norm, dropout: 0.1, norm: {kind: rms_norm, eps: 1.0e-6},
          attention: {kind: multi_head, heads: 8, bias: false, scale: 1.0, dropout: 0.1},
          feed_forward: {kind: mlp, hidden: 2048, activation: relu, bias: false, dropout: 0.1}}}
        decoder: {layers: 6, block: *block}
        head: {kind: language_modeling, scale: inverse_sqrt_d_model}
        initialization: {kind: t5}
        """
    (tmp_path / "other.yaml").write_text(text)
    assert differences(load(tmp_path / "mine.yaml"), load(tmp_path / "other.yaml")) == []


# ----------------------------------------------------------------------------------------------- what is told


def test_parts_of_different_kinds_are_reported_whole():
    changes = ["position.kind=rope", "decoder.block.norm.kind=rms_norm"]
    assert stated(load("gpt2"), load("gpt2", changes)) == {
        "position": (
            {"kind": "learned", "offset": 0},
            {
                "kind": "rope",
                "theta": 10000.0,
                "dimensions": 64,
                "layout": "half_split",
                "rotates": "queries_and_keys",
                "scaling": None,
                "query_scaling": None,
                "sections": None,
                "frequencies": "computed",
            },
        ),
        "decoder.block.norm": (
            {"kind": "layer_norm", "eps": 1e-5, "weight": True, "unit_offset": False, "bias": True},
            {"kind": "rms_norm", "eps": 1e-6, "weight": True, "unit_offset": False},
        ),
    }


def test_blocks_of_different_kinds_are_compared_within():
    found = stated(
        load("gpt2"), load("gpt2", ["decoder.block.kind=post_norm", "decoder.block.attention.heads=8"])
    )
    assert {path: [side.get("kind") for side in both if isinstance(side, dict)] for path, both in found.items()} == {
        "decoder.block": ["pre_norm", "post_norm"],
        "decoder.block.attention.heads": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ([], "encoder none \u2192 6 layers"),
        (
            [
                "encoder.layers=[{repeat: 2}, {use: wide}]",
                "encoder.blocks={wide: {feed_forward: {hidden: 99}}}",
            ],
            "encoder none \u2192 3 layers",
        ),
    ],
)
def test_a_stack_on_one_line_is_its_depth(changes, text):
    texts = [each.text() for each in differences(load("tiny-gpt"), load("t5-small", changes))]
    assert text in texts
    assert not [text for text in texts if "{" in text]


def test_a_consequence_of_another_difference_is_marked():
    found = differences(load("gpt2"), load("gpt2", ["d_model=384"]))
    assert {path_text(each.path): each.follows for each in found} == {
        "d_model": False,
        "embedding.width": True,
        "decoder.block.attention.head_dim": True,
        "decoder.block.attention.scale": True,
    }


def test_affected_layers_are_listed_by_index():
    alternating = ["decoder.blocks.near.attention.window=16", "decoder.layers=[{pattern: [{use: near}, {}], repeat: 6}]"]  # fmt: skip
    (found,) = differences(load("gpt2"), load("gpt2", alternating))
    assert (path_text(found.path), found.layers) == ("decoder.block.attention.window", (0, 2, 4, 6, 8, 10))
    assert (found.a, found.b) == (None, 16)


def test_layers_of_one_spec_are_reported_if_unlike_all_others():
    more = [
        "decoder.blocks.near.attention.window=16",
        "decoder.layers=[{repeat: 12}, {use: near, repeat: 2}]",
    ]
    count, extra = differences(load("gpt2"), load("gpt2", more))
    assert (path_text(count.path), count.a, count.b) == ("decoder.layers", 12, 14)
    assert (path_text(extra.path), extra.layers, extra.a) == ("decoder.block", (12, 13), None)
    assert extra.b["attention"]["window"] == 16


def test_the_stacks_of_an_encoder_and_a_decoder_are_compared():
    found = differences(load("bert-base"), load("gpt2"))
    (norm,) = (each for each in found if path_text(each.path) == "encoder.block.norm.eps")
    assert path_text(norm.path_b) == "decoder.block.norm.eps"


def test_a_width_of_one_stack_is_a_difference_there():
    narrower = load("whisper-tiny", ["encoder.d_model=192"])
    assert stated(load("whisper-tiny"), narrower)["encoder.d_model"] == (None, 192)


def test_the_heads_of_stacks_and_that_of_the_model_are_compared():
    """Those of a dual encoder's stacks have the names that the model's own head has too."""
    spec = load("clip-vit-b32")
    changes = ["image.head.normalize=false", "text.head.pooling=last", "head.log_scale=1.0"]
    assert stated(spec, load("clip-vit-b32", changes)) == {
        "head.log_scale": (2.6592, 1.0),
        "text.head.pooling": ({"token": "highest"}, "last"),
        "image.head.normalize": (True, False),
    }


def test_the_stacks_of_a_dual_encoder_are_compared_by_name():
    found = stated(
        load("clip-vit-b32"), load("clip-vit-b32", ["text.layers=6", "image.embedding.patch_size=16"])
    )
    assert found["text.layers"] == (12, 6)
    assert found["image.embedding.patch_size"] == (32, 16)
    assert found["image.context_length"] == (50, 197)
    assert len(found) == 3
    both = stated(load("clip-vit-b32"), load("clip-vit-b32-text"))
    assert both["architecture"] == ("dual-encoder", "encoder")


def test_sharing_and_untying_are_differences():
    shared = ["encoder.layers=[{repeat: 12, shared: true}]"]
    assert stated(load("bert-base"), load("bert-base", shared)) == {
        "encoder.layers": (12, {"repeat": 12, "shared": True})
    }
    assert stated(load("gpt2"), load("gpt2-untied")) == {"head.tie_embeddings": (True, False)}


# ------------------------------------------------------------------------------------------------ assignments


@settings(max_examples=4, deadline=None)
@given(model_data(), model_data())
def test_assignments_turn_one_spec_into_another(first, second):
    check_assignments(first, second)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(model_data(), model_data())
def test_assignments_turn_any_spec_into_another(first, second):
    check_assignments(first, second)


def check_assignments(first, second):
    """The assignments from one drawn spec to another give the other; none are found where named blocks would have to go."""
    start, goal = document_of(first), document_of(second)
    found = assignments(start, goal)
    if found is None:  # named blocks cannot be taken away
        assert any("blocks" in first.get(stack, {}) for stack in ("encoder", "decoder"))
    else:
        model = validate(with_named_blocks(varied(start, found)))
        assert differences(model, Model.model_validate(second)) == []


@pytest.mark.parametrize(
    "changes",
    [
        ["position.kind=rope"],
        ["decoder.block.norm.kind=rms_norm", "decoder.block.feed_forward.kind=gated"],
        ["decoder.block.attention.kind=grouped_query", "decoder.block.attention.kv_heads=4"],
        ["decoder.block.attention.qk_norm={norm: {kind: rms_norm, eps: 1.0e-06}, over: width}"],
        ["context_length=4096", "position={kind: rope, scaling: {kind: linear, factor: 4.0}}"],
    ],
)
def test_assignments_found_are_those_that_were_made(changes):
    assert assignments(read("gpt2"), varied(read("gpt2"), changes)) is not None
    found = assignments(read("gpt2"), varied(read("gpt2"), changes))
    assert found is not None
    assert complete(load("gpt2", found)) == complete(load("gpt2", changes))
    assert len(found) <= len(changes) + 2


def test_no_assignment_without_need():
    assert assignments(read("gpt2"), varied(read("gpt2"), ["position.kind=rope", "d_model=768"])) == [
        "position.kind=rope"
    ]


@pytest.mark.parametrize(
    "pair", [("gpt2", "llama-3-8b"), ("bert-base", "t5-small"), ("vit-base-16", "bert-base")]
)
def test_presets_have_assignments_from_one_to_another(pair):
    first, second = pair
    found = assignments(read(first), read(second))
    assert found is not None
    assert differences(load(first, found), load(second)) == []


def test_a_mapping_without_a_kind_reads_as_yaml():
    norms = load("tiny-gpt", ["decoder.block.attention.qk_norm={norm: {kind: rms_norm}}"])
    (text,) = (each.text() for each in differences(load("tiny-gpt"), norms))
    assert text.startswith("decoder.block.attention.qk_norm none \u2192 {norm: {kind: rms_norm, eps: ")
