"""Pages: what they say is what the models do."""

from __future__ import annotations

import base64
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from exporters.export import export
from exporters.steps.options import ExportOptions
from specs.files.device import device_names
from specs.language.load import load
from specs.model.model import Model
from tests.exporters.reduced_presets import structures
from tests.parallel.newest_models import NEWEST
from tests.thinned import one_in
from tests.zoo.tiny import BLOCK, bert, gpt2, t5, vit
from zoo.builder import assemble
from zoo.drawing.colours import COLOURS
from zoo.pages.markup import layers_text
from zoo.pages.page import asset, embedded, page
from zoo.pages.position_drawings import drawing_of
from zoo.pages.positions import uses
from zoo.pages.report_page import report_page
from zoo.pages.verification import verification_section
from zoo.pages.visibility import Sight, VisibilityGrid, sights
from zoo.record.integrity import Integrity
from zoo.record.manifest import read_record
from zoo.reports.report import report
from zoo.weights.materialize import materialize
from zoo.weights.random import RandomWeights


def one_layer(window: int | None = None, **attention: object) -> dict[str, object]:
    """A stack of one layer, of which what a token's output depends on is what it attends to."""
    return {
        "layers": 1,
        "block": {**BLOCK, "attention": {"kind": "multi_head", "heads": 2, "window": window, **attention}},
    }


def segmenter() -> Model:
    """A tower of images whose last layer three queries join."""
    encoder = {"layers": 2, "queries": {"count": 3, "layers": 1}, "block": BLOCK}
    return vit(position={"kind": "axial_rope"}, encoder=encoder, head={"kind": "masks", "labels": 2})


def sight_of(spec: Model) -> list[Sight]:
    return sights(assemble(spec), spec)


def dependence(spec: Model, grid: VisibilityGrid, mask: Tensor | None) -> Tensor:
    """Which outputs change with which tokens, at the places of a grid: queries x keys."""
    model = assemble(spec, torch.float64)
    materialize(model, RandomWeights(model, spec, dtype=torch.float64))
    rows = len(grid.places)
    ids = torch.randint(20, (1, grid.length), generator=torch.Generator().manual_seed(0))
    changed = ids.repeat(rows, 1)
    changed[torch.arange(rows), grid.places] = (ids[0, grid.places] + 7) % 20
    name = "logits" if spec.architecture == "decoder" else "last_hidden_state"
    with torch.no_grad():
        given = None if mask is None else mask.expand(rows + 1, -1)
        outputs = model(torch.cat((ids, changed)), given)[name][:, grid.places]  # (1 + keys) queries ...
    return ((outputs[1:] - outputs[:1]).abs().amax(-1) > 1e-12).T


@pytest.mark.parametrize("padding", ["none", "left", "right"])
@pytest.mark.parametrize(
    "spec",
    [
        gpt2(decoder=one_layer(), context_length=200),
        gpt2(decoder=one_layer(7), context_length=200),
        gpt2(decoder=one_layer(40), context_length=200),
        gpt2(decoder=one_layer(9), context_length=200, position={"kind": "alibi", "precision": "bfloat16"}),
        gpt2(decoder=one_layer(chunk=9), context_length=200),
        bert(encoder=one_layer(), context_length=200),
        bert(encoder=one_layer(8), context_length=200),
        bert(encoder=one_layer(50), context_length=200, position={"kind": "relative_bias"}),
    ],
    ids=[
        "causal", "window", "wide window", "alibi", "chunks", "both ways", "window both ways",
        "wide window both ways",
    ],
)  # fmt: skip
def test_a_position_sees_those_that_its_output_depends_on(spec: Model, padding: Any) -> None:
    (sight,) = sight_of(spec)
    allowed, grid = sight.allowed[padding], sight.keys
    mask = grid.mask(padding)
    found = dependence(spec, grid, mask)
    other = ~torch.eye(len(allowed), dtype=torch.bool)  # each depends on itself by the residual
    seeing = allowed.any(1)[:, None] & other  # one that sees nothing gets the mean of all
    assert torch.equal(allowed & seeing, found & seeing)
    assert allowed.sum() < allowed.numel() or (
        padding == "none" and not {"window", "chunks"} & {*sight.title.split()}
    )


def test_windows_are_shown_to_their_end() -> None:
    (wide,) = sight_of(gpt2(decoder=one_layer(40), context_length=200))
    assert (wide.keys.length, wide.keys.stride) == (100, 3)
    (short,) = sight_of(gpt2(decoder=one_layer(40), context_length=60))
    assert short.keys.length == 60
    (endless,) = sight_of(gpt2(decoder=one_layer(400), context_length=200))
    assert endless.keys.length == 24
    assert endless.title == "causal, window of 400"
    (chunked,) = sight_of(gpt2(decoder=one_layer(chunk=40), context_length=200))
    assert (chunked.title, chunked.keys.length) == ("causal, chunks of 40", 100)


@pytest.mark.parametrize("spec", [*NEWEST.values(), segmenter()], ids=[*NEWEST, "queries"])
def test_newer_layers_have_pictures(spec: Model) -> None:
    model = assemble(spec)
    assert [sight.allowed["none"].any() for sight in sights(model, spec)]
    assert all(drawing_of(use).title for use in uses(model, spec))


def test_layers_with_equal_visibility_are_merged() -> None:
    kinds = {(s.title, s.layers, s.sinks) for s in sight_of(load("gpt-oss-20b"))}
    assert kinds == {
        ("causal, window of 128", tuple(range(0, 24, 2)), True),
        ("causal", tuple(range(1, 24, 2)), True),
    }
    assert [s.layers for s in sight_of(load("gemma3-1b"))][1] == (5, 11, 17, 23)


def test_a_decoder_sees_all_of_its_encoder_but_padding() -> None:
    encoder, decoder, cross = sight_of(t5())
    assert [encoder.title, decoder.title] == ["encoder, bidirectional", "decoder, causal"]
    assert cross.allowed["none"].all()
    assert not cross.allowed["left"][:, :6].any()
    assert cross.allowed["left"][:, 6:].all()
    assert not cross.allowed["right"][:, -6:].any()
    assert set(sight_of(vit())[0].allowed) == {"none"}  # an image is never padded


def html(spec: Model) -> str:
    return report_page(report(spec, devices=device_names()))


@pytest.mark.slow
def test_both_stacks_of_a_dual_encoder_are_shown() -> None:
    """Texts up to the chosen length, whole images, and who sees whom in each stack."""
    spec = load("clip-vit-b32", ["text.layers=2", "image.layers=3", "expect={}"])
    read, seen = sight_of(spec)
    assert (read.title, read.layers, seen.title, seen.layers) == (
        "text, causal",
        (0, 1),
        "image, bidirectional",
        (0, 1, 2),
    )
    assert not read.allowed["none"].triu(1).any()
    assert seen.allowed["none"].all()
    text = html(spec)
    for words in ("77 + 50", "2 + 3", "512 + 768", "B x 3 x 224 x 224", "logits_per_image: B x B"):
        assert words in text
    assert '"T":{"least":1,"most":77,"value":77}' in text


def heat_map(spec: Model, which: int = 0) -> np.ndarray:
    """The numbers of a drawing's heat map, to a 127th of the largest."""
    data = drawing_of(uses(assemble(spec), spec)[which]).data["maps"][0]
    levels = np.frombuffer(base64.b64decode(data["values"]), dtype=np.uint8).reshape(data["shape"])
    return (levels.astype(float) - 127) / 127 * data["largest"]


def test_rotations_are_those_of_llama() -> None:
    config = LlamaConfig(
        hidden_size=4096, num_attention_heads=32, max_position_embeddings=131072, rope_theta=500000.0,
        rope_scaling={"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                      "original_max_position_embeddings": 8192},
    )  # fmt: skip
    frequencies, _ = ROPE_INIT_FUNCTIONS["llama3"](config, torch.device("cpu"))
    expected = torch.cos(torch.arange(128)[:, None] * frequencies)
    assert heat_map(load("llama-3.1-8b")) == pytest.approx(expected.numpy(), abs=0.005)


def test_sinusoids_are_those_of_the_paper() -> None:
    spec = load("bert-base-sinusoidal")
    positions, pairs = np.arange(128)[:, None], np.arange(0, 384, 4)
    angles = positions / 10000 ** (pairs / 384)
    expected = np.stack((np.sin(angles), np.cos(angles)), -1).reshape(128, -1)
    assert heat_map(spec) == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize(
    ("preset", "scale", "rounding"), [("bloom-560m", 1.0, 0), ("falcon-rw-1b", 0.125, 0.02)]
)
def test_penalties_grow_with_the_distance(preset: str, scale: float, rounding: float) -> None:
    found = heat_map(load(preset))
    heads = len(found)
    power = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    expected = -scale * np.array(slopes)[:, None] * np.arange(128)
    assert found[:power] == pytest.approx(expected, abs=(0.005 + rounding) * np.abs(expected).max())


def test_trained_positions_are_labelled_as_trained() -> None:
    assert "nothing to plot before training" in drawing_of(uses(assemble(gpt2()), gpt2())[0]).about
    assert (
        "by head (2 heads) and by bucket of the distance (32 buckets)"
        in drawing_of(uses(assemble(t5()), t5())[0]).about
    )
    axial = drawing_of(
        uses(assemble(vit(position={"kind": "axial_rope"})), vit(position={"kind": "axial_rope"}))[0]
    )
    assert axial.data["maps"][0]["shape"] == [5, 2]  # vectors x pairs
    joined = segmenter()
    assert drawing_of(uses(assemble(joined), joined)[0]).data["maps"][0]["shape"] == [8, 2]
    grid = vit(position={"kind": "relative_bias_2d"})
    assert "(2 heads)" in drawing_of(uses(assemble(grid), grid)[0]).about
    smollm3 = load("smollm3-3b")
    assert [drawing_of(use).title for use in uses(assemble(smollm3), smollm3)] == [
        "Rotary (RoPE)",
        "No positions",
    ]


@pytest.mark.slow
def test_a_page_asks_for_nothing() -> None:
    text = html(load("t5-small"))
    assert "default-src 'none'" in text
    assert not re.findall(r"""(?:src|href)\s*=\s*["'](?!#|data:)""", text)
    assert "url(" not in text
    assert "@import" not in text


@pytest.mark.slow
def test_text_in_a_page_is_escaped() -> None:
    spec = gpt2(summary="a <b>bold</b> </script> claim", source="<img src=x>")
    text = html(spec)
    assert "<b>bold" not in text
    assert "<img" not in text
    assert text.count("</script>") == 1
    assert page("a & b", "").count("<title>a &amp; b</title>") == 1
    assert embedded({"a": "</script><!--"}) == '{"a":"\\u003c/script>\\u003c!--"}'
    assert '"<\\/script>"' in page("", "", 'const end = "</script>";')


def test_missing_and_failed_verification_is_shown(tmp_path: Path) -> None:
    export(gpt2(), tmp_path / "out", ExportOptions(weights="none", verify=False))
    record, intact = read_record(tmp_path / "out"), Integrity((), contents=True)
    assert "This export was not verified." in verification_section(record, intact)
    passed = {"case": "one token", "shape": "1 x 1", "output": "logits", "max_abs": 1e-6, "max_rel": 1e-7,
              "tolerance": 2e-5, "top_token": 0.987, "passed": True, "fault": ""}  # fmt: skip
    failed = {**passed, "max_abs": None, "passed": False, "fault": "not finite"}
    path = tmp_path / "out" / "build.json"
    build = json.loads(path.read_text())
    build["verification"] = {"provider": "CPU", "runtime": "onnxruntime", "subject": "it", "ran": "the files",
                             "comparisons": [passed, failed], "passed": False}  # fmt: skip
    path.write_text(json.dumps(build))
    text = verification_section(read_record(tmp_path / "out"), intact)
    assert all(
        part in text for part in ("1 of 2 comparisons passed", "98.7%", "1.0e-06", "infinite", "not finite")
    )


def test_a_verification_of_other_files_proves_nothing(tmp_path: Path) -> None:
    export(gpt2(), tmp_path / "out", ExportOptions(verify=False))
    intact = Integrity((), contents=True)
    path = tmp_path / "out" / "export.json"
    path.write_text(path.read_text() + "\n")
    text = verification_section(read_record(tmp_path / "out"), intact)
    assert "This export was not verified (build.json belongs to another export.json)." in text
    (tmp_path / "out" / "build.json").unlink()
    text = verification_section(read_record(tmp_path / "out"), intact)
    assert "This export was not verified (build.json is missing)." in text


@pytest.mark.slow
def test_without_devices_there_are_no_bounds() -> None:
    text = report_page(report(gpt2()))
    assert 'id="devices"' not in text
    assert 'id="training"' in text


@pytest.mark.slow
def test_a_mixtures_page_has_active_parameters_and_what_steps_read() -> None:
    text = report_page(report(load("mixtral-8x7b")))
    assert "<dt>active per token</dt><dd>12,879,925,248</dd>" in text
    assert 'id="reads"' in text
    dense = report_page(report(gpt2()))
    assert "active per token" not in dense
    assert 'id="reads"' not in dense


def test_drawings_have_the_colours_of_pages() -> None:
    style = asset("page.css")
    for name, (light, dark) in COLOURS.items():
        assert f"--{name}: light-dark({light}, {dark})" in style, name


def test_layers_in_words() -> None:
    assert layers_text(range(12), 12) == "all 12 layers"
    assert layers_text([0], 1) == "the only layer"
    assert layers_text([5], 12) == "layer 5 (of 12)"
    assert layers_text([0, 1, 2, 5], 12) == "layers 0\u20132, 5 (4 of 12)"
    assert layers_text(range(0, 24, 2), 24) == "layers 0, 2, 4, \u2026, 22 (12 of 24)"


@one_in(2)
@pytest.mark.parametrize(
    ("preset", "said"),
    [
        ("beit-base-16", "2-D relative bias"),
        ("parakeet-ctc-0.6b", "a trained vector for each of 8 heads"),
    ],
)
def test_positions_of_patches_and_frames_are_drawn(preset: str, said: str) -> None:
    assert said in html(load(preset))


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["deepseek-v3", "gpt3-175b", "phi-3.5-mini", "whisper-large-v3"])
def test_the_largest_pages_are_small(preset: str) -> None:
    assert len(html(load(preset)).encode()) < 2_000_000


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_no_page_is_large(part: int) -> None:
    for name in structures()[part::4]:
        assert len(html(load(name)).encode()) < 2_000_000, name
