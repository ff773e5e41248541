"""The tasks by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from specs.errors import UserError, option_name
from specs.model import Model
from specs.suggest import did_you_mean
from zoo.training.names import MASKED_BYTE, OF_TEXT, TASKS
from zoo.training.synthetic import Addition, Copy, Recall, Reverse
from zoo.training.task import Task
from zoo.training.text import MaskedByte, NextByte, Text, read_text

_SYNTHETIC: dict[str, type[Task]] = {task.name: task for task in (Copy, Reverse, Recall, Addition)}


def find_task(name: str, text: Path | None, length: int | None, specs: Sequence[Model]) -> Task:
    """The task of a name, of a text where it takes one, with passages of a length.

    Raises :class:`UserError` for names there are not, for a text that is missing, too short or not asked for, and for specs that
    read a text in ways that cannot be compared.
    """
    if name not in TASKS:
        raise UserError(f"there is no {option_name('task')} {name!r}: {did_you_mean(name, TASKS)}")
    if name in _SYNTHETIC:
        if text is not None:
            raise UserError(
                f"{option_name('task')} {name} makes up its own passages and takes no {option_name('text')}\n  value: {str(text)!r}\n"
                f"  {option_name('task')} {' or '.join(OF_TEXT)} would work"
            )
        kind = _SYNTHETIC[name]
        return kind(length or kind.usual_length)
    if text is None:
        raise UserError(f"{option_name('task')} {name} needs a text\n  add {option_name('text')} FILE")
    length = length or Text.usual_length
    if length < 2:
        raise UserError(
            f"{option_name('length')} of a text must be 2 bytes or more\n  value: {length}\n  {Text.usual_length} would work"
        )
    content = read_text(text, length)
    if name == MASKED_BYTE:
        return MaskedByte(length, content)
    architectures = {spec.architecture for spec in specs if spec.architecture in NextByte.architectures}
    if len(architectures) > 1:
        raise UserError(
            "specs compared on next-byte must be of one architecture: a decoder predicts every byte, an encoder-decoder the "
            f"second half of them\n  value: {', '.join(spec.architecture for spec in specs)}\n"
            "  compare them on copy, reverse, recall or addition"
        )
    return NextByte(length, content, halves="encoder-decoder" in architectures)
