"""``zoo run``: run an export in ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options.options import AsJson, ExportDirectory, ProviderName, Quiet, Tokenizer
from cli.terminal.option_groups import DECODING, INPUTS

if TYPE_CHECKING:
    from cli.running.output import RunContext
    from zoo.generation.sampling import Sampling
    from zoo.generation.settings import GenerationSettings


def run(
    directory: ExportDirectory,
    text: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Input text; repeatable.", rich_help_panel=INPUTS),
    ] = None,
    ids: Annotated[
        list[str] | None,
        typer.Option(
            metavar="1,2,3", help="Input token ids, instead of --text; repeatable.", rich_help_panel=INPUTS
        ),
    ] = None,
    image: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH", help="Input image, or a directory of them; repeatable.", rich_help_panel=INPUTS
        ),
    ] = None,
    audio: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH",
            help="Input recording (.wav), or a directory of them; repeatable.",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    tokenizer: Tokenizer = None,
    max_new_tokens: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Maximum number of tokens to generate.  [default: 64]",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(
            metavar="T",
            help="Sampling temperature; below 1 favours likely tokens.  [default: greedy]",
            rich_help_panel=DECODING,
        ),
    ] = None,
    top_k: Annotated[
        int | None,
        typer.Option(metavar="K", help="Sample from the K most likely tokens.", rich_help_panel=DECODING),
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Sample from the smallest set of tokens with total probability P.",
            rich_help_panel=DECODING,
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Seed for sampling.", rich_help_panel=DECODING)
    ] = None,
    stop: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOKEN",
            help="Stop token or its id; repeatable.  [default: the checkpoint's end-of-sequence tokens, if any]",
            rich_help_panel=DECODING,
        ),
    ] = None,
    start: Annotated[
        int | None,
        typer.Option(
            metavar="ID",
            help="Decoder start token id of an encoder-decoder.  [default: the checkpoint's, or 0]",
            rich_help_panel=DECODING,
        ),
    ] = None,
    adapter: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Adapter of the export to switch on.  [default: none]",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    provider: ProviderName = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run an export in ONNX Runtime.

    Decoders and encoder-decoders continue each text, or say what is in each image or recording, greedily unless a
    sampling option is given. Encoders print vectors and their cosines, classes, the most likely tokens for each mask, or
    what is said in each recording (CTC), depending on the head. Dual encoders print how well each text fits each image.
    Text needs a tokenizer; --ids does not. Images and recordings are prepared as the checkpoint's
    preprocessor_config.json states. Timings go to stderr.

    \b
    Examples:
      zoo run build/gpt2 --text "The zoo opens at"
      zoo run build/tiny-gpt --ids 1,2,3 --max-new-tokens 20
      zoo run build/llama --text "Once upon" --temperature 0.8 --seed 1
      zoo run build/minilm --text "A cat sat." --text "A cat was sitting."
      zoo run build/vit-base-16 --image cat.png --image dog.jpg
      zoo run build/whisper-tiny --audio speech.wav
      zoo run build/clip-vit-b32 --image cat.png --text "a cat" --text "a dog"
    """
    from cli.options.run_inputs import GivenOptions, read_inputs, read_pair
    from cli.running.matches import print_matches
    from cli.running.output import RunContext, print_encoded, print_generated
    from cli.terminal.render import say
    from exporters.runtime.exported import open_export
    from exporters.runtime.text import find_text
    from specs.base.errors import UserError

    exported = open_export(directory, provider, adapter)
    text_codec = find_text(directory, tokenizer, needed=bool(text))
    if text_codec is not None:
        text_codec.use(exported.sentences)
    inputs = GivenOptions(text or [], ids or [], image or [], audio or [])
    generating = {
        "--max-new-tokens": max_new_tokens,
        "--temperature": temperature,
        "--top-k": top_k,
        "--top-p": top_p,
        "--seed": seed,
        "--stop": stop,
        "--start": start,
    }
    used = [option for option, value in generating.items() if value is not None]
    if used and not exported.spec.decodes:
        raise UserError(
            f"{used[0]} applies only to decoders, and {exported.spec.name} is an encoder.\n  Remove the option."
        )
    if exported.spec.architecture == "dual-encoder":
        print_matches(exported, *read_pair(inputs, exported, text_codec), as_json=as_json, quiet=quiet)
        return
    shown = RunContext(exported, text_codec, read_inputs(inputs, exported, text_codec), as_json, quiet)
    if exported.spec.decodes:
        sampling = _sampling(temperature, top_k, top_p, seed, exported.settings)
        print_generated(shown, sampling, max_new_tokens or 64, _stop_ids(stop, shown), start)
    else:
        print_encoded(shown)
    if text_codec is not None and text_codec.cut:
        verb = "has" if text_codec.cut == 1 else "have"
        say(
            f"{text_codec.cut} of {len(inputs.texts)} texts {verb} more than the checkpoint's {text_codec.usage.most} tokens; the rest was not read.",
            "yellow",
            err=True,
        )


def _sampling(
    temperature: float | None,
    top_k: int | None,
    top_p: float | None,
    seed: int | None,
    settings: GenerationSettings,
) -> Sampling:
    """The sampling settings: greedy unless an option sets one, and then the checkpoint's for those that none sets."""
    from zoo.generation.sampling import Sampling

    defaults = settings.sampling
    if temperature is None:
        draws = (top_k, top_p, seed) != (None, None, None)
        temperature = defaults.get("temperature", 1.0) if draws else 0.0
    return Sampling(
        temperature,
        (defaults.get("top_k") or None) if top_k is None else top_k,
        defaults.get("top_p") if top_p is None else top_p,
        seed or 0,
        defaults.get("min_p"),
    )


def _stop_ids(stop: list[str] | None, shown: RunContext) -> list[int] | None:
    """The ids of the stop tokens, if any are given."""
    from specs.base.errors import UserError

    if stop is None:
        return None
    token_ids = []
    for token in stop:
        if token.isdecimal():
            token_ids.append(int(token))
        elif shown.text is None:
            raise UserError(
                f"--stop needs a tokenizer to look up a token.\n  value: {token!r}\n  Pass the token's id."
            )
        else:
            token_ids.append(shown.text.id_of(token))
    return token_ids
