"""Drawings: what is read from a spec, and that it can be seen."""

import json
import re
import struct
import sys
from pathlib import Path
from typing import Any, ClassVar, Literal
from xml.etree import ElementTree

import matplotlib
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from PIL import ImageFont
from torch import nn

import specs.base.registry
import zoo.registry
from specs.base.base import Component
from specs.base.errors import UserError
from specs.kinds.embedding import EmbeddingKind
from specs.kinds.head import HeadKind
from specs.language.load import load
from specs.language.preset_files import preset_names
from specs.model.model import Model
from tests.exporters.reduced_presets import structures
from tests.strategies import model_data
from tests.thinned import one_in
from tests.zoo.drawing.drawn import all_texts, check_drawing
from zoo.builder import assemble
from zoo.checks import check_shapes
from zoo.components.block import Block
from zoo.components.embedding import Embedding
from zoo.components.feed_forward import MLP
from zoo.context import StackContext
from zoo.core.facts import STREAM_METHODS
from zoo.drawing import blocks as drawn_blocks
from zoo.drawing import draw_mermaid, draw_png, draw_scene, draw_svg
from zoo.drawing import text as drawn_text
from zoo.drawing.diagram import AttentionPart, DiagramFrame, ExpertsPart, Joined, Label, Part, Sum
from zoo.drawing.diagram import parts_of as drawn_parts
from zoo.drawing.following import Fork, PathStep, way_through
from zoo.drawing.layout import lay_out
from zoo.drawing.mermaid import mermaid
from zoo.drawing.reading import read
from zoo.drawing.svg import plain, svg
from zoo.reports.parameters import parameter_report

relaxed = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def check_all(diagram):
    """Assert that a diagram holds each parameter once, and can be read in every format."""
    assert sum(part.parameters for part in diagram.parts()) == diagram.parameters
    scene = lay_out(diagram)
    check_drawing(scene, svg(scene))
    check_flowchart(mermaid(diagram))


def check_flowchart(text):
    """Assert that a text is a Mermaid flowchart of the few forms that are written, with ends that exist."""
    header, *lines = text.split("flowchart BT\n")
    assert re.fullmatch(r'---\ntitle: "[^"\n]+"\nconfig:\n  theme: neutral\n---\n', header)
    label = r'"(?:[^"<>&`\\\n]|<br/>|#\w+;)+"'
    forms = {
        "node": rf"(n\d+)(?:\[{label}\]|\(\({label}\)\)|\(\[{label}\]\))",
        "edge": r"(n\d+) (?:-->(?:\|[\w, ]+\|)?|-\.-) (n\d+)", "frame": rf"subgraph f\d+\[{label}\]", "end": r"end",
        "style": r"classDef [a-z-]+ fill:#\w{6},stroke:#\w{6},color:#\w{6}",
        "class": r"class (n\d+(?:,n\d+)*) [a-z-]+",
    }  # fmt: skip
    nodes, depth = [], 0
    for line in lines[0].splitlines():
        kind, match = next(
            (kind, m) for kind, form in forms.items() if (m := re.fullmatch(form, line.strip()))
        )
        depth += {"frame": 1, "end": -1}.get(kind, 0)
        if kind == "node":
            nodes.append(match[1])
        elif kind in ("edge", "class"):
            assert depth == 0
            assert set(re.findall(r"n\d+", " ".join(match.groups()))) <= set(nodes)
    assert depth == 0
    assert len(set(nodes)) == len(nodes)


def frames(way):
    """Labels and notes of the frames on a way, with those within them."""
    return [(frame.label, frame.note, frames(frame.way)) for frame in way if isinstance(frame, DiagramFrame)]


def attentions(diagram):
    return [part for part in diagram.parts() if isinstance(part, AttentionPart)]


# ------------------------------------------------------------------------------------------- everything is drawn


@one_in(8)
@pytest.mark.parametrize("name", preset_names()[::9])
def test_presets_are_drawn(name):
    check_all(read(load(name)))


def marks(name):
    """The marks of the parts in the drawing of a preset, as scripts read them."""
    root = ElementTree.fromstring(draw_svg(load(name)))
    return [group.attrib for group in root.iter("{http://www.w3.org/2000/svg}g") if group.attrib]


def check_marks(name):
    """Assert that every part of a drawing is marked with a module of the model, and with keys of its spec."""
    spec = load(name)
    modules = {module.path for module in parameter_report(spec).root.walk()}
    found = marks(name)
    assert len({mark["data-box"] for mark in found}) == len(found)
    for mark in found:
        assert mark.get("data-path") is None or mark["data-path"] in modules
        value: Any = spec
        for key in mark["data-keys"].split("."):
            value = value[key] if isinstance(value, dict) else getattr(value, key)
            assert value is not None or key == "final_norm", mark


@one_in(8)
@pytest.mark.parametrize("name", preset_names()[::9])
def test_parts_are_marked_with_their_modules_and_keys(name):
    check_marks(name)


def test_the_marks_of_parts_name_their_own_keys():
    gemma = {(mark.get("data-path"), mark["data-keys"]) for mark in marks("gemma2-2b")}
    assert {
        ("decoder.blocks.0", "decoder.layers"),
        ("decoder.blocks.0", "decoder.blocks.local"),
        (None, "position"),
        ("decoder.blocks.0.attention_norm", "decoder.blocks.local.norm"),
        ("decoder.blocks.0.feed_forward", "decoder.blocks.local.feed_forward"),
        ("decoder.blocks.1", "decoder.block"),
        ("head.vocabulary", "head"),
    } <= gemma
    t5 = {mark.get("data-path"): mark["data-keys"] for mark in marks("t5-small")}
    assert t5["encoder.position"] == "position"
    assert t5["decoder.blocks.0.cross_attention"] == "decoder.block.attention"


@pytest.mark.slow
def test_every_structure_is_drawn():
    for name in structures():
        check_all(read(load(name)))
        check_marks(name)


@pytest.mark.slow
@relaxed
@given(model_data())
def test_every_variant_is_drawn(data):
    check_all(read(Model.model_validate(data)))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("internvl3-1b", {"Pixel shuffle": "patches to one vector", "LayerNorm": "", "Connector": "4,096 → 896"}),
        ("idefics2-8b", {"Feed-forward, SwiGLU": "14,336 → 4,096", "Resampler": "64 queries"}),
    ],
)  # fmt: skip
def test_connectors_are_drawn_part_by_part(name, said):
    diagram = read(load(name))
    check_all(diagram)
    parts = [(part.title, part.details) for part in diagram.parts()]
    for title, detail in said.items():
        assert any(detail in " ".join(details) for found, details in parts if found == title)


# ------------------------------------------------------------------------------------- the way through a block


def way(kind, *assignments, of="gpt2"):
    """The way through the first block of a model, as nested lists of names; a sum is a set of ways as a tuple."""
    spec = load(of, [f"decoder.block.kind={kind}", *assignments])
    stack: Any = assemble(spec).decoder
    return names(way_through(stack.blocks[0]))


def names(steps):
    return [
        tuple(names(each) for each in step.ways) if isinstance(step, Fork) else step.name for step in steps
    ]


def test_where_the_norms_sit_follows_the_block():
    assert way("pre_norm") == [
        ([], ["attention_norm", "attention"]),
        ([], ["feed_forward_norm", "feed_forward"]),
    ]
    assert way("post_norm") == [
        ([], ["attention"]),
        "attention_norm",
        ([], ["feed_forward"]),
        "feed_forward_norm",
    ]
    assert way("reordered_norm") == [
        ([], ["attention", "attention_norm"]),
        ([], ["feed_forward", "feed_forward_norm"]),
    ]
    assert way("sandwich") == [
        ([], ["attention_norm", "attention", "attention_output_norm"]),
        ([], ["feed_forward_norm", "feed_forward", "feed_forward_output_norm"]),
    ]
    assert way("normed_residual") == [
        "attention_norm",
        ([], ["attention"]),
        "feed_forward_norm",
        ([], ["feed_forward"]),
    ]
    assert way("parallel") == [([], ["norm", (["attention"], ["feed_forward"])])]
    assert way("parallel", "decoder.block.norms=separate") == [
        ([], [(["attention_norm", "attention"], ["feed_forward_norm", "feed_forward"])])
    ]


def test_a_scaled_branch_is_drawn_with_its_factor():
    assert way("pre_norm", "decoder.block.residual={kind: add, scale: 0.22}") == [
        ([], ["attention_norm", "attention", "\u00d7 0.22"]),
        ([], ["feed_forward_norm", "feed_forward", "\u00d7 0.22"]),
    ]


def test_layer_scale_is_drawn_before_the_sum():
    assert way("pre_norm", "decoder.block.layer_scale=0.1") == [
        ([], ["attention_norm", "attention", "attention_scale"]),
        ([], ["feed_forward_norm", "feed_forward", "feed_forward_scale"]),
    ]
    titles = [part.title for part in read(load("dinov2-with-registers-small")).parts()]
    assert titles.count("LayerScale") == 2
    first = ["Patches through one matrix", "Class token", "Learned positions", "Registers"]
    assert titles[:4] == first
    assert "Axial RoPE" in [part.title for part in read(load("dinov3-small-16")).parts()]
    titles = [part.title for part in read(load("deit-tiny-distilled-16")).parts()]
    assert titles[1:4] == ["Class token", "Distillation token", "Learned positions"]


def test_a_scaled_stream_is_drawn_with_its_factor_and_a_feed_forward_with_its_own():
    changes = (
        "decoder.block.residual={kind: add, stream_scale: 3.5, scale: 0.5}",
        "decoder.block.feed_forward_residual={kind: add, stream_scale: 2.0}",
    )
    assert way("normed_residual", *changes) == [
        "attention_norm",
        (["\u00d7 3.5"], ["attention", "\u00d7 0.5"]),
        "feed_forward_norm",
        (["\u00d7 2"], ["feed_forward"]),
    ]


def test_without_residuals_and_norms_there_are_no_sums_and_no_norms():
    assert way("pre_norm", "decoder.block.residual.kind=none", "decoder.block.norm.kind=none") == [
        "attention",
        "feed_forward",
    ]


def test_cross_attention_reads_the_encoder():
    model: Any = assemble(load("t5-small"))
    steps = [step for fork in way_through(model.decoder.blocks[0]) for way in fork.ways for step in way]
    assert [step.name for step in steps if step.reads_encoder] == ["cross_attention"]
    model = assemble(load("t5-small", ["decoder.block.kind=parallel"]))
    ((_, branch),) = (fork.ways for fork in way_through(model.decoder.blocks[0]))
    assert names(branch) == ["norm", (["attention"], ["cross_attention"], ["feed_forward"])]


def test_the_stacks_of_a_dual_encoder_meet_in_its_head():
    """Each from its own input through its own layers and head, both to the similarity; nothing else joins them."""
    text = draw_mermaid(load("clip-vit-b32"))
    check_flowchart(text)
    titles = dict(re.findall(r'(n\d+)[\[(]+"([^<"]+)', text))
    above: dict[str, list[str]] = {}
    for start, end in re.findall(r"(n\d+) -->(?:\|[^|]*\|)? (n\d+)", text):
        above.setdefault(start, []).append(end)

    def reached(node):
        found, left = {node}, [node]
        while left:
            new = set(above.get(left.pop(), ())) - found
            found |= new
            left += new
        return found

    starts = {title: reached(node) for node, title in titles.items() if title in ("Tokens", "Image")}
    assert [titles[node] for node in sorted(starts["Tokens"] & starts["Image"])] == ["Similarity", "Logits"]
    for way in starts.values():
        own = [titles[node] for node in way]
        assert own.count("Projection") == own.count("Pooling") == own.count("Divided by its length") == 1
        assert own.count("Multi-head attention") == 1
    assert "12 \u00d7 text layer" in text
    assert "12 \u00d7 image layer" in text
    assert "first token" in text
    assert "at the highest token id" in text


@pytest.mark.parametrize("name", ["clip-vit-b32", "siglip-base-16", "owlvit-base-32"])
def test_a_dual_encoder_has_a_box_for_every_weight(name):
    diagram = read(load(name))
    assert diagram.parameters == load(name).expect.parameters
    check_all(diagram)


class Odd(nn.Module):
    """A block of a plugin's: three parts that the built-in blocks do not have, wired as none of them is."""

    def __init__(self, decides: bool = False) -> None:
        super().__init__()
        self.first, self.second, self.third = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)
        self.decides = decides

    def forward(self, x, scope, past=None, encoded=None):
        if self.decides and x.sum() > 0:
            return x, past
        y = self.first(x)
        z = x + (self.second(y) + self.third(y))
        return torch.tanh(z) * 2, past


def test_a_block_of_any_kind_is_followed():
    assert names(way_through(Odd())) == [([], ["first", (["second"], ["third"])]), "tanh", "\u00d7 2"]
    assert way_through(Odd(decides=True)) is None


class Weighted(nn.Module):
    """A block of a plugin's with weights of its own that takes whatever it is called with."""

    def __init__(self) -> None:
        super().__init__()
        self.part, self.scale = nn.Linear(2, 2), nn.Parameter(torch.ones(2))

    def forward(self, x, *rest, context=None, **more):
        self.called = nn.Module.__call__
        return x + self.part(self.scale * x)


def test_a_block_is_followed_with_its_own_weights_and_modules_stay_as_they_are():
    block, called = Weighted(), nn.Module.__call__
    assert names(way_through(block)) == [([], ["mul", "part"])]
    assert block.called is called
    assert "forward" not in vars(block.part)
    assert block(torch.zeros(2)).shape == (2,)


def joins(way):
    """What branches meet in, from the first on."""
    for element in way:
        if isinstance(element, DiagramFrame):
            yield from joins(element.way)
        elif isinstance(element, Sum):
            for branch in element.ways:
                yield from joins(branch)
            yield element.join.title if isinstance(element.join, Part) else element.join


@pytest.mark.parametrize(
    ("name", "first_layer"),
    [
        ("mobilebert-uncased", ["\u2225", "+", "+", "+"]),
        ("gemma3n-e2b-text", ["+", "+", "+", "Correct streams", "Add to other streams"]),
    ],
)
def test_branches_meet_in_a_sum_another_sign_or_the_part_that_reads_them(name, first_layer):
    diagram = read(load(name))
    check_all(diagram)
    assert list(joins(diagram.columns[0].way))[: len(first_layer)] == first_layer


def test_two_streams_are_drawn_side_by_side_with_an_attention_each():
    diagram = read(load("lilt-roberta-en-base"))
    check_all(diagram)
    (layers,) = (element for element in diagram.columns[0].way if isinstance(element, DiagramFrame))
    (both,) = layers.way
    assert both.join == "\u2225"
    titles = [[part.title for part in drawn_parts(way)] for way in both.ways]
    assert titles == [["Multi-head attention", "LayerNorm", "Feed-forward", "LayerNorm"]] * 2
    details = [part.details[0] for way in both.ways for part in drawn_parts(way) if part.details]
    assert details == [
        "12 heads \u00d7 64", "768 \u2192 3,072 \u2192 768", "12 heads \u00d7 16", "192 \u2192 768 \u2192 192",
    ]  # fmt: skip
    assert "B \u00d7 T \u00d7 (768 + 192)" in {
        e.shape for e in diagram.columns[0].way if isinstance(e, Label)
    }


@pytest.mark.parametrize(
    "name", ["deberta-v3-base", "qwen3.5-0.8b", "wav2vec2-base-960h", "lilt-roberta-en-base"]
)
def test_no_word_of_a_preset_is_cut(name):
    assert [text.text for text in all_texts(draw_scene(load(name))) if "\u2026" in text.text] == []


@pytest.mark.parametrize(
    ("name", "has"), [("mobilebert-uncased", True), ("vit-base-16", True), ("gpt2", False)]
)
def test_the_sign_of_a_concatenation_is_in_the_legend(name, has):
    texts = " ".join(text.text for text in draw_scene(load(name)).texts)
    assert ("\u2225 concatenated" in texts) == has


def test_the_parts_of_a_narrower_block_state_its_width():
    parts = {part.title: part for part in read(load("mobilebert-uncased")).parts()}
    assert parts["Feed-forward"].details == ("128 \u2192 512 \u2192 128", "ReLU")


def test_a_block_that_cannot_be_followed_is_one_box(monkeypatch):
    monkeypatch.setattr(drawn_blocks, "way_through", lambda block: None)
    diagram = read(load("gpt2"))
    check_all(diagram)
    (frame,) = (element for element in diagram.columns[0].way if isinstance(element, DiagramFrame))
    assert [part.title for part in frame.way] == ["Pre norm"]


def test_a_block_with_weights_off_its_way_is_one_box(monkeypatch):
    monkeypatch.setattr(drawn_blocks, "way_through", lambda block: (PathStep("attention"),))
    diagram = read(load("gpt2"))
    assert sum(part.parameters for part in diagram.parts()) == diagram.parameters


class OddHead(HeadKind):
    kind: Literal["odd_head"] = "odd_head"
    bins: int = 12
    flavour: str = "plain"


class OddFeedForward(Component):
    kind: Literal["odd_layer"] = "odd_layer"
    hidden: int = 6


class OddEmbedding(EmbeddingKind):
    kind: Literal["odd_embedding"] = "odd_embedding"
    rows: int = 30
    input_name: ClassVar[str] = "input_ids"
    takes_tokens: ClassVar[bool] = True


class OddEmbeddingModule(Embedding):
    def __init__(self, spec: OddEmbedding, context: StackContext) -> None:
        super().__init__(spec, context)
        self.table = nn.Embedding(spec.rows, context.d_model)


@pytest.fixture
def odd_kinds(monkeypatch):
    """Kinds of a plugin's in three slots."""
    built: dict[tuple[str, type[Component]], Any] = {
        ("head", OddHead): lambda spec, context: nn.Linear(context.d_model, spec.bins),
        ("feed_forward", OddFeedForward): lambda spec, context: nn.Linear(context.d_model, context.d_model),
        ("embedding", OddEmbedding): OddEmbeddingModule,
    }
    for (slot, kind), builder in built.items():
        name = kind.model_fields["kind"].default
        monkeypatch.setitem(specs.base.registry._slots[slot], name, specs.base.registry.Kind(kind, None))
        monkeypatch.setitem(zoo.registry._builders, kind, builder)


def test_kinds_of_plugins_are_drawn_by_their_names_and_fields(odd_kinds):
    kinds = [
        "head={kind: odd_head}",
        "decoder.block.feed_forward={kind: odd_layer}",
        "embedding={kind: odd_embedding}",
    ]
    diagram = read(load("tiny-gpt", [*kinds, "expect={}"]))
    check_all(diagram)
    told = {part.title: (part.role, part.details) for part in diagram.parts()}
    assert told["Odd head"] == ("head", ("bins 12", "flavour plain"))
    assert told["Odd layer"] == ("feed-forward", ("hidden 256",))
    assert told["Odd embedding"] == ("embedding", ("rows 30",))
    assert told["Learned positions"] == ("position", ("128 \u00d7 64",))


# ------------------------------------------------------------------------------------------------- what is folded


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpt2", [("12 \u00d7 decoder layer", "7.09M each", [])]),
        ("albert-base-v2", [("12 \u00d7 encoder layer", "7.09M, shared", [])]),
        ("deepseek-v3", [("3 \u00d7 dense", "583M each", []), ("58 \u00d7 block", "11.5B each", [])]),
        ("gemma2-2b", [("13 \u00d7", "2.02B", [("local", "77.9M each", []), ("block", "77.9M each", [])])]),
    ],
)
def test_repeated_layers_are_one_frame(name, expected):
    (column,) = read(load(name)).columns
    assert frames(column.way) == expected


@pytest.mark.parametrize(
    ("name", "title", "details"),
    [
        ("gemma2-2b", "As local below, but", ("no window",)),
        ("modernbert-base", "As local below, but", ("no window", "RoPE \u03b8 160,000")),
        ("smollm3-3b", "As block below, but", ("no RoPE",)),
    ],
)
def test_a_block_that_differs_in_one_setting_is_labelled_by_it(name, title, details):
    (part,) = (part for part in read(load(name)).parts() if part.title.startswith("As "))
    assert (part.title, part.details) == (title, details)


def test_a_block_that_comes_again_is_not_drawn_again():
    layers = "decoder.layers=[{repeat: 1}, {use: wide}, {repeat: 2}]"
    diagram = read(load("gpt2", ["decoder.blocks.wide.feed_forward.hidden=4096", layers, "expect={}"]))
    check_all(diagram)
    told = [(part.title, part.details) for part in diagram.parts() if part.title.startswith("As ")]
    assert told == [("As block below, but", ("768 \u2192 4,096 \u2192 768",)), ("As block below", ())]


# --------------------------------------------------------------------------------------------- what parts say


def test_labels_of_attention():
    (attention,) = attentions(read(load("gemma2-2b")))
    assert attention.details == (
        "8 query heads \u00d7 256", "4 key-value heads", "causal", "window 4,096", "softcap 50",
    )  # fmt: skip
    (attention,) = attentions(read(load("qwen3-0.6b")))
    assert [part.title for part in attention.on_queries_keys] == ["RMSNorm", "RoPE"]  # from below to above
    assert attention.on_queries_keys[0].parameters == 28 * 2 * 128
    assert "sinks" in attentions(read(load("gpt-oss-20b")))[0].details
    assert "chunk 8,192" in attentions(read(load("llama-4-scout-17b-16e-text")))[0].details
    assert "window \u00b164" in attentions(read(load("modernbert-base")))[1].details
    assert attentions(read(load("llama-3.1-8b")))[0].on_queries_keys[0].details[1] == "llama3 \u00d7 8"
    assert attentions(read(load("pythia-70m")))[0].on_queries_keys[0].details[1] == "16 of 64 dims"


def test_labels_of_multipliers():
    diagram = read(load("falcon-h1-0.5b"))
    (attention,) = attentions(diagram)
    assert attention.details[-1] == "output \u00d7 0.938"
    (gated,) = (part for part in diagram.parts() if part.role == "feed-forward")
    assert gated.details[-2:] == ("gate \u00d7 0.884", "output \u00d7 0.586")


def test_biases_are_drawn_next_to_the_scores():
    encoder, decoder, cross = attentions(read(load("t5-small")))
    assert (encoder.on_scores.modules, encoder.on_scores.parameters) == (("encoder.position",), 256)
    assert (decoder.on_scores.modules, decoder.on_scores.parameters) == (("decoder.position",), 256)
    assert (cross.on_scores, cross.reads_encoder) == (None, True)
    (attention,) = attentions(read(load("bloom-560m")))
    assert attention.on_scores.title == "ALiBi"
    kinds = [arrow.kind for arrow in draw_scene(load("t5-small")).arrows]
    assert (kinds.count("scores"), kinds.count("encoder"), kinds.count("tie")) == (2, 1, 2)


def test_labels_of_feed_forwards():
    said = {name: next(part for part in read(load(name)).parts() if part.role == "feed-forward") for name in ("gpt2", "llama-3-8b", "mixtral-8x7b")}  # fmt: skip
    assert said["gpt2"].details == ("768 \u2192 3,072 \u2192 768", "GELU (tanh)")
    assert said["llama-3-8b"].title == "Feed-forward, SwiGLU"
    assert said["llama-3-8b"].details == ("4,096 \u2192 2 \u00d7 14,336 \u2192 4,096",)
    assert isinstance(said["mixtral-8x7b"], ExpertsPart)
    assert said["mixtral-8x7b"].details == (
        "2 of 8 experts", "SwiGLU 14,336", "softmax router", "352M active",
    )  # fmt: skip
    scout = next(
        part for part in read(load("llama-4-scout-17b-16e-text")).parts() if part.role == "feed-forward"
    )
    assert scout.details[:4] == (
        "1 of 16 experts", "SwiGLU 8,192", "shared: SwiGLU 8,192", "sigmoid router, weighs inputs",
    )  # fmt: skip
    assert "12.9B active per token" in read(load("mixtral-8x7b")).facts
    assert not any("active" in fact for fact in read(load("llama-3-8b")).facts)


def test_labels_of_inputs_and_outputs():
    def ends(name):
        return [
            element.part.title if isinstance(element, Joined) else element.text
            for column in read(load(name)).columns
            for element in column.way
            if isinstance(element, Joined) or (isinstance(element, Label) and element.text)
        ]

    assert ends("bert-base") == [
        "Tokens", "Token types", "Learned positions", "Hidden states", "Pooled output",
    ]  # fmt: skip
    assert ends("vit-base-16") == ["Image", "Class token", "Learned positions", "Logits"]
    assert ends("whisper-tiny") == [
        "Log-mel spectrogram", "Sinusoidal positions", "Tokens", "Learned positions", "Logits",
    ]  # fmt: skip


@one_in(6)
@pytest.mark.parametrize(
    "name", ["bert-base", "t5-small", "whisper-tiny", "vit-base-16", "gpt2", "clip-vit-b32-text"]
)
def test_shapes_are_those_of_the_running_model(name):
    spec = load(name)
    report = check_shapes(assemble(spec), spec)
    ran = " ".join(text for row in report.modules for text in (*row.inputs, *row.outputs))
    labels = [e for column in read(spec).columns for e in column.way if isinstance(e, Label)]
    assert labels
    for label in labels:
        shape = label.shape.replace(",", "").replace("\u00d7", "x")
        assert re.search(rf"(?<![\w]){re.escape(shape)}(?! x)", ran), shape


def test_tied_weights_are_joined_and_counted_once():
    diagram = read(load("t5-small"))
    assert [(owner.title, user.title, user.count) for owner, user in diagram.ties] == [
        ("Token embedding", "Token embedding", "shared"),
        ("Token embedding", "Language-model head", "tied"),
    ]
    assert diagram.ties[0][1] is diagram.ties[1][0]  # from the decoder's, which is nearer
    assert not read(load("gpt2", ["head.tie_embeddings=false"])).ties
    (tie,) = read(load("bert-base-mlm")).ties
    assert tie[1].count == "30.5K + tied"


# ------------------------------------------------------------------------------------------------------- text


@pytest.mark.parametrize(("bold", "file"), [(False, "DejaVuSans.ttf"), (True, "DejaVuSans-Bold.ttf")])
def test_text_is_as_wide_as_its_font_has_it(bold, file):
    font = ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / file), 2048)
    for character in drawn_text._CHARACTERS:
        assert drawn_text.text_width(character, 2048, bold=bold) == round(font.getlength(character))


@pytest.mark.slow
def test_every_character_that_is_drawn_has_a_width():
    shown = {
        c for name in preset_names()[::30] for text in all_texts(draw_scene(load(name))) for c in text.text
    }
    assert shown <= set(drawn_text._CHARACTERS)


def test_strange_names_are_shown_within_their_frames(tmp_path):
    file = tmp_path / "odd.yaml"
    odd = '"]]> <b>&amp; \\a `#35;` \\u6771\\u4eac and so on and on and on"'
    layers = f"[{{use: {odd}}}, {{repeat: 2}}]"
    blocks = f"{{{odd}: {{kind: post_norm}}}}"
    file.write_text(
        f"extends: gpt2\nname: {'n' * 200}\nexpect: {{}}\ndecoder: {{layers: {layers}, blocks: {blocks}}}\n"
    )
    diagram = read(load(str(file)))
    check_all(diagram)
    assert "\ufffd" in svg(lay_out(diagram))


def test_changes_are_listed_below_the_name():
    scene = draw_scene(load("tiny-gpt", ["decoder.layers=2", "position.kind=alibi"]))
    assert [text.text for text in scene.texts[:2]] == [
        "tiny-gpt",
        "decoder.layers=2 \u00b7 position.kind=alibi",
    ]


# ------------------------------------------------------------------------------------------------------ formats


def test_an_svg_follows_the_reader_and_a_png_knows_no_custom_properties():
    document = draw_svg(load("tiny-gpt"))
    assert "@media (prefers-color-scheme: dark)" in document
    assert "var(--attention, #fbdcc0)" in document
    assert "var(" not in plain(document)
    assert (
        "<title>decoder.blocks.0.attention to decoder.blocks.3.attention: 65,536 parameters</title>"
        in document
    )


def test_a_png_has_the_scale_that_is_asked_for():
    spec = load("tiny-gpt")
    scene = draw_scene(spec)
    for scale in (1.0, 2.5):
        picture = draw_png(spec, scale)
        assert picture.startswith(b"\x89PNG")
        width, height = struct.unpack(">II", picture[16:24])
        assert abs(width - scene.width * scale) <= 1
        assert abs(height - scene.height * scale) <= 1


def test_a_png_needs_its_libraries_and_a_bound(monkeypatch):
    with pytest.raises(UserError) as error:
        draw_png(load("tiny-gpt"), 100.0)
    assert re.fullmatch(
        r"tiny-gpt at scale 100 has [\d,]+ pixels, more than 200,000,000\n  Use scale [\d.]+ or less, or SVG.",
        str(error.value),
    )
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(
        UserError, match=r"^Drawing PNG needs more libraries\n  Run pip install 'zoo\[pictures\]'\.$"
    ):
        draw_png(load("tiny-gpt"))


def test_a_flowchart_of_a_model():
    text = draw_mermaid(load("tiny-gpt", ["position.kind=rope"]))
    check_flowchart(text)
    assert 'n5["RoPE<br/>\u03b8 10,000"]' in text
    assert "n4 -->|Q, K| n5" in text
    assert "n4 -->|V| n6" in text
    assert "n5 --> n6" in text


def test_a_scene_as_data():
    data = draw_scene(load("t5-small")).as_dict()
    json.dumps(data)
    assert data["parameters"] == 60506624
    parts = {tuple(box["modules"]): box["parameters"] for box in data["boxes"] if box.get("modules")}
    assert sum(parts.values()) == 60506624
    assert {arrow["kind"] for arrow in data["arrows"]} == {"stream", "encoder", "scores", "tie"}


@one_in(3)
@pytest.mark.parametrize(
    ("preset", "words"),
    [
        (
            "qwen3.5-0.8b-text",
            ["Gated DeltaNet", "16 heads, states 128 \u00d7 128", "convolution over 4 tokens", "gated output"],
        ),
        ("lfm2-350m", ["Short convolution", "convolution over 3 tokens"]),
        ("mamba-130m", ["Mamba", "1,536 channels \u00d7 16 states"]),
        ("zamba-7b", ["Mamba", "7,424 channels \u00d7 16 states", "in 2 heads"]),
        ("mamba2-130m", ["Mamba-2", "24 heads, states 128 \u00d7 64"]),
        ("rwkv7-0.1b", ["RWKV-7", "12 heads, states 64 \u00d7 64", "values mixed with the first layer's"]),
        ("rwkv7-0.1b", ["RWKV channel mix", "3,072 wide, over 2 tokens", "ReLU\u00b2"]),
        ("kimi-linear-48b-a3b", ["Kimi Delta Attention", "32 heads, states 128 \u00d7 128"]),
        ("minimax-text-01", ["Linear attention", "64 heads, states 128 \u00d7 128", "decay: slopes"]),
        ("recurrentgemma-2b", ["RG-LRU", "2,560 channels", "gates in 10 blocks"]),
    ],
)  # fmt: skip
def test_mixers_are_described(preset: str, words: list[str]) -> None:
    text = " ".join(text.text for text in all_texts(draw_scene(load(preset))))
    for word in words:
        assert word in text


def test_methods_that_a_part_states_are_drawn_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its title, and the parameters count once."""
    for name in ("widen", "shrink"):
        monkeypatch.setattr(MLP, name, lambda part, x: x, raising=False)
    monkeypatch.setattr(MLP, STREAM_METHODS.name, {"widen": "Widening", "shrink": "Shrinking"}, raising=False)
    monkeypatch.setattr(
        Block, "_feed", lambda block, x, call: block.feed_forward.shrink(block.feed_forward.widen(x))
    )
    diagram = read(load("tiny-gpt"))
    check_all(diagram)
    titles = [part.title for part in diagram.parts()]
    assert titles.count("Widening") == titles.count("Shrinking") == 1
    assert "Feed-forward" not in titles
