"""Checkpoints of torch.save: what is read of them, and that nothing in them is ever run."""

import argparse
import json
import os
import pickle
import zipfile
from collections import OrderedDict

import pytest
import torch
import transformers
from safetensors.torch import save_file

from tests.thinned import one_in
from tests.zoo.tiny import gpt2
from tests.zoo.weights.test_weights import tensors_of
from zoo.builder import assemble
from zoo.checkpoints.open_weights import open_weights
from zoo.weights.files import TensorFiles
from zoo.weights.materialize import materialize
from zoo.weights.names import INDEX, PICKLED_INDEX, PICKLED_SINGLE, SINGLE
from zoo.weights.pickled import read_archive
from zoo.weights.source import WeightError

ARCHIVE: dict[str, bool] = {}
LEGACY = {"_use_new_zipfile_serialization": False}
BOTH = pytest.mark.parametrize("way", [ARCHIVE, LEGACY], ids=["archive", "legacy"])


def opened(path, **options):
    return open_weights(str(path), assemble(gpt2()), gpt2(), **options)


def refused(path) -> str:
    """The message of the one error."""
    with pytest.raises(WeightError) as caught:
        opened(path)
    return str(caught.value)


def assert_holds(source, tensors) -> None:
    model = assemble(gpt2())
    materialize(model, source)
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, tensors[name]), name


# -------------------------------------------------------------------------------------------- what is read


@one_in(4)
@BOTH
@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.pth", "weights"])
def test_a_file_is_read_according_to_its_content(way, name, tmp_path):
    tensors = tensors_of(gpt2())
    torch.save(tensors, tmp_path / name, **way)
    assert_holds(opened(tmp_path / name), tensors)
    if name != "weights":
        assert_holds(opened(tmp_path), tensors)


@BOTH
@pytest.mark.parametrize("key", ["state_dict", "model"])
def test_a_state_dict_within_a_checkpoint(way, key, tmp_path):
    tensors = tensors_of(gpt2())
    optimizer = {"state": {0: {"step": torch.tensor(1.0)}}, "param_groups": [{"lr": 0.1}]}
    torch.save({"epoch": 3, key: OrderedDict(tensors), "optimizer": optimizer}, tmp_path / "last.pt", **way)
    assert_holds(opened(tmp_path / "last.pt"), tensors)


def test_shards_with_an_index(tmp_path):
    tensors = tensors_of(gpt2())
    names = sorted(tensors)
    for shard in (0, 1):
        torch.save({name: tensors[name] for name in names[shard::2]}, tmp_path / f"{shard}.bin")
    places = {name: f"{index % 2}.bin" for index, name in enumerate(names)}
    (tmp_path / PICKLED_INDEX).write_text(json.dumps({"weight_map": places}))
    assert_holds(opened(tmp_path), tensors)
    (tmp_path / "1.bin").unlink()
    assert "lists 2 files, 1 of them missing: 1.bin\n  Download them." in refused(tmp_path)
    (tmp_path / PICKLED_INDEX).write_text(json.dumps({"weight_map": dict.fromkeys(names, "../0.bin")}))
    assert "names '../0.bin', which is not a file next to it" in refused(tmp_path)


@pytest.mark.parametrize("preferred", [SINGLE, INDEX])
def test_safetensors_go_first(preferred, tmp_path):
    tensors = tensors_of(gpt2())
    save_file(tensors, tmp_path / (SINGLE if preferred == SINGLE else "a.safetensors"))
    if preferred == INDEX:
        (tmp_path / INDEX).write_text(json.dumps({"weight_map": dict.fromkeys(tensors, "a.safetensors")}))
    torch.save({}, tmp_path / PICKLED_SINGLE)
    assert_holds(opened(tmp_path), tensors)


def test_transformers_own_file(tmp_path):
    config = transformers.GPT2Config(
        vocab_size=20, n_embd=8, n_layer=2, n_head=2, n_inner=12, n_positions=10, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    reference = transformers.GPT2LMHeadModel(config)
    config.save_pretrained(tmp_path)
    torch.save(reference.state_dict(), tmp_path / PICKLED_SINGLE)
    source = opened(tmp_path)
    assert source.names.name == "gpt2"
    values = next(source.pieces("embedding.token.weight")).view(20, 8)
    assert torch.equal(values, reference.transformer.wte.weight)


def test_every_layout_of_a_tensor(tmp_path):
    shared = torch.arange(12.0)
    tensors = {
        "whole": shared, "part": shared[2:5], "matrix": shared.view(3, 4), "turned": shared.view(3, 4).t(),
        "every other": shared[::2], "spread": torch.tensor([7.0]).expand(3, 2), "none": torch.zeros(0, 3),
        "number": torch.tensor(2.5, dtype=torch.bfloat16), "parameter": torch.nn.Parameter(torch.ones(2).half()),
        "double": torch.ones(3, dtype=torch.float64),
    }  # fmt: skip
    torch.save(tensors, tmp_path / "x.pt")
    stored = TensorFiles.open(tmp_path / "x.pt").tensors
    assert stored.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert torch.equal(stored[name].read(), tensor), name
        assert stored[name].dtype == stored[name].read().dtype == tensor.dtype
        assert stored[name].shape == tensor.shape


@BOTH
def test_writing_to_a_tensor_changes_neither_file_nor_other_readers(way, tmp_path):
    torch.save({"a": torch.ones(1000)}, tmp_path / "x.pt", **way)
    before = (tmp_path / "x.pt").read_bytes()
    stored = TensorFiles.open(tmp_path / "x.pt").tensors["a"]
    first, second = stored.read(), stored.read()
    first += 1
    assert torch.equal(second, torch.ones(1000))
    assert (tmp_path / "x.pt").read_bytes() == before


def test_raw_gives_the_bytes_of_an_archives_records(tmp_path):
    tensors = tensors_of(gpt2())
    torch.save(tensors, tmp_path / PICKLED_SINGLE)
    source = opened(tmp_path)
    content = (tmp_path / PICKLED_SINGLE).read_bytes()
    for name, tensor in tensors.items():
        path, offset, nbytes = source.raw(name)
        assert path == tmp_path / PICKLED_SINGLE
        assert content[offset : offset + nbytes] == tensor.numpy().tobytes()
    assert opened(tmp_path, dtype=torch.float16).raw("embedding.token.weight") is None
    torch.save(tensors, tmp_path / PICKLED_SINGLE, **LEGACY)
    assert opened(tmp_path).raw("embedding.token.weight") is None


def test_raw_is_none_for_transposed_tensors(tmp_path):
    tensors = tensors_of(gpt2())
    name = "embedding.token.weight"
    torch.save({**tensors, name: tensors[name].t().contiguous().t()}, tmp_path / PICKLED_SINGLE)
    source = opened(tmp_path)
    assert source.raw(name) is None
    assert_holds(source, tensors)


# ------------------------------------------------------------------------------------- nothing is ever run


class Runs:
    """Unpickling it would run a command."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


def as_archive(content, path):
    torch.save(content, path)


def as_legacy(content, path):
    torch.save(content, path, **LEGACY)


def as_pickle(content, path):
    path.write_bytes(pickle.dumps(content))


def as_pickle_of_old(content, path):
    path.write_bytes(pickle.dumps(content, protocol=0))


@pytest.mark.parametrize(
    "name", ["pytorch_model.bin", "model.pt", "model.pth", "weights", "directory", "index"]
)
@pytest.mark.parametrize("save", [as_archive, as_legacy, as_pickle, as_pickle_of_old])
@pytest.mark.parametrize("wrap", [lambda bad: bad, lambda bad: {"a": torch.ones(1), "b": bad}])
def test_pickles_with_commands_do_not_run_them(name, save, wrap, tmp_path):
    marker = tmp_path / "ran"
    (tmp_path / "model").mkdir()
    file = tmp_path / "model" / (PICKLED_SINGLE if name in ("directory", "index") else name)
    save(wrap(Runs(f"touch {marker}")), file)
    if name == "index":
        file = tmp_path / "model" / PICKLED_INDEX
        file.write_text(json.dumps({"weight_map": {"a": PICKLED_SINGLE}}))
    message = refused(file.parent if name == "directory" else file)
    assert not marker.exists()
    if save in (as_archive, as_legacy):
        assert "holds posix.system, which is code, not data; it was not run" in message
    pickle.loads(pickle.dumps(Runs(f"touch {marker}")))
    assert marker.exists()  # so the command would have run


@BOTH
def test_objects_of_other_classes_are_named(way, tmp_path):
    torch.save({"a": torch.ones(1), "args": argparse.Namespace(lr=1)}, tmp_path / "x.pt", **way)
    message = refused(tmp_path / "x.pt")
    assert "x.pt holds argparse.Namespace, which is code, not data; it was not run" in message
    assert message.endswith(
        "it was not run\n  Save its state_dict() again, as safetensors or with torch.save."
    )
    torch.save(torch.nn.Linear(2, 2), tmp_path / "x.pt", **way)
    assert "holds torch.nn.modules.linear.Linear, which is code, not data; it was not run" in refused(
        tmp_path / "x.pt"
    )


# ----------------------------------------------------------------------------------------- what is refused


@BOTH
def test_files_without_named_tensors_are_refused(way, tmp_path):
    path, tensor = tmp_path / "x.pt", torch.ones(1)
    for content, said in [
        ([tensor], "holds a list, not tensors by name"),
        (tensor, "holds a Tensor, not tensors by name"),
        ({}, "holds no tensors by name; its keys are none"),
        ({"epoch": 3, "optimizer": {"state": {0: {"step": tensor}}}}, "its keys are epoch, optimizer"),
        (
            {"model": {"a": tensor}, "ema": {"a": tensor}},
            "holds tensors by name in several places: model, ema",
        ),
        ({"a": tensor, "b": 3, "c": None}, "holds more than tensors by name: b, c"),
        (
            {f"{i:02}": i for i in range(20)} | {"a": tensor},
            "by name: 00, 01, 02, 03, 04, 05, 06, 07 and 12 more",
        ),
        ({0: tensor}, "holds more than tensors by name: 0"),
    ]:
        torch.save(content, path, **way)
        assert said in refused(path)


@BOTH
def test_a_file_cut_anywhere_is_refused_by_name(way, tmp_path):
    torch.save(tensors_of(gpt2()), tmp_path / PICKLED_SINGLE, **way)
    whole = (tmp_path / PICKLED_SINGLE).read_bytes()
    for length in (0, 1, 3, 5, 40, 300, len(whole) // 2, len(whole) - 1):
        (tmp_path / PICKLED_SINGLE).write_bytes(whole[:length])
        message = refused(tmp_path)
        assert str(tmp_path / PICKLED_SINGLE) in message
        assert "truncated" in message


@pytest.mark.slow
@BOTH
def test_a_changed_byte_is_never_a_traceback(way, tmp_path):
    torch.save({"a": torch.ones(2), "b": torch.ones(2).half()[:1]}, tmp_path / "x.pt", **way)
    whole = (tmp_path / "x.pt").read_bytes()
    generator = torch.Generator().manual_seed(0)
    for _ in range(300):
        content = bytearray(whole)
        content[int(torch.randint(len(whole), (), generator=generator))] ^= 1 << int(
            torch.randint(8, (), generator=generator)
        )
        (tmp_path / "x.pt").write_bytes(content)
        with pytest.raises(WeightError):  # none fits the spec, at the latest
            opened(tmp_path / "x.pt")


def test_a_file_that_shrinks_after_it_was_opened(tmp_path):
    torch.save(tensors_of(gpt2()), tmp_path / PICKLED_SINGLE)
    source = opened(tmp_path)
    os.truncate(tmp_path / PICKLED_SINGLE, 1000)
    with pytest.raises(WeightError, match=r"pytorch_model\.bin: embedding\.token\.weight cannot be read"):
        list(source.pieces("embedding.token.weight"))


def test_archives_of_other_kinds(tmp_path):
    path = tmp_path / "x.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x/constants.pkl", "what torch.jit.save adds")
    assert "is a TorchScript program, not weights\n  Save its state_dict() again" in refused(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/b", "c")
    assert "is a zip archive, but not one that torch.save wrote" in refused(path)


def rewritten(path, change=lambda name, content: content, compression=zipfile.ZIP_STORED):
    """An archive again, record by record."""
    with zipfile.ZipFile(path) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in records.items():
            archive.writestr(name, change(name, content))


def test_repacked_archives_are_refused(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(tensors_of(gpt2()), path)
    rewritten(path, compression=zipfile.ZIP_DEFLATED)
    assert "is compressed, which torch.save never does\n  Save its state_dict() again" in refused(path)
    torch.save(tensors_of(gpt2()), path)
    rewritten(path, lambda name, content: b"big" if name.endswith("byteorder") else content)
    assert "is from a big-endian machine" in refused(path)
    torch.save(tensors_of(gpt2()), path)
    rewritten(path, lambda name, content: content[:4] if "/data/" in name else content)
    assert "extends beyond its stored values" in refused(path)


def test_tensors_that_are_not_plain(tmp_path):
    path = tmp_path / "x.pt"
    torch.save({"a": torch.eye(3).to_sparse()}, path)
    assert "x.pt: a is sparse or quantized; weights must be plain tensors" in refused(path)


def test_types_that_weights_do_not_come_in(tmp_path):
    tensors = tensors_of(gpt2())
    for dtype, kind in [(torch.int64, "I64"), (torch.complex64, "complex64")]:
        torch.save({**tensors, "decoder.final_norm.bias": torch.ones(8).to(dtype)}, tmp_path / "x.pt")
        message = refused(tmp_path / "x.pt")
        assert f"decoder.final_norm.bias has dtype {kind}; weights must be F64, F32, F16 or BF16" in message
        assert "quantized" not in message
    for dtype, kind in [(torch.float8_e4m3fn, "F8_E4M3"), (torch.int8, "I8"), (torch.uint8, "U8")]:
        torch.save({**tensors, "decoder.final_norm.bias": torch.ones(8).to(dtype)}, tmp_path / "x.pt")
        save_file({**tensors, "decoder.final_norm.bias": torch.ones(8).to(dtype)}, tmp_path / "x.safetensors")
        for name in ("x.pt", "x.safetensors"):
            assert (
                f"has dtype {kind}; weights must be F64, F32, F16 or BF16; a quantized checkpoint is read by its directory, "
                "with the quantization_config in its config.json"
            ) in refused(tmp_path / name)


def test_opening_an_archive_reads_no_values(tmp_path):
    with open(tmp_path / "x.pt", "wb") as file:
        torch.save({"a": torch.zeros(2**20)}, file)
    stored = read_archive(tmp_path / "x.pt")["a"]
    assert stored.extent is not None
    assert (stored.extent[1], stored.shape) == (2**22, (2**20,))
    assert not stored.read().any()


# ------------------------------------------------------------------------------------- names that mislead


def test_a_name_that_says_otherwise(tmp_path):
    tensors = tensors_of(gpt2())
    torch.save(tensors, tmp_path / SINGLE)
    assert (
        f"{SINGLE} has suffix .safetensors, but holds an archive of torch.save\n  Rename it to end in .bin."
    ) in refused(tmp_path)
    torch.save(tensors, tmp_path / SINGLE, **LEGACY)
    assert "has suffix .safetensors, but holds a pickle of torch.save" in refused(tmp_path)
    save_file(tensors, tmp_path / "x.bin")
    assert ("x.bin has suffix .bin, but holds safetensors\n  Rename it to end in .safetensors.") in refused(
        tmp_path / "x.bin"
    )


@pytest.mark.parametrize("name", [SINGLE, PICKLED_SINGLE, "model.pt", "weights"])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty, perhaps because its download was truncated\n  Download it again."),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n", "is a git-lfs pointer, not the file itself\n  Fetch the file with git lfs pull."),
        (b"\n<!DOCTYPE html>\n<html>", "is a web page, perhaps an error or a login\n  Download the file again."),
        (b"<HTML><body>Not found", "is a web page, perhaps an error or a login\n  Download the file again."),
        (b"<?xml version='1.0'?><Error/>", "is an XML document, perhaps an error\n  Download the file again."),
        (b"\x89HDF\r\n\x1a\n" + bytes(99), "is an HDF5 file of TensorFlow or Keras\n  Use the checkpoint's safetensors."),
        (b"\x1f\x8b\x08" + bytes(99), "is compressed with gzip\n  Unpack it first."),
    ],
)  # fmt: skip
def test_files_that_are_no_weights_at_all(name, content, said, tmp_path):
    (tmp_path / name).write_bytes(content)
    assert f"{tmp_path / name} {said}" in refused(tmp_path / name)
