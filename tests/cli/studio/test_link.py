"""Specs in addresses."""

from __future__ import annotations

import base64
import zlib

import pytest

from cli.studio.link import fragment_of, is_link, text_of_link
from cli.studio.opened_spec import opened
from specs.base.errors import UserError
from tests.cli.studio.conftest import text_of

ADDRESS = "http://127.0.0.1:8642/token/#base=gpt2&"


def test_a_spec_goes_through_an_address() -> None:
    text = f"{text_of('gpt2')}# ümlaut ∂\n"
    address = f"{ADDRESS}{fragment_of(text)}"
    assert is_link(address)
    assert text_of_link(address) == text
    assert opened(address).text == text


@pytest.mark.parametrize(
    "packed", ["", "%%%", "AAAA", base64.urlsafe_b64encode(zlib.compress(b"x")).decode()]
)
def test_an_address_without_a_spec_says_so(packed: str) -> None:
    with pytest.raises(UserError, match="Copy it again"):
        text_of_link(f"{ADDRESS}spec={packed}")


def test_an_address_that_unpacks_to_too_much_is_refused() -> None:
    with pytest.raises(UserError, match="no spec that can be read"):
        text_of_link(f"{ADDRESS}{fragment_of('a' * 50_000_000)}")


def test_other_addresses_are_no_links() -> None:
    assert not is_link("https://example.org/model")
    assert not is_link("gpt2")
