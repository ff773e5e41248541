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
    from cli.attending.output import MapStyle
    from cli.attending.reading import AttendInputs
    from specs.model.model import Model
    from zoo.attention_maps.attend import Attended
    from zoo.attention_maps.choice import AttentionChoice, Reader

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

    def inputs(self) -> AttendInputs:
        """The inputs to read."""
        from cli.attending.reading import AttendInputs

        return AttendInputs(
            self.text or [], self.ids, self.target_text, self.target_ids, self.image, self.audio
        )

    def choice(self, spec: Model) -> AttentionChoice:
        """The stacks, layers and heads to show.  Raises :class:`specs.base.errors.UserError`."""
        from zoo.attention_maps.choice import choose

        stacks = [name for name in (part.strip() for part in self.stack.split(",")) if name]
        layers = None if self.layer is None else _numbers("--layer", self.layer)
        heads = None if self.head in (None, MEAN) else _numbers("--head", self.head)
        return choose(spec, stacks or self.inputs().stacks(spec), layers, heads)


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
    from cli.attending.output import MapStyle, print_data, print_growing
    from cli.attending.reading import check_length
    from cli.options.files import check_outputs
    from cli.terminal.render import say
    from exporters.exported.model_source import model_source
    from exporters.runtime.text import find_text

    check_outputs(options.output or (), (".png", ".svg", ".html"))
    source = model_source(reference, assignments or (), options.weights)
    spec = source.spec
    inputs, choice = options.inputs(), options.choice(spec)
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
    whole = options.layer is None and options.head in (None, MEAN)
    shown = MapStyle(text_codec, options.head == MEAN, whole, lengths, images)
    if not screen.silent:
        say(f"{spec.name}, weights: {description}\n")
    attended = Attended.of(list(steps)) if screen.silent else print_growing(shown, steps, choice)
    _write_maps(options.output or (), attended, spec.name, description, shown)
    if screen.as_json:
        print_data(shown, attended, {"name": spec.name, "weights": description})
    else:
        _print_end(context, screen, attended, options.output or ())


def _print_end(context: typer.Context, screen: Screen, attended: Attended, output: Sequence[Path]) -> None:
    """Print what follows the maps: entropies, the files that were written, and what to do next."""
    from cli.attending.output import print_entropies
    from cli.options.given import typed
    from cli.terminal.render import print_written

    if screen.tables:
        print_entropies(attended)
    if not screen.silent:
        print_written(output)
    screen.done(f"{_maps(attended)} read")
    screen.next(
        *([] if screen.tables else [(typed(context, "-v"), "the entropy of every head")]),
        *([] if output else [(typed(context, "-o", "maps.html"), "every head, as a page")]),
    )


def _maps(attended: Attended) -> str:
    """How many maps there are."""
    count = sum(len(layer.heads) for layers in attended.maps.values() for layer in layers)
    return f"{count:,} attention map{'' if count == 1 else 's'}"


def _write_maps(
    paths: Sequence[Path], attended: Attended, name: str, description: str, shown: MapStyle
) -> None:
    """Write the maps to files, as pictures or pages."""
    from cli.options.files import write_own
    from specs.base.printable import printable

    labels = shown.labels(attended)
    for path in paths:
        kind = path.suffix.lower()
        write_own(path, _file(kind, attended, name, printable(description), labels, shown), kind)


def _file(
    suffix: str,
    attended: Attended,
    name: str,
    description: str,
    labels: Mapping[Reader, Sequence[str]],
    shown: MapStyle,
) -> bytes:
    """The maps encoded as a picture or a page."""
    if suffix == ".html":
        from zoo.pages.attention_page import attention_page

        return attention_page(attended, name, description, labels, shown.images).encode()
    from zoo.attention_maps.pictures import grids
    from zoo.pictures.heat_map import heat_maps
    from zoo.pictures.style import png, svg

    figure = heat_maps(grids(attended, name, labels, shown.images, mean=shown.mean))
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
