"""The requests of the page by name: quick edits, work that takes seconds, and long work in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cli.studio.answer import Answers
from cli.studio.controls import changed, stepped
from cli.studio.dropped import imported
from cli.studio.mesh_figures import MeshFigures, MeshQuestion
from cli.studio.opened_spec import OpenedSpec, opened_below
from cli.studio.places import place_below
from cli.studio.requests import Fields
from cli.studio.saved_spec import command_of, saved
from specs.language.editing import without
from specs.language.preset_files import preset_names
from zoo.checkpoints.converting import DTYPES
from zoo.training.task_names import SYNTHETIC

MOST_STEPS = 5000
"""The most training steps of a comparison."""

Work = Callable[[Fields], dict[str, Any]]


class Works:
    """The work of a studio, which knows the checkpoints that it has opened: weights are read from no others."""

    def __init__(self, first: OpenedSpec, folder: Path, answers: Answers) -> None:
        self.folder, self.answers = folder, answers
        self.meshes = MeshFigures(folder)
        self.weights = dict.fromkeys(filter(None, [first.weights]))

    def edits(self) -> dict[str, Work]:
        """The requests that are answered at once."""
        folder = self.folder
        return {
            "set": lambda asked: {
                "text": changed(asked.text("text"), asked.path("path"), asked.plain("value"), folder)
            },
            "remove": lambda asked: {"text": without(asked.text("text"), asked.path("path"))},
            "step": lambda asked: {
                "text": stepped(
                    asked.text("text"),
                    asked.path("path"),
                    asked.number("value"),
                    asked.whole("direction", 1, -1, 1) or 1,
                    folder,
                )
            },
            "save": lambda asked: saved(
                asked.text("text"), asked.text("file"), folder, replace=asked.plain("replace") is True
            ),
            "command": lambda asked: command_of(asked.text("text"), self._origin(asked), folder),
        }

    def slow(self) -> dict[str, Work]:
        """The requests that may take seconds: files, the hub, meshes, and measurements."""
        return {
            "open": lambda asked: self.opened(
                opened_below(asked.text("reference"), self.folder, asked.text("otherwise", ""))
            ),
            "import": lambda asked: self.opened(imported(asked.text("config"))),
            "mesh": lambda asked: self.meshes.of(MeshQuestion.of(asked)),
            "measure": lambda asked: self.answers.measure(),
        }

    def opened(self, spec: OpenedSpec) -> dict[str, Any]:
        """A spec for the page, which may ask for its weights from now on."""
        if spec.weights:
            self.weights[spec.weights] = None
        return spec.as_dict()

    def _origin(self, asked: Fields) -> dict[str, str]:
        """The preset, weights and file that a text started from, as far as this studio knows them."""
        preset, weights = asked.text("preset", ""), asked.text("weights", "")
        return {
            "preset": preset if preset in preset_names() else "",
            "weights": weights if weights in self.weights else "",
            "file": asked.text("file", ""),
        }

    def jobs(self) -> dict[str, Work]:
        """The checked requests of long work."""
        root = self.folder.resolve()

        def weights(asked: Fields) -> str:
            return asked.choice("weights", ["random", "none", *self.weights])

        return {
            "export": lambda asked: {
                "options": {**asked.texts(("target", "precision", "layout")), "weights": weights(asked)}
            },
            "checkpoint": lambda asked: {
                "directory": str(place_below(self.folder, asked.text("directory")).relative_to(root)),
                "replace": asked.plain("replace") is True,
                "code": asked.plain("code") is True,
                "dtype": asked.choice("dtype", [*DTYPES]),
                "weights": asked.choice("weights", ["random", *self.weights]),
            },
            "training": lambda asked: {
                "base": asked.choice("base", ["", *preset_names()]),
                "base_text": asked.text("base_text", ""),
                "task": asked.choice("task", list(SYNTHETIC)),
                "steps": asked.whole("steps", 200, 1, MOST_STEPS),
                "layers": asked.whole("layers", None, 1, 1000),
                "width": asked.whole("width", None, 8, 65536),
            },
        }
