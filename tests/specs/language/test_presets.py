"""Every preset: its published count, the architecture it stands for, and that nothing changes it unseen."""

import re
from typing import Any

import pytest

from specs.forms.resolved import resolved
from specs.kinds.mixture import Mixture
from specs.kinds.side_by_side import SideBySide
from specs.language.catalog import FEATURES, Preset, presets
from specs.language.load import load
from specs.language.named_blocks import with_named_blocks
from specs.language.preset_files import preset_names
from specs.language.reading import read_text
from specs.language.validation import validate
from specs.language.writing import dump
from tests.specs import digests
from tests.thinned import one_in
from zoo.builder import assemble

PRESETS = preset_names()

PUBLISHED_MODULES = {
    ("torch-transformer", "encoder + decoder"): 44_140_544, ("torch-transformer", "encoder.blocks.0"): 3_152_384,
    ("torch-transformer", "decoder.blocks.0"): 4_204_032,
    ("torch-transformer-big", "encoder + decoder"): 176_361_472,
    (
        "deepseek-v3-mtp",
        "decoder.blocks.0",
    ): 11_507_286_016,  # 11.5 billion, in README_WEIGHTS.md of the checkpoint
    ("nano-gpt", "decoder.blocks.0"): 1_773_312, ("tiny-gpt", "decoder"): 199_040,
}  # fmt: skip


@one_in(24)
@pytest.mark.parametrize("name", PRESETS)
def test_the_built_model_has_the_published_parameters(name):
    spec = load(name)
    model = assemble(spec)
    assert sum(parameter.numel() for parameter in model.parameters()) == spec.expect.parameters
    assert all(parameter.is_meta for parameter in model.parameters())


@pytest.mark.parametrize(("name", "modules"), PUBLISHED_MODULES)
def test_the_built_modules_have_the_published_parameters(name, modules):
    spec = load(name)
    count = PUBLISHED_MODULES[name, modules]
    assert spec.expect.modules[modules] == count
    model = assemble(spec)
    parts = [model.get_submodule(path) for path in modules.split(" + ")]
    parameters = {id(parameter): parameter for part in parts for parameter in part.parameters()}
    assert sum(parameter.numel() for parameter in parameters.values()) == count


@pytest.mark.slow
def test_no_module_count_goes_unpublished():
    stated = {(name, modules) for name in preset_names() for modules in load(name).expect.modules}
    assert stated == set(PUBLISHED_MODULES)


@one_in(4)
@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_resolves_to_the_recorded_spec(name):
    text = digests.text_of(name)
    if digests.digest(text) != digests.recorded()[name]:
        pytest.fail(digests.explanation(name, text))


def test_every_digest_belongs_to_a_preset():
    assert list(digests.recorded()) == preset_names()


def test_a_changed_preset_is_reported_by_key():
    before = {"d_model": 64, "norm": {"kind": "rms_norm", "eps": 1e-6}, "layers": [1, 2]}
    now = {"d_model": 64, "norm": {"kind": "layer_norm"}, "layers": [1, 3], "bias": True}
    assert list(digests.changed_keys(before, now)) == [
        "norm.kind: 'rms_norm' -> 'layer_norm'", "norm.eps: 1e-06 -> removed", "layers.1: 2 -> 3",
        "bias: added -> True",
    ]  # fmt: skip


@one_in(12)
@pytest.mark.parametrize("name", PRESETS)
def test_a_resolved_preset_reads_back_as_the_same_model(name):
    model = load(name)
    assert validate(with_named_blocks(read_text(dump(resolved(model)), "resolved.yaml"))) == model


def test_every_preset_has_name_summary_source_and_published_parameters():
    for name in PRESETS:
        model = load(name)
        assert model.expect.parameters, name
        assert model.name == name
        assert 0 < len(model.summary) <= 82, name  # a line of a listing
        assert not model.summary.startswith(("Variant of", "Same architecture")), name
        assert name == "tiny-gpt" or (model.source and model.year), name


def parts_of(feed_forward):
    """A feed-forward, or those side by side in it."""
    if isinstance(feed_forward, SideBySide):
        return [branch.feed_forward for branch in feed_forward.branches.values()]
    return [feed_forward]


@pytest.mark.slow
def test_the_catalog_agrees_with_the_presets():
    for preset in presets():
        model = load(preset.name)
        assert preset == Preset(
            model.name, model.architecture, model.expect.parameters, model.expect.active_parameters, model.year,
            model.summary, model.source,
            tuple(feature for feature, (has, _) in FEATURES.items() if re.search(has, dump(resolved(model)))),
            preset.tasks, preset.hub,
        )  # fmt: skip
        assert preset.hub is None or f"https://huggingface.co/{preset.hub}" in model.source
        feed_forwards = [block.feed_forward for block in model.last_stack.layer_blocks()]
        routed = any(isinstance(part, Mixture) for each in feed_forwards for part in parts_of(each))
        assert (preset.active_parameters is not None) == routed, preset.name


def test_the_original_transformer_has_one_table_for_source_target_and_scores():
    model: Any = assemble(load("transformer-base"))
    token = model.encoder_embedding.token.weight
    assert model.decoder_embedding.token.weight is token
    assert model.head.vocabulary.weight is token
