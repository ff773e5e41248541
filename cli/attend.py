"""``zoo attend``: what attends to what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import AsJson, Assignments, complete_spec

if TYPE_CHECKING:
    from zoo.attending.attend import Attended, Reader

MEAN = "mean"


def attend(
    reference: Annotated[
        str,
        typer.Argument(
            metavar="SPEC|DIR",
            help="A preset's name, a YAML file, the directory of a checkpoint, or one that zoo export wrote.",
            autocompletion=complete_spec,
            show_default=False,
        ),
    ],
    assignments: Assignments = None,
    text: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="What is read; twice for a pair of texts.", show_default=False),
    ] = None,
    ids: Annotated[
        str | None,
        typer.Option(metavar="1,2,3", help="Token ids in place of a text.", show_default=False),
    ] = None,
    target_text: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="What the decoder of an encoder-decoder reads.  [default: its start token]",
            show_default=False,
        ),
    ] = None,
    target_ids: Annotated[
        str | None,
        typer.Option(
            metavar="0,1,2",
            help="Token ids in place of that text, from the start token on.",
            show_default=False,
        ),
    ] = None,
    max_new_tokens: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Let the model go on for so many tokens, through its cache: the maps grow meanwhile.  "
            "[default: 0, or 12 for an encoder-decoder without a target]",
            show_default=False,
        ),
    ] = None,
    layer: Annotated[
        str | None, typer.Option(metavar="0,3-5", help="Show these layers.", show_default=False)
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(metavar="0-3|mean", help="Show these heads, or the mean of all.", show_default=False),
    ] = None,
    stack: Annotated[
        str,
        typer.Option(
            metavar="A,B",
            help="Show the attention of the encoder or of the decoder to its own tokens, or cross.  [default: all]",
            show_default=False,
        ),
    ] = "",
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="PATH|random",
            help="Weights of a SPEC: a file, a directory that has one or a hub repository.  [default: random]",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the random weights.")] = 0,
    tokenizer: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="A tokenizer.json, or the directory around it.  [default: that beside the weights, if any]",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Draw the maps, too: .png or .svg; or .html, a page in which every head can be chosen; repeatable.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what attends to what.

    The model reads a text, and the weights with which its attentions mix the values of tokens are shown as heat maps: a
    row for each token that looks, a column for each that is looked at. Below them stands how spread out each head's
    weights are, beside what they would be if all were equal. Without --layer and --head, the terminal shows the mean over
    heads of the first and the last layer, and files have all heads, or where they are very many those means of all layers.

    \b
    Examples:
      zoo attend path/to/all-MiniLM-L6-v2 --text "The cat sat on the mat because it was warm."
      zoo attend path/to/gpt2 --text "The zoo opens at" --max-new-tokens 8 --layer 5 --head 0-3
      zoo attend build/t5-small --text "translate: Hello" --target-text "Hallo" --stack cross -o cross.png
      zoo attend tiny-gpt --set decoder.block.attention.window=4 --ids 1,2,3,4,5,6,7,8
      zoo attend my-bert.yaml --weights path/to/checkpoint --ids 101,7592,102 -o heads.html
    """
    from cli.attend_output import Shown, print_data, print_entropies, print_growing
    from cli.attend_reading import Given, check_length
    from cli.files import check_outputs, write_own
    from cli.render import print_written, say
    from exporters.opened import opened
    from exporters.runtime.text import find_text
    from specs.printable import printable
    from zoo.attending.choice import choose

    check_outputs(output or (), (".png", ".svg", ".html"))
    source = opened(reference, assignments or (), weights)
    spec = source.spec
    stacks = [name for name in (part.strip() for part in stack.split(",")) if name]
    layers = None if layer is None else _numbers("--layer", layer)
    heads = None if head in (None, MEAN) else _numbers("--head", head)
    choice = choose(spec, stacks, layers, heads)
    found = find_text(source.origin, tokenizer, needed=bool(text or target_text))
    given = Given(text or [], ids, target_text, target_ids)
    reading = given.reading(source, found)
    new_tokens = given.new_tokens(spec, max_new_tokens)
    check_length(spec, reading, new_tokens)

    from zoo.attending.attend import Attended
    from zoo.attending.attend import attend as read

    model, description = source.model(seed)
    steps = read(model, reading, choice, new_tokens, source.ends)
    more = max(0, new_tokens - 1)
    places: dict[Reader, int] = {
        "encoder": len(reading.ids),
        "decoder": len(reading.target or reading.ids) + more,
    }
    shown = Shown(found, head == MEAN, layers is None and heads is None, places)
    if as_json:
        attended = Attended.of(list(steps))
    else:
        say(f"{spec.name}, weights: {description}\n")
        attended = print_growing(shown, steps, choice)
    labels = shown.labels(attended)
    for path in output or ():
        kind = path.suffix.lower()
        drawn = _file(kind, attended, spec.name, printable(description), labels, mean=shown.mean)
        write_own(path, drawn, kind)
    if as_json:
        print_data(shown, attended, {"model": spec.name, "weights": description})
    else:
        print_entropies(attended)
        print_written(output)


def _file(
    suffix: str,
    attended: Attended,
    name: str,
    description: str,
    labels: Mapping[Reader, Sequence[str]],
    *,
    mean: bool,
) -> bytes:
    """The maps as a picture or a page."""
    if suffix == ".html":
        from zoo.pages.attention_page import attention_page

        return attention_page(attended, name, description, labels).encode()
    from zoo.attending.pictures import grids
    from zoo.pictures.heat_map import heat_maps
    from zoo.pictures.style import png, svg

    figure = heat_maps(grids(attended, name, labels, mean=mean))
    return png(figure) if suffix == ".png" else svg(figure).encode()


def _numbers(option: str, given: str) -> list[int]:
    """Numbers and ranges, such as 0,3-5, in order and each once.  Raises :class:`specs.errors.UserError`."""
    from specs.errors import UserError

    found: set[int] = set()
    for part in given.split(","):
        first, _, last = (end.strip() for end in part.partition("-"))
        last = last or first
        if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
            other = f", or {MEAN}" if option == "--head" else ""
            raise UserError(
                f"{option} must be whole numbers and ranges with commas between{other}\n"
                f"  value: {given!r}\n  0,3-5 would work"
            )
        found.update(range(int(first), int(last) + 1))
    return sorted(found)
