"""The order of a run that may end before all tests have run: other modules come first for another key."""

from __future__ import annotations

import hashlib

import pytest


def in_order_of(key: str, items: list[pytest.Item]) -> None:
    """Sort tests by module, in an order that the key decides; those of a module stay together, in their order."""

    def place(item: pytest.Item) -> bytes:
        return hashlib.sha256(f"{key} {item.nodeid.partition('::')[0]}".encode()).digest()

    items.sort(key=place)
