"""The inputs that ``zoo run`` gives a model: texts, token ids, images or sounds."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cli.options.media import (
    INPUT_OPTIONS,
    read_audio_files,
    read_image_files,
    read_packed_image_files,
    read_tiled_image_files,
)

if TYPE_CHECKING:
    from exporters.preprocessing.tiles import Grid
    from exporters.runtime.embedding import Images
    from exporters.runtime.exported import Exported
    from exporters.runtime.model_inputs import ModelInputs
    from exporters.runtime.text import TextTokenizer


@dataclass(frozen=True)
class RunInputs:
    """The inputs of a model, ``what`` they are, and the name of each file, which is empty for texts; ``images`` that are
    among the tokens of texts."""

    values: ModelInputs
    what: str
    names: list[str]
    images: Images | None = None

    @property
    def data(self) -> dict[str, Any]:
        """The inputs as JSON: the names of files, or token ids."""
        return {f"{self.what}s": self.names} if any(self.names) else {"prompt_ids": self.values}


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
        return [option for option, values in named.items() if values]


def read_inputs(arguments: GivenOptions, exported: Exported, tokenizer: TextTokenizer | None) -> RunInputs:
    """The inputs of an export.  Raises :class:`specs.base.errors.UserError` for those that it does not take."""
    from specs.base.errors import UserError

    spec = exported.spec
    name = spec.embedding_of(spec.first_stack).input_name
    if spec.architecture == "vision-language" and arguments.images:
        return _texts_with_images(arguments, exported, tokenizer)
    options = INPUT_OPTIONS.get(name, ())
    if not options:
        raise UserError(f"{spec.name} takes {name}, which no option gives\n  Run its graph with onnxruntime.")
    if wrong := next((option for option in arguments.options if option not in options), None):
        raise UserError(f"{spec.name} takes {name}, which {wrong} does not give\n  Pass {options[0]}.")
    if not arguments.options:
        more = ", or token ids such as --ids 1,2,3" if "--ids" in options else " with a file"
        raise UserError(f"No input.\n  Pass {options[0]}{more}.")
    if arguments.images:
        return _images(arguments.images, exported)
    if arguments.sounds:
        return _sounds(arguments.sounds, exported)
    return _texts(arguments, tokenizer)


def read_pair(
    arguments: GivenOptions, exported: Exported, tokenizer: TextTokenizer | None
) -> tuple[RunInputs, RunInputs]:
    """The texts and the images that a dual encoder compares.

    Raises :class:`specs.base.errors.UserError` where either is missing, and for sounds.
    """
    from specs.base.errors import UserError

    name = exported.spec.name
    if arguments.sounds:
        raise UserError(f"{name} compares texts with images, which --audio does not give\n  Pass --image.")
    if not arguments.images or not (arguments.texts or arguments.ids):
        missing = "--text" if arguments.images else "--image"
        raise UserError(f"{name} compares texts with images, and {missing} is missing\n  Pass both.")
    from exporters.runtime.text import filled_text

    texts = _texts(arguments, tokenizer)
    prompts = [list[int](ids) for ids in texts.values]
    if arguments.texts and tokenizer:
        prompts = [filled_text(ids, exported.spec, tokenizer) for ids in prompts]
    names = [*arguments.texts, *[""] * len(arguments.ids)]
    return RunInputs(prompts, "text", names), _images(arguments.images, exported)


def read_queries(
    queries: Sequence[str], arguments: GivenOptions, exported: Exported, tokenizer: TextTokenizer | None
) -> tuple[RunInputs, RunInputs]:
    """Queries and the texts to rank, each with the prompt of its role.

    Raises :class:`specs.base.errors.UserError` for inputs that the model does not take.
    """
    if tokenizer is None:
        from specs.base.errors import UserError

        raise UserError(
            "--query needs a tokenizer, and there is no tokenizer.json beside the model.\n  Pass --tokenizer PATH."
        )
    usage = exported.sentences.of("query")
    if exported.static_queries is not None:
        from exporters.runtime.text import find_text

        static = find_text(exported.static_queries, None, needed=True) or tokenizer
        ids = [static.plain(f"{usage.before}{query}") for query in queries]
    else:
        tokenizer.use(usage)
        ids = tokenizer.ids(queries)
    asked = RunInputs(ids, "query", list(queries))
    tokenizer.use(exported.sentences.of("document"))
    return asked, read_inputs(arguments, exported, tokenizer)


def read_pages(arguments: GivenOptions, exported: Exported, tokenizer: TextTokenizer | None) -> RunInputs:
    """The images to rank, with the token ids that stand for each."""
    from exporters.preprocessing.images import image_files

    images, count, ids = _images_among_tokens(arguments, exported, tokenizer)
    names = [path.name for file in arguments.images for path in image_files(file)]
    if ids is None:
        ids = [[cast("Any", exported.spec.connector).token] * exported.spec.vectors_per_image] * count
    return RunInputs(ids, "image", names, images)


def _texts_with_images(
    arguments: GivenOptions, exported: Exported, tokenizer: TextTokenizer | None
) -> RunInputs:
    """Texts, with the placeholders of all images among their tokens."""
    from exporters.runtime.embedding import with_placeholders
    from exporters.runtime.marked_prompts import marked_ids

    if arguments.sounds:
        from specs.base.errors import UserError

        raise UserError(
            f"{exported.spec.name} reads text and images, which --audio does not give\n  Pass --image."
        )
    pixels, count, ids = _images_among_tokens(arguments, exported, tokenizer)
    read = partial(marked_ids, images=count, spec=exported.spec)
    texts = (
        _texts(arguments, tokenizer, read)
        if arguments.texts or arguments.ids
        else RunInputs([[]], "text", [""])
    )
    prefix = tokenizer.prefix if arguments.texts and tokenizer else []
    prompts = with_placeholders(exported.spec, cast("Any", texts.values), count, prefix, ids)
    return RunInputs(prompts, "text", texts.names, pixels)


def _images_among_tokens(
    arguments: GivenOptions, exported: Exported, tokenizer: TextTokenizer | None
) -> tuple[Images, int, list[list[int]] | None]:
    """Images as the model reads them, their number, and the tokens that stand for each where that is not its usual number of
    placeholders."""
    spec = exported.spec
    if spec.packs_images:
        images, paths = read_packed_image_files(arguments.images, spec, exported.directory)
        token = cast("Any", spec.connector).token
        return images, len(paths), [[token] * count for count in images.vectors(spec)]
    tiled = read_tiled_image_files(arguments.images, spec, exported.directory)
    if tiled is not None:
        pixels, paths, grids = tiled
        return pixels, len(paths), _ids_of_tiles(grids, exported, tokenizer)
    seen = _images(arguments.images, exported)
    return cast("Any", seen.values), len(seen.names), None


def _ids_of_tiles(
    grids: Sequence[Grid], exported: Exported, tokenizer: TextTokenizer | None
) -> list[list[int]]:
    """The tokens of images in tiles.  Raises :class:`specs.base.errors.UserError` without a tokenizer."""
    from exporters.runtime.marked_prompts import image_ids
    from specs.base.errors import UserError

    if tokenizer is None:
        raise UserError(
            "--image needs a tokenizer, whose tokens mark the tiles of an image, and there is no tokenizer.json beside the model.\n"
            "  Pass --tokenizer PATH."
        )
    return image_ids(grids, exported.spec, tokenizer)


def _plain_ids(texts: Sequence[str], *, tokenizer: TextTokenizer) -> list[list[int]]:
    return tokenizer.ids(texts)


def _texts(
    arguments: GivenOptions,
    tokenizer: TextTokenizer | None,
    read: Callable[..., list[list[int]]] = _plain_ids,
) -> RunInputs:
    """Texts as ``read`` gives their ids, and token ids after them."""
    from specs.base.errors import UserError

    if arguments.texts and tokenizer is None:
        raise UserError(
            "--text needs a tokenizer, and there is no tokenizer.json beside the model.\n"
            "  Pass --tokenizer PATH, or token ids with --ids."
        )
    ids = read(list(arguments.texts), tokenizer=tokenizer) if arguments.texts and tokenizer else []
    prompts = [*ids, *map(token_ids, arguments.ids)]
    return RunInputs(prompts, "text", [""] * len(prompts))


def _images(files: Sequence[Path], exported: Exported) -> RunInputs:
    """Images, a directory standing for all in it."""
    pixels, paths = read_image_files(files, exported.spec, exported.directory)
    return RunInputs(pixels, "image", [path.name for path in paths])


def _sounds(files: Sequence[Path], exported: Exported) -> RunInputs:
    """Recordings, each cut into inputs of the model's length, or whole; a directory stands for all in it."""
    import numpy as np

    from exporters.runtime.model_inputs import Recordings

    sounds = read_audio_files(files, exported.spec, exported.directory)
    whole = exported.spec.embedding_of(exported.spec.first_stack).any_length
    inputs = Recordings(sounds.inputs) if whole else np.concatenate(sounds.inputs)
    return RunInputs(inputs, "recording", [path.name for path in sounds.paths])


def token_ids(text: str, option: str = "--ids") -> list[int]:
    """Parse the token ids of an option.  Raises :class:`specs.base.errors.UserError`."""
    from specs.base.errors import UserError

    try:
        return [int(part) for part in re.split(r"\s*,\s*|\s+", text.strip())] if text.strip() else []
    except ValueError:
        raise UserError(
            f"{option} must be comma-separated whole numbers.\n  value: {text!r}\n  Pass a list such as 1,2,3."
        ) from None
