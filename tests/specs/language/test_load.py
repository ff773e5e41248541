"""From a reference to a model: extends, --set, named blocks, and what a user is told about every mistake."""

import re
from textwrap import dedent
from typing import Any
from unittest.mock import ANY

import pytest

from specs.base.errors import SpecError, path_text
from specs.forms.canonical import complete
from specs.forms.difference import differences
from specs.forms.resolved import resolved
from specs.forms.variation import assignments
from specs.forms.written_out import written_out
from specs.language.load import MAX_EXTENDS, MAX_NAME, load, read, varied
from specs.language.named_blocks import with_named_blocks
from specs.language.reading import read_text
from specs.language.validation import validate
from specs.language.writing import dump


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes files into an empty working directory."""
    monkeypatch.chdir(tmp_path)

    def put(name, text):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(dedent(text))
        return name

    return put


def told(reference, *assignments):
    """What a user reads."""
    with pytest.raises(SpecError) as caught:
        load(reference, assignments)
    return str(caught.value)


# ---------------------------------------------------------------------------------------------------- extends


def test_a_spec_extends_a_preset_with_changes(write):
    model = load(write("a.yaml", "extends: gpt2\nname: a\ndecoder: {block: {attention: {heads: 6}}}\n"))
    base = load("gpt2")
    assert model.decoder.block.attention.heads == 6
    assert model.decoder.block.feed_forward == base.decoder.block.feed_forward
    assert (model.name, model.d_model) == ("a", base.d_model)


def test_a_spec_extends_a_file_in_its_directory(write):
    write("deep/base.yaml", "extends: bert-base\nname: base\nvocab_size: 100\n")
    model = load(write("deep/a.yaml", "extends: base.yaml\nname: a\n"))
    assert model.vocab_size == 100


def test_another_kind_keeps_only_the_keys_that_it_takes(write):
    write("base.yaml", "extends: gpt2\nname: base\ndecoder: {block: {norm: {eps: 1.0e-7, bias: false}}}\n")
    model = load(write("a.yaml", "extends: base.yaml\ndecoder: {block: {norm: {kind: rms_norm}}}\n"))
    norm = model.decoder.block.norm
    assert (norm.kind, norm.eps) == ("rms_norm", 1e-7)
    assert not hasattr(norm, "bias")


def test_another_kind_keeps_no_default_of_the_kind_before_it():
    rotary: Any = load("gpt2", ["position={kind: sinusoidal, layout: interleaved}", "position.kind=rope"])
    assert (
        rotary.position.layout == "half_split"
    )  # what sinusoidal positions have by default was not asked for
    latent = "{kind: latent, heads: 4, kv_rank: 8, head_dim: 4, rope_dim: 2, value_dim: 4}"
    for bias, kept in (("true", False), ("{query: true, key: true, value: true, output: true}", False)):
        changes = [f"decoder.block.attention.bias={bias}", f"decoder.block.attention={latent}"]
        assert load("gpt2", changes).decoder.block.attention.bias is kept


@pytest.mark.parametrize("name", ["bert-base", "gemma3-1b", "deepseek-v2-lite", "t5-small", "vit-base-16"])
def test_a_spec_that_was_written_out_reacts_to_changes_like_the_one_it_was_written_from(name):
    model = load(name)
    stack = "encoder" if model.decoder is None else "decoder"
    shown = read_text(dump(resolved(model)), "shown.yaml")
    for change in (
        "head={kind: pooled, pooling: mean, normalize: true}",
        "head.kind=masked_language_modeling",
        "position.kind=rope",
        "position.kind=sinusoidal",
        f"{stack}.block.norm.kind=rms_norm",
        f"{stack}.block.norm.kind=layer_norm",
        f"{stack}.block.norm.eps=0.001",
        f"{stack}.block.kind=post_norm",
        f"{stack}.block.attention.kind=multi_query",
        f"{stack}.block.attention.heads=2",
        f"{stack}.block.feed_forward.kind=mlp",
    ):
        found: list[Any] = []
        for document in (read(name), shown):
            try:
                found.append(complete(validate(with_named_blocks(varied(document, [change])))))
            except SpecError as error:
                found.append([(problem.path, problem.rule) for problem in error.problems])
        assert found[0] == found[1], change


def test_named_blocks_of_a_resolved_stack_are_written_as_changes():
    blocks = resolved(load("gemma3-1b"))["decoder"]["blocks"]
    assert blocks == {"local": {"attention": {"window": 512, "position": ANY}}}


def test_published_counts_are_not_inherited(write):
    assert load(write("a.yaml", "extends: gpt2\nname: a\n")).expect.parameters is None
    assert load(write("b.yaml", "extends: gpt2\nname: b\nexpect: {parameters: 7}\n")).expect.parameters == 7


def test_a_cycle_of_extends_is_reported(write):
    write("a.yaml", "extends: b.yaml\n")
    write("b.yaml", "name: b\nextends: a.yaml\n")
    assert told("a.yaml").splitlines() == [
        "b.yaml:2:10: extends: must not form a cycle: a.yaml -> b.yaml -> a.yaml",
        "  value: 'a.yaml'",
        "  Extend a preset, or a file outside this cycle.",
    ]


def test_extending_an_unknown_preset(write):
    assert told(write("a.yaml", "extends: gptt2\n")).startswith(
        "a.yaml:1:10: extends: must be a preset or a file\n  value: 'gptt2'\n  Did you mean 'gpt2'?\n"
    )
    assert told(write("b.yaml", "extends: 3\n")).splitlines() == [
        "b.yaml:1:10: extends: must be a preset name or the path of a file",
        "  value: 3",
        "  Write it as in extends: bert-base.",
    ]
    assert told(write("c.yaml", "extends: gone.yaml\n")).splitlines() == [
        "c.yaml:1:10: extends: must be a preset or a file",
        "  value: 'gone.yaml'",
        "  Paths are relative to this file; `zoo list` shows the presets.",
    ]


def test_a_chain_of_specs_has_an_end(write):
    for n in range(MAX_EXTENDS + 1):
        write(f"{n}.yaml", f"extends: {f'{n - 1}.yaml' if n else 'gpt2'}\nname: s{n}\n")
    assert load(f"{MAX_EXTENDS - 1}.yaml").d_model == 768
    assert told(f"{MAX_EXTENDS}.yaml").splitlines() == [
        "0.yaml:1:10: extends: must not form a chain of more than 64 specs",
        "  value: 'gpt2'",
        "  Extend a spec nearer to the root of the chain.",
    ]


def test_only_yaml_files_are_extended(write, tmp_path):
    write("secret.txt", "root: hunter2\n")
    for name in ("secret.txt", f"{tmp_path}/secret.txt", "/etc/passwd", "/dev/zero", "gone/file"):
        place, value, remedy = told(write("a.yaml", f"extends: {name}\n")).splitlines()
        assert place == "a.yaml:1:10: extends: must be a preset or a file"
        assert value.startswith(f"  value: '{name[:40]}")  # a long one is cut
        assert remedy == "  Use a file with the suffix .yaml or .yml."


def test_inherited_blocks_are_forgotten_with_the_layers_that_used_them(write):
    model = load("gemma3-1b", ["decoder.layers=3"])
    assert (model.decoder.layers, model.decoder.blocks) == (3, {})
    write("base.yaml", "extends: gemma3-1b\nname: base\ndecoder: {layers: 3, blocks: {own: {}}}\n")
    assert told("base.yaml").startswith("base.yaml:3:36: decoder.blocks.own: must be used by a layer\n")
    used = "decoder.layers=[{use: own}, {use: local}]"
    assert load("gemma3-1b", ["decoder.layers=1", used, "decoder.blocks.own={}"]).decoder.depth == 2


def test_the_size_of_a_spec_with_its_named_blocks_is_bounded(write):
    factors = ", ".join(["1.0"] * 5000)
    scaling = f"{{kind: longrope, original_context_length: 4, short_factor: [{factors}], long_factor: [1.0]}}"
    blocks = "".join(f"    b{n}: {{}}\n" for n in range(50))
    text = (
        "extends: gpt2\nname: a\ndecoder:\n  block: {attention: {position: {kind: rope, scaling: "
        + scaling
        + "}}}\n"
    )
    message = told(write("a.yaml", f"{text}  blocks:\n{blocks}"))
    assert (
        ": a spec must have at most 200000 values, including its base and its named blocks written out"
        in message
    )
    write("base.yaml", f"extends: gpt2\nsummary: a\nlist: [{', '.join('x' * 15_000)}]\n")
    message = told(write("b.yaml", f"extends: base.yaml\nother: [{', '.join('x' * 15_000)}]\n"))
    assert (
        ": a spec must have at most 20000 values, including its base and its named blocks written out"
        in message
    )


def test_an_inherited_wrong_value_is_located_where_it_was_written(write):
    write("base.yaml", "extends: gpt2\nname: base\nd_modle: 3\n")
    assert told(write("a.yaml", "extends: base.yaml\n")).splitlines() == [
        "base.yaml:3:1: d_modle: is not a known key",
        "  Did you mean 'd_model'?",
    ]


def test_an_unknown_preset():
    assert told("gpt").splitlines() == [
        "A model must be a preset, a file, a checkpoint or a hub repository",
        "  value: 'gpt'",
        "  Did you mean 'gpt2'?",
        "  Or pass the path of a YAML file, a checkpoint or a GGUF file, or ORG/NAME of a hub repository; `zoo list` shows the "
        "presets.",
    ]


# ------------------------------------------------------------------------------------------------------ --set


def test_assignments_apply_in_order_and_name_the_variant():
    model = load("gpt2", ["decoder.layers=3", "decoder.layers=2", "d_model=384"])
    assert (model.decoder.layers, model.d_model) == (2, 384)
    assert model.name == "gpt2+decoder.layers=3+decoder.layers=2+d_model=384"
    assert model.expect.parameters is None


def test_a_variant_may_name_itself_and_state_its_count():
    model = load("gpt2", ["name=mine", "expect.parameters=5"])
    assert (model.name, model.expect.parameters) == ("mine", 5)


@pytest.mark.parametrize("name", ["bert-base", "gpt2", "t5-small"])
@pytest.mark.parametrize(
    "kind",
    ["learned", "sinusoidal", "rope", "alibi", "relative_bias", "disentangled", "relative_sinusoidal", "none"],
)  # fmt: skip
def test_any_position_is_one_assignment_away(name, kind):
    assignments = [f"position.kind={kind}"] + ["context_length=512"] * (name == "t5-small")
    model = load(name, assignments)
    assert model.position.kind == kind


# ----------------------------------------------------------------------------------------------- named blocks

PATTERN = """
    extends: gpt2
    name: pattern
    decoder:
      layers:
        - {use: wide, repeat: 2}
        - pattern: [{use: parallel}, {repeat: 2}]
          repeat: 3
      blocks:
        wide: {attention: {heads: 6}}
        parallel: {kind: parallel}
    """


def test_named_blocks_say_only_how_they_differ_and_patterns_repeat(write):
    stack = load(write("a.yaml", PATTERN)).decoder
    blocks = stack.layer_blocks()
    assert [block.kind for block in blocks] == ["pre_norm"] * 2 + ["parallel", "pre_norm", "pre_norm"] * 3
    assert [block.attention.heads for block in blocks[:3]] == [6, 6, 12]
    assert stack.depth == len(blocks) == 11
    assert stack.blocks["wide"].feed_forward == stack.block.feed_forward


def test_a_named_block_may_unset_a_field_of_its_block(write):
    model = load(
        "gpt2",
        [
            "decoder.block.attention.head_dim=32",
            "decoder.blocks.whole.attention.head_dim=null",
            "decoder.layers=[{use: whole}]",
        ],
    )
    assert model.decoder.blocks["whole"].attention.head_dim is None
    shown = dump(resolved(model))
    assert "head_dim: null" in shown
    assert load(write("shown.yaml", shown)) == model


def test_a_named_block_may_remove_a_part_of_its_block(write):
    """By null, which stays wherever the spec is written: without it the block's own part would come back."""
    norms = "decoder.block.attention.qk_norm={norm: {kind: rms_norm}}"
    removed = "decoder.blocks.plain.attention={qk_norm: null, position: {kind: none}}"
    layers = "decoder.layers=[{pattern: [{}, {use: plain}], repeat: 6}]"
    model = load("gpt2", ["position={kind: rope}", norms, removed, layers])
    attentions = [block.attention for block in model.decoder.layer_blocks()]
    assert [each.qk_norm is None for each in attentions] == [False, True] * 6
    assert resolved(model)["decoder"]["blocks"]["plain"]["attention"]["qk_norm"] is None
    assert load(write("shown.yaml", dump(resolved(model)))) == model
    whole = write("whole.yaml", dump(written_out(model)))
    assert written_out(model)["decoder"]["blocks"]["plain"]["attention"]["qk_norm"] is None
    assert complete(load(whole)) == complete(model)
    assert [layer["attention"]["qk_norm"] is None for layer in complete(model)["decoder"]["layers"][:2]] == [
        False,
        True,
    ]
    kept = load("gpt2", ["position={kind: rope}", norms, removed.replace("qk_norm: null, ", ""), layers])
    (found,) = differences(kept, model)
    assert (path_text(found.path), found.layers) == ("decoder.block.attention.qk_norm", (1, 3, 5, 7, 9, 11))
    steps = assignments(read(write("kept.yaml", dump(resolved(kept)))), read(whole))
    assert steps is not None
    assert "decoder.blocks.plain.attention.qk_norm=null" in steps


def test_a_default_that_is_left_out_is_written_where_it_unsets_something(write):
    model = load(
        "gpt2",
        [
            "decoder.block.attention.sinks=true",
            "decoder.blocks={plain: {attention: {sinks: false}}, other: {}}",
            "decoder.layers=[{use: plain, repeat: 2, shared: true}, {pattern: [{use: other}], repeat: 3}]",
        ],
    )
    data = resolved(model)["decoder"]
    assert data["block"]["attention"]["sinks"] is True
    assert data["blocks"]["plain"]["attention"]["sinks"] is False
    assert "sinks" not in resolved(load("gpt2"))["decoder"]["block"]["attention"]
    assert data["layers"][0] == {"use": "plain", "repeat": 2, "shared": True}
    assert data["layers"][1] == {"pattern": [{"use": "other", "repeat": 1}], "repeat": 3}
    assert load(write("shown.yaml", dump(resolved(model)))) == model


@pytest.mark.parametrize(
    ("layers", "owners"),
    [
        ("3", [0, 1, 2]),
        ("[{repeat: 2}, {repeat: 3, shared: true}, {}]", [0, 1, 2, 2, 2, 5]),
        ("[{}, {pattern: [{}, {repeat: 2}], repeat: 2, shared: true}]", [0, 1, 2, 3, 1, 2, 3]),
        ("[{pattern: [{repeat: 2, shared: true}, {}], repeat: 2}]", [0, 0, 2, 3, 3, 5]),
    ],
)
def test_which_layers_are_the_same(layers, owners):
    assert load("gpt2", [f"decoder.layers={layers}"]).decoder.owners() == owners


# --------------------------------------------------------------------------------------------------- messages

LATENT = "{kind: latent, heads: 4, kv_rank: 16, head_dim: 12, rope_dim: 8, value_dim: 10}"
MIXTURE = "{kind: mixture, experts: 8, top_k: 2, expert: {kind: mlp, hidden: 6, activation: relu}}"
MIXTURE_FAULTS = [
    ("top_k", 9, "top_k: must not exceed experts, which is 8\n  value: 9\n  Use 1 to 8."),
    ("expert", "{kind: mixture, experts: 2, top_k: 2, expert: {kind: mlp, hidden: 6, activation: relu}}",
     "expert.kind: must be mlp or gated, because the matrices of all experts are one tensor\n  value: 'mixture'\n"
     "  Use mlp or gated."),
    ("expert", "{kind: mlp, hidden: 6, activation: xielu}",
     "expert.activation: must be without parameters in experts, which share one activation\n  value: 'xielu'\n"
     "  Use relu2 or silu."),
    ("shared_gate", "true", "shared_gate: requires a shared feed-forward\n  value: True\n"
     "  Remove it, or add shared."),
    ("shared", "{kind: mixture, experts: 2, top_k: 3, expert: {kind: mlp, hidden: 6, activation: relu}}",
     "shared.top_k: must not exceed experts, which is 2\n  value: 3\n  Use 1 to 2."),
    ("router", "{groups: {count: 3, top: 1}}", "router.groups.count: must divide experts, which is 8\n  value: 3\n"
     "  Use a divisor: 1, 2, 4, 8."),
    ("router", "{groups: {count: 2, top: 3}}", "router.groups.top: must not exceed count, which is 2\n  value: 3\n"
     "  Use 1 to 2."),
    ("router", "{groups: {count: 8, top: 1}}", "router.groups.top: must leave at least top_k experts, which is 2, "
     "and a group has 1\n  value: 1\n  Use 2 or more."),
    ("router", "{groups: {count: 4, top: 1, group_score_top_k: 3}}", "router.groups.group_score_top_k: must not exceed the "
     "number of experts per group, which is 2\n  value: 3\n  Use 1 to 2."),
]  # fmt: skip
HEADS = "1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384"


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        (["d_modle=3"], "d_modle: is not a known key\n  Did you mean 'd_model'?"),
        (["decoder.block.attention.head=7"], "decoder.block.attention.head: is not a known key\n"
         "  Did you mean 'heads'?"),
        (["position.kind=ropee"], "position.kind: must be a registered position kind\n  value: 'ropee'\n"
         "  Did you mean 'rope'?"),
        (["decoder.block.norm.kind=mlp"], "decoder.block.norm.kind: must be a registered norm kind\n  value: 'mlp'\n"
         "  mlp is a kind of feed_forward and connector. Choose from: layer_norm, rms_norm, batch_norm, affine, none."),
        (["position=rope"], "position: must be a mapping with a `kind` of position\n  value: 'rope'\n"
         "  Write a mapping, such as {kind: rope}."),
        (["position=7"], "position: must be a mapping with a `kind` of position\n  value: 7\n"
         "  Write a mapping with a kind: learned, sinusoidal, convolutional, stacked_convolutional, rope, alibi, relative_bias, none, disentangled, axial_rope, interpolated, relative_bias_2d, relative_key, relative_boxes, relative_sinusoidal."),
        (["decoder.block=3"],
         "decoder.block: must be a mapping with a `kind` of block\n  value: 3\n"
         "  Write a mapping with a kind: pre_norm, post_norm, parallel, reordered_norm, sandwich, normed_residual, side_transformer, conformer, bottleneck, two_streams."),
        (["position={theta: 3.0}", "position.kind=null"], "position.kind: must be a registered position kind\n"
         "  value: None\n  Did you mean 'none'?"),
        (["d_model=-1"], "d_model: must be greater than 0\n  value: -1\n  Use 1 or more."),
        (["d_model=abc"], "d_model: must be a whole number\n  value: 'abc'"),
        (["vocab_size=true"], "vocab_size: must be a whole number\n  value: True"),
        (["decoder.block.norm.eps=a"], "decoder.block.norm.eps: must be a number\n  value: 'a'"),
        (["decoder.block.norm.eps=.nan"], "decoder.block.norm.eps: must be a finite number\n  value: nan\n  Use a finite number, such as 1.0e-5."),
        (["decoder.block.dropout=1.0"], "decoder.block.dropout: must be less than 1\n  value: 1.0\n  Use a number below 1.0."),
        (["decoder.causal=yes"], "decoder.causal: must be true or false\n  value: 'yes'\n  Write true."),
        (["decoder.causal=0"], "decoder.causal: must be true or false\n  value: 0\n  Write false."),
        (["head.bias=Yes"], "head.bias: must be true or false, or 'fixed'\n  value: 'Yes'\n  Write true."),
        (["decoder.block.attention.bias=no"], "decoder.block.attention.bias: must be true, false, or a mapping "
         "of query, key, value and output\n  value: 'no'\n  Write false."),
        (["decoder.layers=null"], "decoder.layers: must be a whole number\n  value: None\n"
         "  Write a number, or remove the key."),
        (["decoder.causal=false"], "decoder.causal: must not be false: a decoder predicts each token from those "
         "before it\n  value: False\n  Remove it, or make the stack an encoder."),
        (["decoder.blocks={idle: {}}"], "decoder.blocks.idle: must be used by a layer\n  value: 'pre_norm'\n"
         "  Add {use: idle} to the list of layers, or remove the block."),
        (["summary=3"], "summary: must be a string\n  value: 3"),
        (["embedding=null"], "embedding: must be a mapping with a `kind` of embedding\n  value: None\n"
         "  Write a mapping with a kind: tokens, next_token, patches, spectrogram, spectrogram_patches, frames, subsampled_spectrogram, packed_patches, waveform, filtered_waveform."),
        (["embedding.scale=sqrt"], "embedding.scale: must be a number, or 'sqrt_d_model'\n  value: 'sqrt'\n"
         "  Did you mean 'sqrt_d_model'?"),
        (["head.tie_embeddings=7"], "head.tie_embeddings: must be true or false\n  value: 7"),
        (["name=a b"], "name: must match ^[A-Za-z0-9][A-Za-z0-9._+=,@-]*$\n  value: 'a b'\n"
         "  Use letters, digits and . _ - + = , @ only."),
        (["architecture=enc"], "architecture: must be 'encoder', 'decoder', 'encoder-decoder', 'dual-encoder' or "
         "'vision-language'\n  value: 'enc'\n  Did you mean 'encoder'?"),
        (["decoder.block.attention.bias=maybe"], "decoder.block.attention.bias: must be true, false, or a mapping "
         "of query, key, value and output\n  value: 'maybe'"),
        (["decoder.block.attention={kind: grouped_query, heads: 12}"],
         "decoder.block.attention.kv_heads: is required\n  Add kv_heads."),
        # layers
        (["decoder.layers=1000000000"], "decoder.layers: must be less than or equal to 10000\n"
         "  value: 1000000000\n  Use 10000 or less."),
        (["decoder.layers=[{repeat: 9000}, {repeat: 9000}]"], "decoder.layers: must have at most 10000 layers in total\n"
         "  value: 18000\n  Reduce repeat."),
        (["decoder.layers=[]"], "decoder.layers: must have at least 1 item\n  value: []\n  Add one."),
        (["decoder.layers=[{pattern: []}]"], "decoder.layers[0].pattern: must have at least 1 item\n"
         "  value: []\n  Add one."),
        (["decoder.layers=[{pattern: [{repeat: x}]}]"],
         "decoder.layers[0].pattern[0].repeat: must be a whole number\n  value: 'x'"),
        (["decoder.layers=[{uze: a}]"], "decoder.layers[0].uze: is not a known key\n  Did you mean 'use'?"),
        (["decoder.layers=[2]"], "decoder.layers[0]: must be a mapping\n  value: 2\n  Write {repeat: 2}."),
        (["decoder.layers=[local]"], "decoder.layers[0]: must be a mapping\n  value: 'local'\n  Write {use: local}."),
        (["decoder.layers=[{pattern: [local]}]"],
         "decoder.layers[0].pattern[0]: must be a mapping\n  value: 'local'\n  Write {use: local}."),
        (["decoder.layers=[{use: a}]"], "decoder.layers[0].use: must be one of the stack's named blocks\n"
         "  value: 'a'\n  Define it under `blocks`."),
        (["decoder.blocks={small: {}}", "decoder.layers=[{pattern: [{use: smal}]}]"],
         "decoder.layers[0].pattern[0].use: must be one of the stack's named blocks\n  value: 'smal'\n"
         "  Did you mean 'small'?"),
        (["decoder.blocks={odd: {attention: {heads: 5}}}", "decoder.layers=[{use: odd}]"], "decoder.blocks.odd.attention.heads: must divide "
         f"d_model, which is 768\n  value: 5\n  Use a divisor: {HEADS}; or set head_dim."),
        # rules that span fields
        (["position={kind: rope, dimensions: 2, scaling: {kind: longrope, original_context_length: 64, "
          "short_factor: [1.0], long_factor: [1.0, 2.0]}}"], "position.scaling.long_factor: must have as many numbers as "
         "short_factor, which has 1\n  value: 2\n  Use lists of equal length."),
        (["position={kind: rope, scaling: {kind: longrope, original_context_length: 64, short_factor: [1.0], "
          "long_factor: [1.0]}}"], "position.scaling.short_factor: must have one number per rotated pair, "
         "32 for 64 dimensions\n  value: 1\n  Use 32 numbers, or dimensions: 2."),
        (["position={kind: rope, dimensions: 2, scaling: {kind: longrope, original_context_length: 64, "
          "short_factor: [1.0], long_factor: [2.0]}}", "context_length=null"], "position.scaling.attention_factor: requires "
         "the model's context_length for its default\n  value: None\n"
         "  Add context_length: 131072, or set attention_factor."),
        (["position={kind: rope, dimensions: 2, scaling: {kind: dynamic_ntk, factor: 2, original_context_length: 64}}"],
         "position.scaling.kind: requires more than one rotated pair, because the first keeps its frequency\n"
         "  value: 'dynamic_ntk'\n  Rotate 4 dimensions or more, or use linear."),
        ([f"decoder.block.attention={LATENT}", "decoder.block.attention.rope_dim=5"],
         "decoder.block.attention.rope_dim: must be even: dimensions rotate in pairs\n  value: 5\n  Use 4 or 6."),
        ([f"decoder.block.attention={LATENT}", "position={kind: rope, dimensions: 12}"], "position.dimensions: must not "
         "exceed the width of a head, which is 8\n  value: 12\n  Use an even number up to 8."),
        (["decoder.block.attention.heads=7"], "decoder.block.attention.heads: must divide d_model, which is 768\n"
         f"  value: 7\n  Use a divisor: {HEADS}; or set head_dim."),
        (["decoder.block.attention={kind: grouped_query, heads: 12, kv_heads: 5}"],
         "decoder.block.attention.kv_heads: must divide heads, which is 12\n  value: 5\n"
         "  Use a divisor: 1, 2, 3, 4, 6, 12."),
        *[([f"decoder.block.feed_forward={MIXTURE}", f"decoder.block.feed_forward.{path}={value}"],
           f"decoder.block.feed_forward.{where}") for path, value, where in MIXTURE_FAULTS],
        (["decoder.block.cross_attention={kind: multi_head, heads: 12}"], "decoder.block.cross_attention: belongs "
         "only in the decoder of an encoder-decoder\n  value: 'multi_head'\n"
         "  Remove it, or set architecture: encoder-decoder."),
        (["head.tie_embeddings=true", "embedding.width=128"], "head.tie_embeddings: needs an embedding as wide as "
         "d_model, which is 768; embedding.width is 128\n  value: True\n"
         "  Set projection: true, tie_embeddings: false, or embedding.width: 768."),
        (["head={kind: masked_language_modeling, dense_width: 5, norm: {kind: layer_norm}}"], "head.dense_width: must exceed "
         "the width of the token table, which is 768, where scores use it\n  value: 5\n  Set tie_embeddings: false, or remove "
         "dense_width."),
        (["head={kind: question_answering, relevance: true}"], "head.relevance: must be false in a decoder, whose first token "
         "sees no other\n  value: True\n  Remove it."),
        (["head={kind: question_answering, dense_bias: false}"], "head.dense_bias: belongs to a dense layer, which "
         "activation adds\n  value: False\n  Add activation: (identity for none), or remove dense_bias."),
        (["head={kind: classification, labels: 2, pooling: last, dense_width: 5}"], "head.dense_width: belongs to a dense "
         "layer, which activation adds\n  value: 5\n  Add activation: (identity for none), or remove dense_width."),
        (["head={kind: classification, labels: 2, pooling: last, transform: tokens}"], "head.transform: belongs to a "
         "dense layer, which activation adds\n  value: 'tokens'\n"
         "  Add activation: (identity for none), or remove transform."),
        (["head={kind: masked_language_modeling}"], "head.norm: is required after the dense layer\n"
         "  Add norm: {kind: layer_norm}, or remove the dense layer with activation: null."),
        (["head={kind: masked_language_modeling, activation: null, norm: {kind: layer_norm}}"], "head.norm: requires a "
         "dense layer, which activation adds\n  value: 'layer_norm'\n"
         "  Add activation: (identity for none), or remove norm."),
        (["head={kind: masked_language_modeling, activation: null, tie_embeddings: true}", "embedding.width=128"],
         "head.tie_embeddings: needs an embedding as wide as d_model, which is 768; embedding.width is 128\n"
         "  value: True\n  Set activation: gelu, tie_embeddings: false, or embedding.width: 768."),
        (["head={kind: pooled}"], "head.pooling: must not be first in a decoder, whose first token sees no other\n"
         "  value: 'first'\n  Use last or mean."),
        (["head={kind: pooled, pooling: {token: 50257}}"], "head.pooling.token: must be below vocab_size, "
         "which is 50257\n  value: 50257\n  Use 0 to 50256."),
        (["head={kind: pooled, pooling: {token: 3, tokn: 3}}"], "head.pooling.tokn: is not a known key\n"
         "  Did you mean 'token'?"),
        (["head={kind: pooled, pooling: middle}"], "head.pooling: must be 'first', 'last', 'mean', 'max', 'weighted_mean', 'mean_sqrt_length', 'patches' or 'first_two'\n"
         "  value: 'middle'\n  Choose from: first, last, mean, max, weighted_mean, mean_sqrt_length, patches, first_two."),
        (["head.bias=fixd"], "head.bias: must be true or false, or 'fixed'\n  value: 'fixd'\n  Did you mean 'fixed'?"),
        (["position={kind: rope, dimensions: 7}"], "position.dimensions: must be even: dimensions rotate in pairs\n"
         "  value: 7\n  Use 6 or 8."),
        (["position={kind: rope, dimensions: 100}"], "position.dimensions: must not exceed the width of a head, "
         "which is 64\n  value: 100\n  Use an even number up to 64."),
        (["position={kind: rope}", "decoder.block.attention.head_dim=3"], "position.kind: requires an even head width, because "
         "dimensions rotate in pairs; it is 3\n  value: 'rope'\n"
         "  Set an even head_dim or another number of heads, or rotate part of each head with dimensions: 2."),
        (["position={kind: rope}", "decoder.block.attention.head_dim=1"], "position.kind: requires an even head width, because "
         "dimensions rotate in pairs; it is 1\n  value: 'rope'\n  Set an even head_dim or another number of heads."),
        (["position={kind: sinusoidal}", "d_model=769", "decoder.block.attention.heads=1"],
         "position.kind: requires an even d_model, with a sine and a cosine per frequency; it is 769\n"
         "  value: 'sinusoidal'\n  Use d_model: 768 or 770."),
        (["position={kind: relative_bias, buckets: 1}"], "position.buckets: must be greater than or equal to 2\n"
         "  value: 1\n  Use 2 or more."),
        (["position={kind: relative_bias, max_distance: 16}"], "position.max_distance: must exceed 16, the "
         "number of distances with their own bucket\n  value: 16\n  Use 17 or more."),
        (["position={kind: disentangled, buckets: 9}"], "position.buckets: must be even: half the buckets hold one "
         "distance each\n  value: 9\n  Use 8 or 10."),
        (["position={kind: disentangled, buckets: 20, max_distance: 11}"], "position.max_distance: must be at least 12, "
         "because 10 distances on either side have their own bucket\n  value: 11\n  Use 12 or more, or remove buckets."),
        (["decoder.block.attention={kind: latent, heads: 2, kv_rank: 8, head_dim: 4, rope_dim: 2, value_dim: 4}",
          "position={kind: disentangled}"],
         "position.kind: requires query and key projections of d_model, and latent attention has none\n"
         "  value: 'disentangled'\n  Use rope, or an attention of kind multi_head, grouped_query or multi_query."),
        (["position={kind: alibi}", "decoder.blocks={few: {attention: {heads: 6}}}",
          "decoder.layers=[{}, {use: few}]"],
         "position.kind: requires equal numbers of heads in all blocks, because the layers of a stack share its biases\n"
         "  value: 'alibi'\n  The blocks have 6 and 12 heads: make them equal, or use rope."),
        (["decoder.block.attention.chunk=0"], "decoder.block.attention.chunk: must be greater than or equal to 1\n"
         "  value: 0\n  Use 1 or more."),
        (["decoder.block.attention={kind: multi_head, heads: 12, window: 4, chunk: 8}"], "decoder.block.attention.chunk: must not be "
         "set beside window, which limits what a query sees too\n  value: 8\n  Remove one of them."),
        (["decoder.block.attention.window=0"], "decoder.block.attention.window: must be greater than or equal to 1\n"
         "  value: 0\n  Use 1 or more."),
        (["decoder.block.attention.position={kind: learned}"], "decoder.block.attention.position.kind: must be "
         "a position that acts inside attention\n  value: 'learned'\n"
         "  Use rope, alibi, relative_bias, disentangled or none, or set the position of the model."),
        (["decoder.block.attention.position={kind: rope, dimensions: 100}"], "decoder.block.attention.position."
         "dimensions: must not exceed the width of a head, which is 64\n  value: 100\n"
         "  Use an even number up to 64."),
        (["decoder.block.attention.qk_norm={norm: {kind: none}, over: each_head}"], "decoder.block.attention."
         "qk_norm.norm.kind: must be a norm with weights per head\n  value: 'none'\n"
         "  Use layer_norm or rms_norm, or set over: head."),
        (["decoder.block.attention.qk_norm={norm: {kind: rms_norm}, over: width, after_rotation: true}"],
         "decoder.block.attention.qk_norm.over: must be head after rotation, which takes heads apart\n  value: 'width'\n"
         "  Use over: head, or remove after_rotation."),
        (["decoder.block.norm={kind: layer_norm, unit_offset: true, weight: false}"], "decoder.block.norm.unit_offset: "
         "must be false in a norm without a weight\n  value: True\n  Remove it, or set weight: true."),
        (["decoder.block={kind: parallel, attention_norm: {kind: none}}"], "decoder.block.attention_norm: must not "
         "be set if the branches share one norm\n  value: 'none'\n  Set norms: separate, or remove it."),
        (["decoder.d_model=512"], "decoder.d_model: must equal that of the model, which has no other stack\n  value: 512\n"
         "  Remove it, and set d_model of the model."),
        (["position={kind: rope, scaling: {kind: linear, factor: 0.5}}"],
         "position.scaling.factor: must be greater than or equal to 1\n  value: 0.5\n  Use 1.0 or more."),
        (["position={kind: rope, scaling: {kind: yarn, factor: 2, original_context_length: 9, beta_fast: 0.5}}"],
         "position.scaling.beta_fast: must be at least beta_slow, which is 1.0\n  value: 0.5\n"
         "  Use beta_fast: 32 and beta_slow: 1, as in the paper."),
        (["position={kind: rope, scaling: {kind: llama3, factor: 8, low_freq_factor: 4, high_freq_factor: 1, "
          "original_context_length: 9}}"],
         "position.scaling.high_freq_factor: must not be below low_freq_factor, which is 4.0\n  value: 1.0\n"
         "  Use 4.0 or more; Llama 3.1 has 4.0 with low_freq_factor 1.0."),
    ],
)  # fmt: skip
def test_an_error_has_option_path_rule_value_and_remedy(assignments, message):
    text = told("gpt2", *assignments)
    options = [f"assignments {assignment}: " for assignment in assignments]
    option = next(option for option in options if text.startswith(option))
    assert text == option + message


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [("window", "4", "4"), ("chunk", "4", "4"), ("position", "{kind: rope}", "'rope'")],
)
def test_a_decoder_has_no_distance_from_its_encoder(key, value, shown):
    path = "decoder.block.cross_attention"
    text = told("torch-transformer", f"{path}={{kind: multi_head, heads: 8, {key}: {value}}}")
    rule = "must not be set, because encoder and decoder tokens have no relative distance"
    assert text.endswith(f": {path}.{key}: {rule}\n  value: {shown}\n  Remove it, or set {key} on attention.")


def test_a_single_expert_may_be_weighted_by_a_sigmoid():
    mixture = "{kind: mixture, experts: 1, top_k: 1, expert: {kind: mlp, hidden: 6, activation: relu}}"
    sigmoid = "decoder.block.feed_forward.router={scores: sigmoid, normalize: false}"
    assert load("gpt2", [f"decoder.block.feed_forward={mixture}", sigmoid])


def test_a_slope_that_favours_one_side_has_no_place_in_a_bidirectional_stack():
    assert (
        "position.precision: must be float32 in a bidirectional stack, because rounding errors grow with the key position"
        in told("bert-base", "position={kind: alibi, precision: bfloat16}")
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("encoder.block.attention.chunk=4", "encoder.block.attention.chunk: requires a causal stack\n  value: 4\n"
         "  Remove it, or use window."),
        ("position={kind: none, query_scaling: {beta: 0.1, length: 8}}", "position.query_scaling: requires a causal stack, "
         "where a query sees more keys the later it is\n  value: 8\n  Remove it."),
    ],
)  # fmt: skip
def test_what_counts_from_the_first_token_on_has_no_place_in_a_bidirectional_stack(change, message):
    assert message in told("bert-base", change)


def test_a_missing_key_is_located_at_its_mapping(write):
    assert told(write("a.yaml", "name: a\n")).splitlines() == [
        "a.yaml:1:1: architecture: is required",
        "  Add architecture: encoder, decoder, encoder-decoder, dual-encoder or vision-language.",
        "a.yaml:1:1: d_model: is required",
        "  Add d_model.",
    ]


def test_the_parts_of_a_block_without_a_kind_are_checked_too(write):
    block = "{norm: rms, attention: {kind: gqa, n_heads: 3}, feed_forward: {kind: mlp, activation: relu, hidden: x}}"
    text = (
        "name: a\narchitecture: decoder\nd_model: 8\nvocab_size: 8\n"
        + f"decoder:\n  layers: 2\n  block: {block}\n"
    )
    rules = [
        line.split(": ", 1)[1]
        for line in told(write("a.yaml", text)).splitlines()
        if line.startswith("a.yaml")
    ]
    assert rules == [
        "decoder.block: needs a `kind` of block",
        "decoder.block.norm: must be a mapping with a `kind` of norm",
        "decoder.block.attention.kind: must be a registered attention kind",
        "decoder.block.attention.kv_heads: is required",
        "decoder.block.attention.n_heads: is not a known key",
        "decoder.block.feed_forward.hidden: must be a whole number",
    ]


def test_a_fault_that_named_blocks_inherit_is_reported_once(write):
    text = (
        "extends: tiny-gpt\nname: a\ndecoder:\n  layers: [{use: wide}, {}]\n"
        "  blocks: {wide: {feed_forward: {hidden: 8}}}\n  block: {attention: {head: 3}}\n"
    )
    assert told(write("a.yaml", text)).splitlines() == [
        "a.yaml:6:23: decoder.block.attention.head: is not a known key",
        "  Did you mean 'heads'?",
    ]


def test_the_stacks_must_be_those_of_the_architecture(write):
    text = told(write("a.yaml", "extends: gpt2\narchitecture: encoder\n"))
    assert "encoder: is required by architecture: encoder\n" in text
    assert "decoder: does not belong to architecture: encoder\n" in text
    assert "Remove it, or set architecture: decoder." in text


def test_learned_positions_need_a_length(write):
    text = told(write("a.yaml", "extends: gpt2\ncontext_length: null\n"))
    assert "position.kind: requires the model's context_length, the number of rows of its table" in text
    assert "Add context_length: 512, or use sinusoidal, rope, alibi, relative_bias or disentangled." in text


def test_buckets_are_counted_for_both_directions_of_a_bidirectional_stack():
    text = told("t5-small", f"decoder.block.attention={LATENT}", "position={kind: rope}")
    assert "decoder.block.attention.kind: must support attention to the encoder output" in text
    assert "Set a cross_attention of kind multi_head, grouped_query or multi_query." in text
    cross = f"decoder.block.cross_attention={LATENT}"
    assert "decoder.block.cross_attention.kind: must support attention to" in told(
        "t5-small", cross, "position={kind: rope}"
    )
    text = told("t5-small", "position.buckets=3")
    assert "position.buckets: must be at least 4 in a bidirectional stack" in text
    assert "Use 4 or more." in text


def test_all_problems_are_reported_in_line_order(write):
    text = told(write("a.yaml", "extends: gpt2\nd_modle: 4\nhead: {tied: 1}\nvocab_size: x\n"))
    assert [line for line in text.splitlines() if line.startswith("a.yaml")] == [
        "a.yaml:2:1: d_modle: is not a known key",
        "a.yaml:3:8: head.tied: is not a known key",
        "a.yaml:4:13: vocab_size: must be a whole number",
    ]


def test_a_spec_cannot_be_changed_after_it_was_checked():
    with pytest.raises(ValueError, match="frozen"):
        load("gpt2").d_model = 5


def test_the_name_of_a_long_variant_is_short_and_tells_variants_apart():
    changes = ["decoder.block.norm.kind=rms_norm", "decoder.block.norm.eps=1.0e-6", "position.kind=rope"]
    names = [load("gpt2", changes[:count]).name for count in (1, 2, 3)]
    assert names[0] == "gpt2+decoder.block.norm.kind=rms_norm"
    assert re.fullmatch(r"gpt2\+2-changes-[0-9a-f]{6}", names[1])
    assert re.fullmatch(r"gpt2\+3-changes-[0-9a-f]{6}", names[2])
    other = load("gpt2", [*changes[:1], "decoder.block.norm.eps=1.0e-7"]).name
    assert other != names[1] == load("gpt2", changes[:2]).name
    assert load("gpt2", [*changes, "name=mine"]).name == "mine"
    assert max(map(len, names)) <= MAX_NAME
