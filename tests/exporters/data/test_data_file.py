"""The layout of the data file, and what is written to it."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from exporters.data import data_file
from exporters.data.data_file import ALIGNMENT, PAGE, lay_out, total_bytes
from exporters.graph.content import StoredContent
from exporters.graph.values import Parameter
from zoo.weights.source import WeightError, WeightSource

shapes = st.lists(st.integers(0, 400), max_size=3).map(tuple)


@given(
    st.lists(
        st.tuples(st.text("abcdef", max_size=2), shapes, st.sampled_from([torch.float32, torch.float16]))
    )
)
def test_every_weight_has_one_aligned_place_of_its_own(given: Any) -> None:
    known = {name: Parameter(name, shape, dtype, StoredContent((name,))) for name, shape, dtype in given}
    regions = lay_out(known[name] for name, *_ in given)
    assert regions.keys() == known.keys()
    end = 0
    for name, region in regions.items():
        assert region.length == torch.empty(known[name].shape, dtype=known[name].dtype).nbytes
        assert region.offset >= end
        assert region.offset % (PAGE if region.length >= 16 * PAGE else ALIGNMENT) == 0
        end = region.offset + region.length
    assert total_bytes(regions) == end


class Pieces(WeightSource):
    """Weights in pieces, or as bytes in a file."""

    description = "for testing"

    def __init__(self, pieces: dict[str, list[Tensor]], place: tuple[Path, int, int] | None = None) -> None:
        self.given, self.place = pieces, place

    def pieces(self, name: str) -> Iterator[Tensor]:
        yield from self.given[name]

    def raw(self, name: str) -> tuple[Path, int, int] | None:
        return self.place


REGIONS = lay_out(
    [
        Parameter("a", (3,), torch.float32, StoredContent(("a",))),
        Parameter("b", (2, 2), torch.float32, StoredContent(("b",))),
    ]
)


def test_pieces_follow_one_another_and_gaps_are_zero(tmp_path: Path) -> None:
    pieces = {"a": [torch.ones(2), torch.full((1,), 2.0)], "b": [torch.arange(4.0)]}
    told: list[int] = []
    data_file.write(
        tmp_path / "x", REGIONS, Pieces(pieces), lambda parts: told.append(sum(part.length for part in parts))
    )
    values = torch.frombuffer(bytearray((tmp_path / "x").read_bytes()), dtype=torch.float32)
    assert values.tolist() == [1.0, 1.0, 2.0, *[0.0] * 13, 0.0, 1.0, 2.0, 3.0]
    assert told == [12, 16]


@pytest.mark.parametrize("pieces", [[torch.ones(2)], [torch.ones(2), torch.ones(2)]])
def test_a_source_with_too_many_or_too_few_values_is_refused(pieces: list[Tensor], tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        data_file.write(
            tmp_path / "x", REGIONS, Pieces({"a": pieces, "b": [torch.arange(4.0)]}), lambda parts: None
        )


@pytest.mark.parametrize("kernel", [True, False])
def test_bytes_are_copied_from_anywhere_in_a_file(
    kernel: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not kernel:
        monkeypatch.delattr("os.copy_file_range")
    origin = tmp_path / "origin"
    origin.write_bytes(bytes(range(100)))
    regions = lay_out([Parameter("a", (3,), torch.float32, StoredContent(("a",)))])
    data_file.write(tmp_path / "x", regions, Pieces({}, (origin, 7, 12)), lambda parts: None)
    assert (tmp_path / "x").read_bytes() == bytes(range(7, 19))


def test_a_file_that_is_gone_or_short_is_named(tmp_path: Path) -> None:
    regions, origin = (
        lay_out([Parameter("a", (3,), torch.float32, StoredContent(("a",)))]),
        tmp_path / "origin",
    )
    with pytest.raises(WeightError, match="origin cannot be read: No such file or directory"):
        data_file.write(tmp_path / "x", regions, Pieces({}, (origin, 0, 12)), lambda parts: None)
    origin.write_bytes(b"short")
    with pytest.raises(WeightError, match="origin became shorter while it was read"):
        data_file.write(tmp_path / "x", regions, Pieces({}, (origin, 0, 12)), lambda parts: None)


def test_read_errors_are_distinguished_from_write_errors(tmp_path: Path) -> None:
    class Broken:
        name = "origin"

        def read(self, most: int) -> bytes:
            raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(WeightError, match="origin cannot be read: Input/output error"):
        data_file._read(Broken(), 4)  # type: ignore[arg-type]
