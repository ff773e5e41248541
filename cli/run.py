"""``zoo run``: a quick look at what was built."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import AsJson

if TYPE_CHECKING:
    from cli.run_output import Shown
    from exporters.runtime.text import Text
    from zoo.generation.sampling import Sampling


def run(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="What zoo build or zoo export wrote.", show_default=False)
    ],
    text: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="A text; repeatable.", show_default=False)
    ] = None,
    ids: Annotated[
        list[str] | None,
        typer.Option(metavar="1,2,3", help="Token ids in place of a text; repeatable.", show_default=False),
    ] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="A tokenizer.json, or the directory around it.  [default: that in DIR, if any]",
            show_default=False,
        ),
    ] = None,
    max_new_tokens: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Generate at most so many tokens.  [default: 64]", show_default=False
        ),
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(
            metavar="T",
            help="Draw tokens: below 1 the likely more often.  [default: the best]",
            show_default=False,
        ),
    ] = None,
    top_k: Annotated[
        int | None, typer.Option(metavar="K", help="Draw among the K best tokens.", show_default=False)
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(
            metavar="P", help="Draw among the best that are this probable together.", show_default=False
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Seed of the draws.", show_default=False)
    ] = None,
    stop: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOKEN",
            help="A token, or its id, that ends a text; repeatable.  [default: eos of the checkpoint, if any]",
            show_default=False,
        ),
    ] = None,
    start: Annotated[
        int | None,
        typer.Option(
            metavar="ID",
            help="The first token of an encoder-decoder's decoder.  [default: as the checkpoint says, or 0]",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run an export through ONNX Runtime.

    A decoder or an encoder-decoder continues each text, greedily unless an option of drawing is given. An encoder gives
    a vector for each text and the cosines between them, classes, or the best tokens for each mask, as its head has it.
    Text needs a tokenizer; token ids do without. How fast it went is told on stderr.

    \b
    Examples:
      zoo run build/gpt2 --text "The zoo opens at" --tokenizer path/to/checkpoint
      zoo run build/tiny-gpt --ids 1,2,3 --max-new-tokens 20
      zoo run build/llama --text "Once upon" --temperature 0.8 --top-p 0.9 --seed 1
      zoo run build/minilm --text "A cat sat." --text "A cat was sitting." --text "Rain."
    """
    from cli.run_output import Shown, print_encoded, print_generated
    from exporters.runtime.exported import open_export
    from exporters.runtime.text import find_text
    from specs.errors import UserError

    exported = open_export(directory)
    found = find_text(directory, tokenizer, needed=bool(text))
    shown = Shown(exported, found, _prompts(text, ids, found), as_json)
    generating = {
        "--max-new-tokens": max_new_tokens,
        "--temperature": temperature,
        "--top-k": top_k,
        "--top-p": top_p,
        "--seed": seed,
        "--stop": stop,
        "--start": start,
    }
    given = [option for option, value in generating.items() if value is not None]
    if exported.spec.architecture != "encoder":
        sampling = _sampling(temperature, top_k, top_p, seed)
        print_generated(shown, sampling, max_new_tokens or 64, _stop_ids(stop, shown), start)
    elif given:
        raise UserError(
            f"{given[0]} is of generating, and {exported.spec.name} is an encoder\n  leave it out"
        )
    else:
        print_encoded(shown)


def _prompts(texts: list[str] | None, ids: list[str] | None, tokenizer: Text | None) -> list[list[int]]:
    """The texts as token ids, then the ids that were given as such."""
    from specs.errors import UserError

    if not texts and not ids:
        raise UserError(
            "there is nothing to run on\n  give --text, or token ids with --ids, such as --ids 1,2,3"
        )
    if texts and tokenizer is None:
        raise UserError(
            "--text needs a tokenizer, and there is no tokenizer.json beside the model\n"
            "  give one with --tokenizer, or token ids with --ids"
        )
    read = tokenizer.ids(texts) if texts and tokenizer else []
    return [*read, *map(token_ids, ids or ())]


def token_ids(given: str, option: str = "--ids") -> list[int]:
    """The ids in what is given with an option.  Raises :class:`specs.errors.UserError` for what are none."""
    from specs.errors import UserError

    try:
        return [int(part) for part in given.replace(",", " ").split()]
    except ValueError:
        raise UserError(
            f"{option} must be whole numbers with commas between\n  value: {given!r}\n  1,2,3 would work"
        ) from None


def _sampling(
    temperature: float | None, top_k: int | None, top_p: float | None, seed: int | None
) -> Sampling:
    """Greedy, unless something is said of drawing."""
    from zoo.generation.sampling import Sampling

    draws = (top_k, top_p, seed) != (None, None, None)
    return Sampling((1.0 if draws else 0.0) if temperature is None else temperature, top_k, top_p, seed or 0)


def _stop_ids(stop: list[str] | None, shown: Shown) -> list[int]:
    """The ids of the tokens that end a text: those given, or the checkpoint's."""
    from specs.errors import UserError

    if stop is None:
        ends = shown.exported.settings.get("eos_token_id")
        return ends if isinstance(ends, list) else [] if ends is None else [ends]
    found = []
    for token in stop:
        if token.isdecimal():
            found.append(int(token))
        elif shown.text is None:
            raise UserError(
                f"--stop needs a tokenizer for a token that is no id\n  value: {token!r}\n  give its id"
            )
        else:
            found.append(shown.text.id_of(token))
    return found
