"""What ``zoo run`` gives a model: texts, token ids, images or sounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from exporters.runtime.exported import Exported
    from exporters.runtime.graph import Floats
    from exporters.runtime.model_inputs import Given
    from exporters.runtime.text import TextTokenizer

_OPTIONS = {
    "input_ids": ("--text", "--ids"),
    "pixel_values": ("--image",),
    "input_features": ("--audio",),
    "input_values": ("--audio",),
}
"""The options that give a model's inputs."""


@dataclass(frozen=True)
class RunInputs:
    """The inputs of a model, ``what`` they are, and the name of each file, which is empty for texts; ``images`` that are
    among the tokens of texts."""

    given: Given
    what: str
    names: list[str]
    images: Floats | None = None

    @property
    def data(self) -> dict[str, Any]:
        """The inputs as JSON: the names of files, or token ids."""
        return {f"{self.what}s": self.names} if any(self.names) else {"prompt_ids": self.given}


@dataclass(frozen=True)
class GivenOptions:
    """The inputs as the options state them."""

    texts: Sequence[str]
    ids: Sequence[str]
    images: Sequence[Path]
    sounds: Sequence[Path]

    @property
    def options(self) -> list[str]:
        """The options that were given."""
        named = {"--text": self.texts, "--ids": self.ids, "--image": self.images, "--audio": self.sounds}
        return [option for option, given in named.items() if given]


def read_inputs(stated: GivenOptions, exported: Exported, tokenizer: TextTokenizer | None) -> RunInputs:
    """The inputs of an export.  Raises :class:`specs.errors.UserError` for those that it does not take."""
    from specs.errors import UserError

    spec = exported.spec
    name = spec.embedding_of(spec.first_stack).input_name
    if spec.architecture == "vision-language" and stated.images:
        return _texts_with_images(stated, exported, tokenizer)
    options = _OPTIONS.get(name, ())
    if not options:
        raise UserError(f"{spec.name} takes {name}, which no option gives\n  Run its graph with onnxruntime.")
    if wrong := next((option for option in stated.options if option not in options), None):
        raise UserError(f"{spec.name} takes {name}, which {wrong} does not give\n  Pass {options[0]}.")
    if not stated.options:
        more = ", or token ids such as --ids 1,2,3" if "--ids" in options else " with a file"
        raise UserError(f"No input.\n  Pass {options[0]}{more}.")
    if stated.images:
        return _images(stated.images, exported)
    if stated.sounds:
        return _sounds(stated.sounds, exported)
    return _texts(stated, tokenizer)


def read_pair(
    stated: GivenOptions, exported: Exported, tokenizer: TextTokenizer | None
) -> tuple[RunInputs, RunInputs]:
    """The texts and the images that a dual encoder compares.

    Raises :class:`specs.errors.UserError` where either is missing, and for sounds.
    """
    from specs.errors import UserError

    name = exported.spec.name
    if stated.sounds:
        raise UserError(f"{name} compares texts with images, which --audio does not give\n  Pass --image.")
    if not stated.images or not (stated.texts or stated.ids):
        missing = "--text" if stated.images else "--image"
        raise UserError(f"{name} compares texts with images, and {missing} is missing\n  Pass both.")
    texts = _texts(stated, tokenizer)
    filled = _filled(texts.given, exported, tokenizer) if stated.texts and tokenizer else texts.given
    names = [*stated.texts, *[""] * len(stated.ids)]
    return RunInputs(filled, "text", names), _images(stated.images, exported)


def _texts_with_images(
    stated: GivenOptions, exported: Exported, tokenizer: TextTokenizer | None
) -> RunInputs:
    """Texts, with the placeholders of all images among their tokens."""
    from exporters.runtime.embedding import with_placeholders

    if stated.sounds:
        from specs.errors import UserError

        raise UserError(
            f"{exported.spec.name} reads text and images, which --audio does not give\n  Pass --image."
        )
    seen = _images(stated.images, exported)
    texts = _texts(stated, tokenizer) if stated.texts or stated.ids else RunInputs([[]], "text", [""])
    prompts = with_placeholders(exported.spec, cast("Any", texts.given), len(seen.names))
    return RunInputs(prompts, "text", texts.names, cast("Any", seen.given))


def _filled(given: Given, exported: Exported, tokenizer: TextTokenizer) -> Given:
    """Texts as their encoder was trained on them: one that pools at the last token of all, in both directions, reads them
    filled up to its context (SigLIP)."""
    spec = exported.spec
    assert spec.text is not None
    length, padding = spec.context_length_of(spec.text), tokenizer.padding_id
    if getattr(spec.text.head, "pooling", None) != "last" or spec.is_causal("text") or length is None:
        return given
    return given if padding is None else [[*ids, *[padding] * (length - len(ids))] for ids in given]


def _texts(stated: GivenOptions, tokenizer: TextTokenizer | None) -> RunInputs:
    """Texts, and token ids after them."""
    from specs.errors import UserError

    if stated.texts and tokenizer is None:
        raise UserError(
            "--text needs a tokenizer, and there is no tokenizer.json beside the model.\n"
            "  Pass --tokenizer PATH, or token ids with --ids."
        )
    read = tokenizer.ids(list(stated.texts)) if stated.texts and tokenizer else []
    prompts = [*read, *map(token_ids, stated.ids)]
    return RunInputs(prompts, "text", [""] * len(prompts))


def _images(given: Sequence[Path], exported: Exported) -> RunInputs:
    """Images, a directory standing for all in it."""
    from cli.render import say
    from exporters.preprocessing.fitting import PREPROCESSOR
    from exporters.preprocessing.images import Pixels, image_files, read_images

    form = Pixels.beside(exported.directory)
    paths = [path for each in given for path in image_files(each)]
    pixels, _ = read_images(paths, form, exported.spec)
    if form is None:
        say(
            f"There is no {PREPROCESSOR}: images are resized to the model's size, with values from -1 to 1",
            "dim",
            err=True,
        )
    return RunInputs(pixels, "image", [path.name for path in paths])


def _sounds(given: Sequence[Path], exported: Exported) -> RunInputs:
    """Recordings, each cut into inputs of the model's length."""
    import numpy as np

    from exporters.preprocessing.audio import LogMel, read_audio

    spec = exported.spec
    if spec.embedding_of(spec.first_stack).any_length:
        return _recordings(given, exported)
    form = LogMel.beside(exported.directory)
    found = [read_audio(path, form, exported.spec)[0] for path in given]
    names = [path.name for path, parts in zip(given, found, strict=True) for _ in parts]
    return RunInputs(np.concatenate(found), "recording", names)


def _recordings(given: Sequence[Path], exported: Exported) -> RunInputs:
    """Recordings, each whole, a directory standing for all in it."""
    from cli.render import say
    from exporters.preprocessing.audio import audio_files
    from exporters.preprocessing.fitting import PREPROCESSOR
    from exporters.preprocessing.waveforms import Waveforms, read_waveforms
    from exporters.runtime.model_inputs import Recordings

    form = Waveforms.beside(exported.directory)
    paths = [path for each in given for path in audio_files(each)]
    found = [read_waveforms(path, form, exported.spec)[0][0] for path in paths]
    if form is None:
        say(
            f"There is no {PREPROCESSOR}: recordings are read at 16 kHz, with mean 0 and variance 1",
            "dim",
            err=True,
        )
    return RunInputs(Recordings(found), "recording", [path.name for path in paths])


def token_ids(given: str, option: str = "--ids") -> list[int]:
    """Parse the token ids of an option.  Raises :class:`specs.errors.UserError`."""
    from specs.errors import UserError

    try:
        return [int(part) for part in given.replace(",", " ").split()]
    except ValueError:
        raise UserError(
            f"{option} must be comma-separated whole numbers.\n  value: {given!r}\n  Pass a list such as 1,2,3."
        ) from None
