"""``zoo attend``: attention maps of a text, an image or a recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options.options import Assignments, ModelArgument, Seed, Tokenizer, Weights
from cli.terminal.option import option
from cli.terminal.option_groups import DECODING, INPUTS, MAPS, OUTPUT
from cli.terminal.screen import Screen

if TYPE_CHECKING:
    from zoo.attention_maps.attend import Attended
    from zoo.attention_maps.choice import Reader
    from zoo.attention_maps.patches import PatchImage

MEAN = "mean"


@dataclass(frozen=True)
class AttendOptions:
    """The options of ``zoo attend``."""

    text: Annotated[list[str] | None, option("TEXT", "Input text; repeat for a pair.", INPUTS)] = None
    ids: Annotated[str | None, option("1,2,3", "Input token ids, instead of --text.", INPUTS)] = None
    image: Annotated[Path | None, option("PATH", "Input image.", INPUTS)] = None
    audio: Annotated[Path | None, option("PATH", "Input recording (.wav).", INPUTS)] = None
    tokenizer: Tokenizer = None
    target_text: Annotated[
        str | None,
        option("TEXT", "Decoder input of an encoder-decoder.  [default: its start token]", DECODING),
    ] = None
    target_ids: Annotated[
        str | None,
        option("0,1,2", "Decoder token ids including the start token, instead of --target-text.", DECODING),
    ] = None
    max_new_tokens: Annotated[
        int | None,
        option(
            "N",
            "Generate N more tokens through the cache, and extend the maps.  "
            "[default: 0, or 12 for an encoder-decoder without a target]",
            DECODING,
            min=0,
        ),
    ] = None
    layer: Annotated[str | None, option("0,3-5", "Layers to show.", MAPS)] = None
    head: Annotated[
        str | None, option("0-3|mean", "Heads to show, or mean for the mean over heads.", MAPS)
    ] = None
    stack: Annotated[
        str, option("A,B", "Attention to show: encoder, decoder, cross, text or image.  [default: all]", MAPS)
    ] = ""
    weights: Weights = None
    seed: Seed = 0
    output: Annotated[
        list[Path] | None,
        option(
            "FILE",
            "Also write the maps as a picture (.png, .svg) or an interactive page (.html); repeatable.",
            OUTPUT,
            "--output",
            "-o",
        ),
    ] = None


def attend(
    context: typer.Context,
    reference: ModelArgument,
    assignments: Assignments = None,
    *,
    options: AttendOptions,
    screen: Screen,
) -> None:
    """Show the attention maps of a text, an image or a recording.

    Prints the attention weights as heat maps, with one row per query token and one column per key token, followed by the
    entropy of each head in bits and the entropy of uniform weights. Without --layer and --head, the terminal shows the
    mean over heads of the first and last layer; files show every head, or the mean of every layer if there are too many.
    Attention to the patches of an image is shown as a grid over it: of [CLS], of the mean of all patches where a model has
    no [CLS], or of each token of a decoder. Audio is labelled with seconds.

    \b
    Examples:
      zoo attend path/to/all-MiniLM-L6-v2 --text "The cat sat on the mat."
      zoo attend path/to/gpt2 --text "The zoo" --layer 5 --head 0-3
      zoo attend build/t5-small --text "Hello" --target-text "Hallo" -o t5.png
      zoo attend path/to/vit --image cat.png -o heads.html
      zoo attend build/whisper-tiny --audio speech.wav -o speech.svg
      zoo attend path/to/clip --image cat.png --text "a cat" --layer 11
      zoo attend my-bert.yaml --weights path/to/checkpoint --ids 101,7592,102
    """
    from cli.attending.output import MapStyle, print_data, print_entropies, print_growing
    from cli.attending.reading import AttendInputs, check_length
    from cli.options.files import check_outputs, write_own
    from cli.options.given import typed
    from cli.terminal.render import print_written, say
    from exporters.exported.model_source import model_source
    from exporters.runtime.text import find_text
    from specs.base.printable import printable
    from zoo.attention_maps.choice import choose

    check_outputs(options.output or (), (".png", ".svg", ".html"))
    source = model_source(reference, assignments or (), options.weights)
    spec = source.spec
    stacks = [name for name in (part.strip() for part in options.stack.split(",")) if name]
    layers = None if options.layer is None else _numbers("--layer", options.layer)
    heads = None if options.head in (None, MEAN) else _numbers("--head", options.head)
    inputs = AttendInputs(
        options.text or [], options.ids, options.target_text, options.target_ids, options.image, options.audio
    )
    choice = choose(spec, stacks or inputs.stacks(spec), layers, heads)
    text_codec = find_text(source.origin, options.tokenizer, needed=bool(options.text or options.target_text))
    reading = inputs.reading(source, text_codec, choice)
    new_tokens = inputs.new_tokens(spec, options.max_new_tokens)
    lengths = check_length(spec, reading, choice, new_tokens)

    from zoo.attention_maps.attend import Attended
    from zoo.attention_maps.attend import attend as read
    from zoo.attention_maps.patches import patch_images

    model, description = source.model(options.seed)
    steps = read(model, reading, choice, new_tokens, source.ends)
    images = patch_images(spec, reading)
    shown = MapStyle(text_codec, options.head == MEAN, layers is None and heads is None, lengths, images)
    if not screen.silent:
        say(f"{spec.name}, weights: {description}\n")
    attended = Attended.of(list(steps)) if screen.silent else print_growing(shown, steps, choice)
    labels = shown.labels(attended)
    for path in options.output or ():
        kind = path.suffix.lower()
        drawn = _file(kind, attended, spec.name, printable(description), labels, images, mean=shown.mean)
        write_own(path, drawn, kind)
    if screen.as_json:
        print_data(shown, attended, {"name": spec.name, "weights": description})
        return
    if screen.tables:
        print_entropies(attended)
    if not screen.silent:
        print_written(options.output)
    screen.done(f"{_maps(attended)} read")
    screen.next(
        *([] if screen.tables else [(typed(context, "-v"), "the entropy of every head")]),
        *([] if options.output else [(typed(context, "-o", "maps.html"), "every head, as a page")]),
    )


def _maps(attended: Attended) -> str:
    """How many maps there are."""
    count = sum(len(layer.heads) for layers in attended.maps.values() for layer in layers)
    return f"{count:,} attention map{'' if count == 1 else 's'}"


def _file(
    suffix: str,
    attended: Attended,
    name: str,
    description: str,
    labels: Mapping[Reader, Sequence[str]],
    images: Mapping[Reader, PatchImage],
    *,
    mean: bool,
) -> bytes:
    """The maps encoded as a picture or a page."""
    if suffix == ".html":
        from zoo.pages.attention_page import attention_page

        return attention_page(attended, name, description, labels, images).encode()
    from zoo.attention_maps.pictures import grids
    from zoo.pictures.heat_map import heat_maps
    from zoo.pictures.style import png, svg

    figure = heat_maps(grids(attended, name, labels, images, mean=mean))
    return png(figure) if suffix == ".png" else svg(figure).encode()


def _numbers(option: str, text: str) -> list[int]:
    """Parse numbers and ranges such as 0,3-5 into a sorted list without duplicates.

    Raises :class:`specs.base.errors.UserError`.
    """
    from specs.base.errors import UserError

    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = (end.strip() for end in part.partition("-"))
        last = last or first
        if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
            other = f", or {MEAN}" if option == "--head" else ""
            raise UserError(
                f"{option} must be comma-separated whole numbers and ranges{other}.\n"
                f"  value: {text!r}\n  Pass a list such as 0,3-5."
            )
        numbers.update(range(int(first), int(last) + 1))
    return sorted(numbers)
