"""Names, first sentences, messages and pages in the field's words."""

from __future__ import annotations

import ast
import re

import pytest

from tests.english import PUBLIC, _error_classes, _messages, _nounless, findings, page_findings
from tests.house import REFUSED, first_sentences


def test_names_first_sentences_and_messages_name_their_nouns() -> None:
    listed = findings()
    assert [re.sub(r":\d+:", ":", finding) for finding in listed] == [PUBLIC], "\n".join(
        ["Name the noun: see CONTRIBUTING.md.", *listed]
    )


def test_messages_are_read_in_every_kind_of_error() -> None:
    tree = ast.parse(
        "class UserError(Exception): ...\n"
        "class SizeError(errors.UserError): ...\n"
        "class SmallSizeError(SizeError): ...\n"
        "raise SmallSizeError(f'{n}: must have so many\\n  value: {n}')\n"
        "raise ValueError('that of another')\n"
    )
    assert [*_messages(tree, _error_classes([tree]))] == ["...: must have so many", "value: ..."]


def test_the_lint_refuses_what_it_is_for() -> None:
    tree = ast.parse('def f(given):\n    """What it is."""\n    for each in given: pass\n')
    assert [*_nounless(tree)] == [(1, "given"), (3, "each")]
    assert [bool(REFUSED.search(sentence)) for sentence in first_sentences(tree)] == [True]


def test_pages_are_in_the_field_s_words() -> None:
    assert page_findings() == [], "One idea per sentence, in the field's words: see CONTRIBUTING.md."


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        (f"It is {'very ' * 40}long.", "43 words"),
        ("- An item.\n- Another, " + "and more, " * 20, "41 words"),
        ("| a |\n|---|\n| A cell " + "with many words " * 13 + "ends. |", "42 words"),
        ("The files are proven to be equal.", "'proven'"),
        ("Each has a process\nof its own.", "'of its own'"),
        ("What is missing is named.", "begins with What"),
        ("## What a change changes\n", "heading"),
        ("## On paper\n", "heading"),
    ],
)
def test_a_page_is_refused_for(text: str, finding: str) -> None:
    (found,) = page_findings([("page.md", text)])
    assert finding in found


def test_code_lists_of_values_and_plain_sentences_pass() -> None:
    long = ", ".join(f"`name_{index}`" for index in range(60))
    plain = "One idea. `a b c d` is one word; v1.2 ends no sentence. They have values in place of their own."
    assert page_findings([("page.md", f"{plain}\n\n| models |\n|---|\n| {long} |\n")]) == []
