"""Ways in which checkpoints come: wrapped by training, in shards without an index, in the hub's cache, without a suffix."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from specs.base.errors import UserError
from tests.cli.program import done
from tests.parity.reference import load
from tests.zoo.tiny import gpt2
from zoo.checkpoints.carried import origin_of, tokenizer_origin
from zoo.checkpoints.converting import convert
from zoo.configs.importing import import_spec
from zoo.configs.named_model import model_kind
from zoo.families.common.config_errors import ConfigError
from zoo.weights.files import TensorFiles
from zoo.weights.source import WeightError

SPEC = gpt2()


@pytest.fixture
def checkpoint(tmp_path):
    directory = tmp_path / "checkpoint"
    directory.mkdir()
    convert(SPEC, "random", directory)
    return directory


def values_of(place):
    return {name: parameter.clone() for name, parameter in load(SPEC, place).named_parameters()}


def renamed(checkpoint, name):
    """The tensors of a checkpoint with other names, and what they were."""
    file = checkpoint / "model.safetensors"
    tensors = load_file(file)
    save_file({name(stored): values for stored, values in tensors.items()}, file)


@pytest.mark.parametrize(
    "name",
    [
        lambda stored: f"module.{stored}",
        lambda stored: f"_orig_mod.{stored}",
        lambda stored: f"_orig_mod.module.{stored}",
        lambda stored: f"module._orig_mod.{stored}",
        lambda stored: stored.replace("transformer.h.0.", "transformer.h.0._orig_mod."),
        lambda stored: (
            "_fsdp_wrapped_module." + stored.replace(".attn.", "._checkpoint_wrapped_module.attn.")
        ),
    ],
    ids=["distributed", "compiled", "both", "the other way", "a compiled layer", "FSDP"],
)
def test_names_with_the_wrappers_of_training_are_read(checkpoint, name):
    expected = values_of(checkpoint)
    renamed(checkpoint, name)
    found = values_of(checkpoint)
    assert all(torch.equal(found[each], expected[each]) for each in expected)
    assert {*TensorFiles.open(checkpoint).tensors} == {
        *TensorFiles.open(checkpoint / "model.safetensors").tensors
    }


def test_a_tensor_with_and_without_a_wrapper_is_refused(checkpoint):
    file = checkpoint / "model.safetensors"
    tensors = load_file(file)
    first = next(iter(tensors))
    save_file({**tensors, f"_orig_mod.{first}": tensors[first].clone()}, file)
    with pytest.raises(WeightError) as caught:
        load(SPEC, checkpoint)
    assert f"has one tensor twice: as {first} and as _orig_mod.{first}" in str(caught.value) or (
        f"has one tensor twice: as _orig_mod.{first} and as {first}" in str(caught.value)
    )


def in_shards(checkpoint, count=3):
    file = checkpoint / "model.safetensors"
    tensors = load_file(file)
    file.unlink()
    for number in range(count):
        part = dict(list(tensors.items())[number::count])
        save_file(part, checkpoint / f"model-{number + 1:05}-of-{count:05}.safetensors")
    return tensors


def test_shards_without_an_index_are_read(checkpoint):
    expected = values_of(checkpoint)
    in_shards(checkpoint)
    found = values_of(checkpoint)
    assert all(torch.equal(found[each], expected[each]) for each in expected)


def test_missing_and_doubtful_shards_without_an_index_are_named(checkpoint):
    tensors = in_shards(checkpoint)
    second = checkpoint / "model-00002-of-00003.safetensors"
    second.rename(checkpoint / "kept")
    with pytest.raises(
        WeightError, match=r"1 of 3 shards are missing: model-00002-of-00003.safetensors\n  Download"
    ):
        load(SPEC, checkpoint)
    (checkpoint / "kept").rename(second)
    name = next(iter(tensors))
    save_file({**load_file(second), name: tensors[name]}, second)
    with pytest.raises(
        WeightError, match=f"has {name} in several shards, and no index\n  Download its index"
    ):
        load(SPEC, checkpoint)
    save_file({}, checkpoint / "other.safetensors")
    with pytest.raises(WeightError, match=r"several .safetensors files and no index"):
        load(SPEC, checkpoint)


@pytest.fixture
def cache(checkpoint, tmp_path):
    """A repository in the hub's cache with two snapshots, of which main is the first."""
    root = tmp_path / "models--org--tiny-gpt"
    (root / "snapshots").mkdir(parents=True)
    (root / "refs").mkdir()
    shutil.copytree(checkpoint, root / "snapshots" / "aaa")
    shutil.copytree(checkpoint, root / "snapshots" / "bbb")
    (root / "snapshots/bbb/config.json").write_text("{}")
    (root / "refs/main").write_text("aaa")
    return root


def test_the_directory_of_a_repository_in_the_cache_is_its_snapshot(cache, checkpoint, tmp_path):
    assert import_spec(cache).name == import_spec(cache / "snapshots/aaa").name == "tiny-gpt"
    expected, found = values_of(checkpoint), values_of(cache)
    assert all(torch.equal(found[each], expected[each]) for each in expected)
    assert origin_of(str(cache)) == tokenizer_origin(str(cache)) == cache / "snapshots/aaa"
    assert model_kind(str(cache)) == "checkpoint"
    result = done("import", str(cache), "-o", str(tmp_path / "spec.yaml"))
    assert "every tensor found in the checkpoint" in result


def test_a_cache_whose_snapshot_is_unknown_is_refused(cache):
    (cache / "refs/main").unlink()
    with pytest.raises(UserError) as caught:
        import_spec(cache)
    assert str(caught.value) == (
        f"{cache} is a repository in the hub's cache, and its snapshot in use is unknown\n  value: aaa, bbb\n"
        f"  Pass one of them, such as {cache / 'snapshots' / 'aaa'}."
    )
    shutil.rmtree(cache / "snapshots/bbb")
    assert import_spec(cache).name == "tiny-gpt"
    shutil.rmtree(cache / "snapshots/aaa")
    with pytest.raises(UserError, match=r"value: none\n  Fetch the repository again"):
        import_spec(cache)


@pytest.mark.parametrize(
    ("modules", "rule"),
    [
        (["sentence_transformers.models.Asym"], "the modules Asym are not supported"),
        (["other.library.Encoder"], "the modules other.library.Encoder are not supported"),
        (["sentence_transformers.models.Pooling"], "the modules Pooling are not supported"),
    ],
)
def test_a_single_module_of_an_unknown_kind_is_refused(checkpoint, modules, rule):
    entries = [{"type": kind, "path": ""} for kind in modules]
    (checkpoint / "modules.json").write_text(json.dumps(entries))
    with pytest.raises(ConfigError, match=rule):
        import_spec(checkpoint)


def test_a_single_module_elsewhere_is_where_the_config_is(checkpoint):
    entry = {"type": "sentence_transformers.models.Transformer", "path": "0_Transformer"}
    (checkpoint / "modules.json").write_text(json.dumps([entry]))
    with pytest.raises(ConfigError, match=r"0_Transformer/config\.json is missing"):
        import_spec(checkpoint)
