"""The digests of a data file and of every weight in it, computed while it is written.

Bytes are read back as soon as everything before them is written, while the system still caches them: what the kernel
moved from file to file needs no copy, and a file larger than memory is read from disk only once.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import onnx

from specs.base.errors import UserError
from zoo.record.integrity import BLOCK
from zoo.record.records import FileRecord, TensorRecord

if TYPE_CHECKING:
    from hashlib import _Hash

ByteRange = tuple[int, int]
"""The place of a weight in the data file: offset and length in bytes."""


@dataclass(frozen=True)
class DataDigests:
    """The record of a data file, and of each weight in it by name."""

    file: FileRecord
    tensors: dict[str, TensorRecord]


class Following:
    """Follows the writing of a data file; ``written`` names the weights that are complete, in any order."""

    def __init__(self, path: Path, places: Mapping[str, ByteRange]) -> None:
        self._path, self._places = path, places
        self._written = set[ByteRange]()
        self._ended = False
        self._changed = threading.Condition()

    def written(self, places: Iterable[ByteRange]) -> None:
        """Mark these places as written."""
        with self._changed:
            self._written.update(places)
            self._changed.notify_all()

    def end(self) -> None:
        """Stop waiting: nothing more will be written."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def digests(self) -> DataDigests:
        """Compute the digests, each as soon as everything before it in the file is written."""
        spans = sorted({*self._places.values()})
        with ThreadPoolExecutor(1) as thread:  # both leave the interpreter free
            others = thread.submit(self._of_weights, [span for span in spans if span[0] > 0])
            file, digests = self._of_file(spans)
            digests |= others.result()
        tensors = {
            name: TensorRecord(offset=span[0], length=span[1], sha256=digests[span])
            for name, span in self._places.items()
        }
        return DataDigests(file, tensors)

    def _of_file(self, spans: Sequence[ByteRange]) -> tuple[FileRecord, dict[ByteRange, str]]:
        """The record of the file, and the digest of the weight at its start: the file's when no more is written."""
        whole, end, first, buffer = hashlib.sha256(), 0, dict[ByteRange, str](), bytearray(BLOCK)
        for span in spans:
            self._hash(whole, end, span, buffer)
            end = sum(span)
            if span[0] == 0:
                first[span] = whole.hexdigest()
        return FileRecord(size=end, sha256=whole.hexdigest()), first

    def _of_weights(self, spans: Sequence[ByteRange]) -> dict[ByteRange, str]:
        digests, buffer = dict[ByteRange, str](), bytearray(BLOCK)
        for span in spans:
            own = hashlib.sha256()
            self._hash(own, span[0], span, buffer)
            digests[span] = own.hexdigest()
        return digests

    def _hash(self, digest: _Hash, start: int, span: ByteRange, buffer: bytearray) -> None:
        """Add the bytes between ``start`` and the end of a weight, once that is written, to a digest."""
        self._wait(span)
        left = sum(span) - start
        with self._path.open("rb", buffering=0) as file, memoryview(buffer) as block:
            file.seek(start)
            while left > 0:
                count = file.readinto(block[: min(left, BLOCK)])
                if not count:
                    raise UserError(
                        f"The data file became shorter while it was written: byte {sum(span) - left:,} is missing\n"
                        "  Export the model again."
                    )
                digest.update(block[:count])
                left -= count

    def _wait(self, span: ByteRange) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._ended or span in self._written)
            if span not in self._written:
                raise RuntimeError(f"{self._path} was not written")


@contextmanager
def followed(path: Path, places: Mapping[str, ByteRange]) -> Iterator[tuple[Following, Future[DataDigests]]]:
    """Yield a follower of a data file that is written within the block, and its future digests."""
    following = Following(path, places)
    with ThreadPoolExecutor(1) as thread:
        try:
            yield following, thread.submit(following.digests)
        finally:
            following.end()


def external_places(graphs: Mapping[str, onnx.ModelProto]) -> dict[str, dict[str, ByteRange]]:
    """The places of weights as graphs declare them: by data file, then by name."""
    places = dict[str, dict[str, ByteRange]]()
    for path, graph in graphs.items():
        for tensor in graph.graph.initializer:
            if tensor.data_location == onnx.TensorProto.EXTERNAL:
                said = {entry.key: entry.value for entry in tensor.external_data}
                file = PurePosixPath(path).with_name(said["location"]).as_posix()
                places.setdefault(file, {})[tensor.name] = int(said["offset"]), int(said["length"])
    return places
