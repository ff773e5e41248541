"""Saved training runs: interrupted ones resume, finished ones are reused."""

from __future__ import annotations

import hashlib
import io
import json
import math
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from specs.base.base import PositiveFloat
from specs.base.errors import UserError, option_name, path_text
from specs.forms.resolved import resolved
from specs.model.model import Model
from zoo.files.destination import reported_refusals
from zoo.files.reading import open_regular, read_regular
from zoo.files.whole import write_file
from zoo.training.score import Score
from zoo.training.settings import Settings
from zoo.training.task import TrainingTask

if TYPE_CHECKING:
    from zoo.training.trainer import Trainer

_ABOUT = ("name", "summary", "source", "year")


class TrainingResult(BaseModel):
    """The result of a training run.  Losses are finite, except the last one of a run that ``diverged``."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    parameters: Annotated[int, Field(ge=0)]
    losses: Annotated[tuple[float, ...], Field(min_length=1)]
    scores: tuple[Score, ...]
    seconds: PositiveFloat
    diverged: bool
    sees_answers: bool

    @field_validator("losses")
    @classmethod
    def _finite_before_the_last(cls, losses: tuple[float, ...]) -> tuple[float, ...]:
        if not all(map(math.isfinite, losses[:-1])):
            raise ValueError("losses before the last must be finite")
        return losses


class Store:
    """The directory of one run, by spec, task and settings: a state during training, then the result."""

    def __init__(
        self, root: Path, spec: Model, task: TrainingTask, settings: Settings, device: torch.device
    ) -> None:
        trained = {key: value for key, value in resolved(spec).items() if key not in _ABOUT}
        decisive = {
            "spec": trained,
            "task": task.as_dict(),
            "settings": settings.as_dict(),
            "device": device.type,
            "versions": [version("zoo"), torch.__version__],
        }
        text = json.dumps(decisive, sort_keys=True)
        self.directory = root / hashlib.sha256(text.encode()).hexdigest()[:16]
        self._state, self._result = self.directory / "state.pt", self.directory / "result.json"
        self._settings = json.dumps(decisive, indent=2)

    def clear(self) -> None:
        """Delete the saved run."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def resume(self, trainer: Trainer) -> None:
        """Resume an interrupted training run, if there is one.  Raises :class:`UserError` for a damaged state."""
        try:
            with open_regular(self._state, self.directory) as file:
                trainer.resume(torch.load(file, map_location="cpu", weights_only=True))
        except FileNotFoundError:
            return
        except Exception:  # a damaged or foreign pickle may raise anything
            raise UserError(
                f"{self._state} is not a valid training state\n  Pass {option_name('force')} to start over."
            ) from None

    def keep_state(self, state: dict[str, Any]) -> None:
        """Replace the saved state."""
        made = io.BytesIO()
        torch.save(state, made)
        self._write(self._state, made.getvalue())

    def result(self) -> TrainingResult | None:
        """The result of a finished training, or None.  Raises :class:`UserError` for a damaged file."""
        try:
            return TrainingResult.model_validate_json(read_regular(self._result, self.directory))
        except FileNotFoundError:
            return None
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field = path_text(first["loc"])
            raise UserError(
                f"{self._result} is not a valid training result: {f'{field}: ' if field else ''}{first['msg']}\n"
                f"  Pass {option_name('force')} to start over."
            ) from None

    def keep_result(self, result: TrainingResult) -> None:
        """Replace the saved state with the result."""
        self._write(self._result, json.dumps(result.model_dump()).encode())
        self._state.unlink(missing_ok=True)

    def _write(self, path: Path, content: bytes) -> None:
        """Write a file atomically.  Raises :class:`zoo.files.destination.DestinationError`."""
        with reported_refusals(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
            settings = self.directory / "settings.json"
            if not settings.exists():
                write_file(settings, self._settings.encode())
            write_file(path, content)
