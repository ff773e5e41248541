"""Preparing later items on all processors while earlier ones are used, in bounded memory."""

from __future__ import annotations

import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Generic, TypeVar

Item = TypeVar("Item")

WAITING = 2**25
"""The bytes of one series that may wait to be used: a 4-bit matrix of a large model."""


class _Series(Generic[Item]):
    """The items of one series, between the thread that makes them and the one that uses them."""

    def __init__(self, make: Callable[[], Iterable[Item]], size: Callable[[Item], int]) -> None:
        self._make, self._size = make, size
        self._items: deque[Item] = deque()
        self._waiting = 0
        self._ended = False
        self._error: BaseException | None = None
        self._changed = threading.Condition()

    def run(self) -> None:
        """Make the items; each waits while too many bytes are unused."""
        error: BaseException | None = None
        try:
            for item in self._make():
                with self._changed:
                    self._changed.wait_for(lambda: self._ended or self._waiting < WAITING)
                    if self._ended:
                        return
                    self._items.append(item)
                    self._waiting += self._size(item)
                    self._changed.notify_all()
        except BaseException as raised:  # raised where the items are used
            error = raised
        self.end(error)

    def end(self, error: BaseException | None = None) -> None:
        """End the series: no more items will be made."""
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify_all()

    def __iter__(self) -> Iterator[Item]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ended or bool(self._items))
                if not self._items:
                    break
                item = self._items.popleft()
                self._waiting -= self._size(item)
                self._changed.notify_all()
            yield item
        if self._error is not None:
            raise self._error


@contextmanager
def prefetched(
    makers: Sequence[Callable[[], Iterable[Item]]], size: Callable[[Item], int]
) -> Iterator[Iterator[Iterator[Item]]]:
    """Yield the items of each series in turn, while threads prepare the next series.

    ``size`` gives the bytes of an item. An error in making an item is raised where the item would be used.
    """
    workers = os.cpu_count() or 1
    every = [_Series(make, size) for make in makers]

    def in_turn(threads: ThreadPoolExecutor) -> Iterator[Iterator[Item]]:
        following = iter(every)
        for series in itertools.islice(following, workers):
            threads.submit(series.run)
        for series in every:
            for later in itertools.islice(following, 1):
                threads.submit(later.run)
            yield iter(series)

    with ThreadPoolExecutor(workers) as threads:
        try:
            yield in_turn(threads)
        finally:
            for series in every:
                series.end()
