"""Names, first sentences and messages in the field's words."""

from __future__ import annotations

import ast

from tests.english import PUBLIC, _error_classes, _messages, _nounless, findings
from tests.house import REFUSED, first_sentences


def test_names_first_sentences_and_messages_name_their_nouns() -> None:
    assert findings() == [PUBLIC], "Name the noun: see CONTRIBUTING.md."


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
