"""Where training is kept, so that it goes on where it was interrupted, and what is finished need not be done again."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import secrets
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from specs.errors import UserError
from specs.model import Model
from specs.resolved import resolved
from zoo.training.settings import Settings
from zoo.training.task import Task

_ABOUT = ("name", "summary", "source", "year")


class Store:
    """A directory for one spec on one task with certain settings: a state while it is trained, then the result."""

    def __init__(
        self, place: Path, spec: Model, task: Task, settings: Settings, device: torch.device
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
        self.directory = place / hashlib.sha256(text.encode()).hexdigest()[:16]
        self._state, self._result = self.directory / "state.pt", self.directory / "result.json"
        self._settings = json.dumps(decisive, indent=2)

    def clear(self) -> None:
        """Forget what is there."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def state(self) -> Any:
        """The state of an interrupted training, or None.  Raises :class:`UserError` for a file that is none."""
        try:
            return torch.load(self._state, map_location="cpu", weights_only=True)
        except FileNotFoundError:
            return None
        except (RuntimeError, EOFError, pickle.UnpicklingError):
            raise UserError(
                f"{self._state} is no state of a training to go on with\n  --fresh starts over"
            ) from None

    def keep_state(self, state: dict[str, Any]) -> None:
        """Put a state in the place of an earlier one."""
        made = io.BytesIO()
        torch.save(state, made)
        self._write(self._state, made.getvalue())

    def result(self) -> dict[str, Any] | None:
        """The result of a finished training, or None.  Raises :class:`UserError` for a file that is none."""
        try:
            found: dict[str, Any] = json.loads(self._result.read_text("utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise UserError(
                f"{self._result} is no result of a training: {error}\n  --fresh starts over"
            ) from None
        return found

    def keep_result(self, result: dict[str, Any]) -> None:
        """Put a result in the place of the state."""
        self._write(self._result, json.dumps(result).encode())
        self._state.unlink(missing_ok=True)

    def _write(self, path: Path, content: bytes) -> None:
        """Write a file that is there whole or not at all."""
        self.directory.mkdir(parents=True, exist_ok=True)
        settings = self.directory / "settings.json"
        if not settings.exists():
            settings.write_text(self._settings, "utf-8")
        partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            partial.write_bytes(content)
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
