"""The digests of a data file and of every weight in it, computed while it is written.

Bytes are read back as soon as everything before them is written, while the system still caches them: what the kernel
moved from file to file needs no copy, and a file larger than memory is read from disk only once.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import onnx

from specs.base.errors import UserError
from zoo.record.integrity import BLOCK
from zoo.record.records import FileRecord, TensorRecord

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
            self._changed.notify()

    def end(self) -> None:
        """Stop waiting: nothing more will be written."""
        with self._changed:
            self._ended = True
            self._changed.notify()

    def digests(self) -> DataDigests:
        """Compute the digests, each as soon as everything before it in the file is written."""
        whole, end, digests = hashlib.sha256(), 0, dict[ByteRange, str]()
        with ThreadPoolExecutor(2) as threads:
            for span in sorted({*self._places.values()}):
                self._wait(span)
                own = hashlib.sha256()
                with self._path.open("rb", buffering=0) as file:
                    for start, block in _blocks(file.fileno(), end, sum(span)):
                        inside = memoryview(block)[max(0, span[0] - start) :]
                        # Both leave the interpreter free.
                        [*threads.map(lambda pair: pair[0].update(pair[1]), ((whole, block), (own, inside)))]
                end, digests[span] = sum(span), own.hexdigest()
        tensors = {
            name: TensorRecord(offset=span[0], length=span[1], sha256=digests[span])
            for name, span in self._places.items()
        }
        return DataDigests(FileRecord(size=end, sha256=whole.hexdigest()), tensors)

    def _wait(self, span: ByteRange) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._ended or span in self._written)
            if span not in self._written:
                raise RuntimeError(f"{self._path} was not written")


def _blocks(descriptor: int, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield the bytes of a file between two offsets, block by block with their offsets."""
    while start < end:
        block = os.pread(descriptor, min(BLOCK, end - start), start)
        if not block:
            raise UserError(
                f"The data file became shorter while it was written: byte {start:,} is missing\n"
                "  Export the model again."
            )
        yield start, block
        start += len(block)


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
