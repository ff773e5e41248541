"""The tasks by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from specs.base.errors import UserError, option_name
from specs.base.suggest import suggestion
from specs.model.model import Model
from zoo.training.synthetic import Addition, Copy, Recall, Reverse
from zoo.training.task import TrainingTask
from zoo.training.task_names import MASKED_BYTE, OF_TEXT, TASKS
from zoo.training.text import MaskedByte, NextByte, TextTask, read_text

_SYNTHETIC: dict[str, type[TrainingTask]] = {task.name: task for task in (Copy, Reverse, Recall, Addition)}


def find_task(name: str, text: Path | None, length: int | None, specs: Sequence[Model]) -> TrainingTask:
    """The task of a name, with passages of a length, and a text if it takes one.

    Raises :class:`UserError` for an unknown name, for a missing, short or superfluous text, and for specs whose losses on a
    text cannot be compared.
    """
    if name not in TASKS:
        raise UserError(f"{option_name('task')} {name!r} is unknown\n  {suggestion(name, TASKS)}")
    if name in _SYNTHETIC:
        if text is not None:
            raise UserError(
                f"{option_name('task')} {name} generates its own passages and takes no {option_name('corpus')}\n  value: {str(text)!r}\n"
                f"  Leave it out, or use {option_name('task')} {' or '.join(OF_TEXT)}."
            )
        kind = _SYNTHETIC[name]
        return kind(length or kind.usual_length)
    if text is None:
        raise UserError(f"{option_name('task')} {name} needs a text\n  Pass {option_name('corpus')} FILE.")
    length = length or TextTask.usual_length
    if length < 2:
        raise UserError(
            f"{option_name('task_length')} of a text must be 2 bytes or more\n  value: {length}\n  Use {TextTask.usual_length}."
        )
    content = read_text(text, length)
    if name == MASKED_BYTE:
        return MaskedByte(length, content)
    architectures = {spec.architecture for spec in specs if spec.architecture in NextByte.architectures}
    if len(architectures) > 1:
        raise UserError(
            "Specs compared on next-byte must have the same architecture: a decoder predicts every byte, an encoder-decoder the "
            f"second half of them\n  value: {', '.join(spec.architecture for spec in specs)}\n"
            "  Compare them on copy, reverse, recall or addition."
        )
    return NextByte(length, content, halves="encoder-decoder" in architectures)
