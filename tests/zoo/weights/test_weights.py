"""Weights from files: the format, its shards, and everything that can be wrong with them."""

import json
import os
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from specs.base.errors import shorten
from tests.thinned import one_in
from tests.zoo.tiny import gpt2
from zoo.builder import assemble
from zoo.checkpoints.open_weights import open_weights
from zoo.weights.files import TensorFiles
from zoo.weights.materialize import materialize
from zoo.weights.names import INDEX, SINGLE
from zoo.weights.random import RandomWeights
from zoo.weights.safetensors import read_safetensors
from zoo.weights.source import WeightError


def tensors_of(spec, dtype=torch.float32) -> dict[str, torch.Tensor]:
    """Weights drawn at random, by our names."""
    model = assemble(spec, dtype)
    source = RandomWeights(model, spec, seed=3, dtype=dtype)
    return {name: torch.cat(list(source.pieces(name))).view(p.shape) for name, p in model.named_parameters()}


def opened(path, spec=None, **options):
    spec = spec or gpt2()
    return open_weights(str(path), assemble(spec), spec, **options)


def header_file(path, header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)
    return path


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def test_the_header_is_read_as_the_formats_own_library_reads_it(tmp_path):
    tensors = {
        "b": torch.randn(3, 5),
        "a": torch.randn(7).half(),
        "c": torch.tensor(1.5),
        "d": torch.zeros(0, 4),
    }
    save_file(tensors, tmp_path / "x.safetensors", {"made": "here"})
    stored = read_safetensors(tmp_path / "x.safetensors")
    theirs = load_file(tmp_path / "x.safetensors")
    assert stored.keys() == theirs.keys()
    for name, tensor in theirs.items():
        assert torch.equal(stored[name].read(), tensor)
        assert stored[name].read().dtype == tensor.dtype


def test_writing_to_a_tensor_changes_neither_file_nor_other_readers(tmp_path):
    save_file({"a": torch.ones(1000)}, tmp_path / "x.safetensors")
    before = (tmp_path / "x.safetensors").read_bytes()
    stored = read_safetensors(tmp_path / "x.safetensors")["a"]
    first, second = stored.read(), stored.read()
    first += 1
    assert torch.equal(second, torch.ones(1000))
    assert (tmp_path / "x.safetensors").read_bytes() == before


def test_tensors_outlive_their_file(tmp_path):
    """Mapped pages would end the process with SIGBUS."""
    save_file({"a": torch.ones(10_000)}, tmp_path / "x.safetensors")
    values = read_safetensors(tmp_path / "x.safetensors")["a"].read()
    os.truncate(tmp_path / "x.safetensors", 100)
    assert values.sum() == 10_000


def test_many_tensors_keep_no_file_open(tmp_path):
    save_file({"a": torch.ones(10)}, tmp_path / "x.safetensors")
    stored = read_safetensors(tmp_path / "x.safetensors")["a"]
    count = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    tensors = [stored.read() for _ in range(50)]
    if count:
        assert len(os.listdir("/proc/self/fd")) == count
    assert len(tensors) == 50


def test_unaligned_tensors_are_read(tmp_path):
    data = torch.tensor([1.0, 2.0]).numpy().tobytes()
    path = header_file(
        tmp_path / "x", b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}   '[:-2], data
    )
    assert read_safetensors(path)["a"].offset % 4
    assert read_safetensors(path)["a"].read().tolist() == [1.0, 2.0]


def test_own_names_round_trip_and_stay_shared(tmp_path):
    spec = gpt2()
    tensors = tensors_of(spec)
    save_file(tensors, tmp_path / SINGLE)
    model = assemble(spec)
    materialize(model, opened(tmp_path))
    assert model.head.vocabulary.weight is model.embedding.token.weight
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, tensors[name]), name


def test_a_file_a_directory_a_lone_file_and_an_index_give_the_same(tmp_path):
    tensors = tensors_of(gpt2())
    save_file(tensors, tmp_path / "lone.safetensors")
    shards = tmp_path / "shards"
    shards.mkdir()
    names = sorted(tensors)
    save_file({name: tensors[name] for name in names[::2]}, shards / "1.safetensors")
    save_file({name: tensors[name] for name in names[1::2]}, shards / "2.safetensors")
    places = {name: f"{1 + i % 2}.safetensors" for i, name in enumerate(names)}
    (shards / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places}))
    for path in (tmp_path / "lone.safetensors", tmp_path, shards, shards / INDEX):
        source = opened(path)
        assert all(torch.equal(next(source.pieces(name)), tensors[name].view(-1)) for name in names)


@one_in(3)
@pytest.mark.parametrize("stored", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("wanted", [torch.float32, torch.float16, torch.bfloat16])
def test_types_are_converted_tensor_by_tensor(stored, wanted, tmp_path):
    tensors = tensors_of(gpt2(), stored)
    save_file(tensors, tmp_path / SINGLE)
    source = opened(tmp_path, dtype=wanted)
    for name, tensor in tensors.items():
        values = torch.cat(list(source.pieces(name)))
        assert values.dtype == wanted
        assert torch.equal(values, tensor.to(wanted).view(-1))


def test_conversion_goes_piece_by_piece(tmp_path, monkeypatch):
    monkeypatch.setattr("zoo.checkpoints.source.PIECE", 16)
    tensors = tensors_of(gpt2())
    save_file(tensors, tmp_path / SINGLE)
    source = opened(tmp_path, dtype=torch.float16)
    for name, tensor in tensors.items():
        pieces = list(source.pieces(name))
        assert max(piece.numel() for piece in pieces) <= 16
        assert torch.equal(torch.cat(pieces), tensor.half().view(-1))
    model: Any = assemble(gpt2(), torch.float16)
    materialize(model, source)
    assert torch.equal(model.embedding.token.weight, tensors["embedding.token.weight"].half())


def test_raw_gives_the_bytes_of_the_values(tmp_path):
    tensors = tensors_of(gpt2())
    save_file(tensors, tmp_path / SINGLE)
    source = opened(tmp_path)
    content = (tmp_path / SINGLE).read_bytes()
    for name, tensor in tensors.items():
        path, offset, nbytes = source.raw(name)
        assert path == tmp_path / SINGLE
        assert content[offset : offset + nbytes] == tensor.numpy().tobytes()
    assert opened(tmp_path, dtype=torch.float16).raw("embedding.token.weight") is None


def refused(path, spec=None) -> str:
    """The message of the one error."""
    with pytest.raises(WeightError) as caught:
        opened(path, spec)
    return str(caught.value)


def test_a_wrong_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "'radnom' has no weights (did you mean 'random'?)\n  Pass" in refused("radnom")
    assert "xxx' has no weights\n  Pass random" in refused("x" * 5000)
    assert (
        "'nowhere/at/all' has no weights\n  Pass random, none, a file (.safetensors, .bin, .gguf)"
        in refused("nowhere/at/all")
    )


def test_a_directory_without_safetensors(tmp_path):
    nothing = "has no model.safetensors, no pytorch_model.bin and no index of shards\n  value:"
    assert f"{nothing} no files" in refused(tmp_path)
    (tmp_path / "readme.md").touch()
    assert "\n  value: readme.md" in refused(tmp_path)
    (tmp_path / "pytorch_model.bin").touch()
    assert "pytorch_model.bin is empty" in refused(tmp_path)
    (tmp_path / "pytorch_model.bin").rename(tmp_path / "readme.md")
    (tmp_path / "a.safetensors").touch()
    (tmp_path / "b.safetensors").touch()
    assert (
        "several .safetensors files and no index\n  Name one of them: a.safetensors, b.safetensors."
        in refused(tmp_path)
    )


def test_a_file_cut_at_any_byte_is_refused_by_name(tmp_path):
    save_file(tensors_of(gpt2()), tmp_path / SINGLE)
    whole = (tmp_path / SINGLE).read_bytes()
    for length in (0, 7, 8, 9, 300, len(whole) // 2, len(whole) - 1):
        (tmp_path / SINGLE).write_bytes(whole[:length])
        message = refused(tmp_path)
        assert str(tmp_path / SINGLE) in message
        assert "truncated" in message


def test_a_file_that_shrinks_after_its_header_was_read(tmp_path):
    save_file(tensors_of(gpt2()), tmp_path / SINGLE)
    source = opened(tmp_path)
    os.truncate(tmp_path / SINGLE, 1000)
    with pytest.raises(
        WeightError,
        match=r"embedding\.token\.weight cannot be read: the file became shorter while it was read",
    ):
        list(source.pieces("embedding.token.weight"))


@pytest.mark.parametrize(
    ("header", "data", "said"),
    [
        (b"garbage", b"", "the header is not a JSON object\n  Copy the file again from where it came."),
        (b"[]", b"", "the header is not a JSON object"),
        (b"[" * 1_000_000, b"", "the header is nested more than 64 levels deep"),
        (b"\xff\xfe", b"", "the header is not a JSON object"),
        ({"a": 3}, b"", "the header has no dtype, shape and data_offsets for a"),
        ({"a": entry(shape=(-2,))}, b"", "the header has no dtype, shape and data_offsets for a"),
        ({"a": entry(dtype="F31")}, b"", "a has unknown dtype F31\n  Did you mean 'F32'?"),
        ({"a": entry(shape=(3,))}, bytes(8), "a is 3 of F32, but its header entry has 8 bytes"),
        ({"a": entry(), "b": entry()}, bytes(8), "b does not start where the tensor before it ends"),
        ({"a": entry(offsets=(4, 12))}, bytes(12), "a does not start where the tensor before it ends"),
        ({"a": entry()}, bytes(7), "is truncated: its header declares"),
        ({"a": entry()}, bytes(9), "has 1 bytes that its header does not list"),
    ],
)
def test_a_header_that_is_none(header, data, said, tmp_path):
    message = refused(header_file(tmp_path / "x.safetensors", header, data))
    assert said in message
    assert "x.safetensors" in message


def test_a_header_longer_than_the_file(tmp_path):
    assert "its header should have 9,223,372,036,854,775,808 bytes, and 2 follow" in refused(
        header_file(tmp_path / "x.safetensors", b"{}", length=2**63)
    )


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(content=st.binary(max_size=200))
def test_garbage_is_never_a_traceback(content, tmp_path_factory):
    path = tmp_path_factory.mktemp("garbage") / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(WeightError):
        opened(path)
    path.write_bytes(len(content).to_bytes(8, "little") + content)
    with pytest.raises(WeightError):
        opened(path)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root reads everything")
def test_unreadable_files_are_refused(tmp_path):
    save_file(tensors_of(gpt2()), tmp_path / SINGLE)
    (tmp_path / SINGLE).chmod(0)
    assert "cannot be read: Permission denied" in refused(tmp_path)


def test_symlink_loops_and_forbidden_files_are_refused(tmp_path, monkeypatch):
    (tmp_path / SINGLE).symlink_to(tmp_path / SINGLE)
    assert f"{tmp_path / SINGLE} cannot be read: Too many levels" in refused(tmp_path)
    (tmp_path / SINGLE).unlink()
    (tmp_path / INDEX).symlink_to(tmp_path / INDEX)
    assert f"{tmp_path / INDEX} cannot be read: Too many levels" in refused(tmp_path)

    def forbidden(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("zoo.weights.files.os.listdir", forbidden)
    assert f"{tmp_path} cannot be read: Permission denied" in refused(tmp_path)


def test_special_files_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert f"{tmp_path / 'pipe'} cannot be read: it is a pipe, and only" in refused(tmp_path / "pipe")
    (tmp_path / SINGLE).mkdir()
    assert f"{tmp_path / SINGLE} cannot be read: it is a directory, and only" in refused(tmp_path)


@pytest.mark.parametrize(
    "shard",
    ["../x.safetensors", "/etc/passwd", "..", "", "a/b.safetensors", "C:\\x", "a\\b", "x" * 256, "x\0", "\x1b[31m"],
)  # fmt: skip
def test_an_index_that_points_elsewhere(shard, tmp_path):
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": {"a": shard}}))
    assert f"names {shorten(shard)}, which is not a file next to it" in refused(tmp_path)


@pytest.mark.parametrize("content", ["{}", '{"weight_map": []}', '{"weight_map": {"a": 1}}'])
def test_an_index_without_a_map(content, tmp_path):
    (tmp_path / INDEX).write_text(content)
    assert "has no weight_map from tensor names to file names" in refused(tmp_path)


def test_an_index_that_is_not_json_is_refused(tmp_path):
    (tmp_path / INDEX).write_text("weights: many")
    assert f"{tmp_path / INDEX} is not a JSON object" in refused(tmp_path)


def test_missing_shards_are_named(tmp_path):
    places = {f"t{i}": f"{i:02}.safetensors" for i in range(12)}
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": places}))
    message = refused(tmp_path)
    assert "lists 12 files, 12 of them missing: 00.safetensors, " in message
    assert message.endswith("07.safetensors and 4 more\n  Download them.")


def test_a_shard_that_lacks_an_indexed_tensor_is_refused(tmp_path):
    save_file({"a": torch.ones(1)}, tmp_path / "1.safetensors")
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": {"a": "1.safetensors", "b": "1.safetensors"}}))
    assert (
        "lists tensors missing from their files: b in 1.safetensors\n  Download the checkpoint again."
        in refused(tmp_path)
    )


def test_reading_headers_reads_no_tensors(tmp_path):
    save_file({"a": torch.ones(5)}, tmp_path / "x.safetensors")
    files = TensorFiles.open(tmp_path / "x.safetensors")
    assert files.tensors["a"].shape == (5,)
    extent = files.tensors["a"].extent
    assert extent is not None
    assert extent[1] == 20
