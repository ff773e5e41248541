"""Making what is to be written while what came before is written, on all processors, in bounded memory."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import Full, Queue
from typing import TypeVar

Item = TypeVar("Item")

PIECES = 2
"""Items of one series that wait to be used."""

_PATIENCE = 0.1  # seconds between looks at whether there is still need


class _End:
    """The end of a series, and what ended it."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


@contextmanager
def made_ahead(series: Sequence[Callable[[], Iterable[Item]]]) -> Iterator[Iterator[Iterator[Item]]]:
    """The items of each series in turn, while those of the following are made in threads of their own.

    An error while an item is made is raised where it would be used.
    """
    stop, workers = threading.Event(), os.cpu_count() or 1
    queues: list[Queue[Item | _End]] = [Queue(PIECES) for _ in series]

    def put(queue: Queue[Item | _End], item: Item | _End) -> None:
        while not stop.is_set():
            try:
                queue.put(item, timeout=_PATIENCE)
            except Full:
                continue
            break

    def make(queue: Queue[Item | _End], items: Callable[[], Iterable[Item]]) -> None:
        try:
            for item in items():
                put(queue, item)
                if stop.is_set():
                    break
        except BaseException as error:  # told where the items are used
            put(queue, _End(error))
        else:
            put(queue, _End())

    def in_turn(threads: ThreadPoolExecutor) -> Iterator[Iterator[Item]]:
        waiting = zip(queues, series, strict=True)
        for queue, items in itertools.islice(waiting, workers):
            threads.submit(make, queue, items)
        for queue in queues:
            for following in itertools.islice(waiting, 1):
                threads.submit(make, *following)
            yield _taken(queue)

    with ThreadPoolExecutor(workers) as threads:
        try:
            yield in_turn(threads)
        finally:
            stop.set()


def _taken(queue: Queue[Item | _End]) -> Iterator[Item]:
    while not isinstance(item := queue.get(), _End):
        yield item
    if item.error is not None:
        raise item.error
