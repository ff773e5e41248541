"""``zoo run``: run an export in ONNX Runtime."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cli.options.options import (
    DraftDirectory,
    DraftTokens,
    ExportDirectory,
    ProviderName,
    Tokenizer,
    check_draft_tokens,
)
from cli.terminal.option import AsJson, Quiet, option
from cli.terminal.option_groups import DECODING, INPUTS, SCORES

if TYPE_CHECKING:
    from cli.options.run_inputs import GivenOptions, RunInputs
    from cli.running.output import RunContext
    from exporters.runtime.exported import Exported
    from exporters.runtime.text import TextTokenizer
    from specs.model.model import Model
    from zoo.generation.sampling import Sampling
    from zoo.generation.settings import GenerationSettings


@dataclass(frozen=True)
class RunOptions:
    """The options of ``zoo run``."""

    text: Annotated[list[str] | None, option("TEXT", "Input text; repeatable.", INPUTS)] = None
    ids: Annotated[
        list[str] | None, option("1,2,3", "Input token ids, instead of --text; repeatable.", INPUTS)
    ] = None
    image: Annotated[
        list[Path] | None, option("PATH", "Input image, or a directory of them; repeatable.", INPUTS)
    ] = None
    audio: Annotated[
        list[Path] | None,
        option("PATH", "Input recording (.wav), or a directory of them; repeatable.", INPUTS),
    ] = None
    query: Annotated[
        list[str] | None,
        option("TEXT", "Query to rank the texts for; repeatable.", INPUTS),
    ] = None
    head_weight: Annotated[
        list[str] | None,
        option("NAME=W", "Weight of a head in the score of all heads; repeatable.  [default: 1]", SCORES),
    ] = None
    labels: Annotated[
        list[str] | None,
        option("A,B", "Labels of entities to find; repeatable.", INPUTS),
    ] = None
    threshold: Annotated[
        float | None, option("P", "Score that an entity must exceed.  [default: 0.5]", SCORES, min=0, max=1)
    ] = None
    tokenizer: Tokenizer = None
    max_new_tokens: Annotated[
        int | None, option("N", "Maximum number of tokens to generate.  [default: 64]", INPUTS, min=1)
    ] = None
    temperature: Annotated[
        float | None,
        option("T", "Sampling temperature; below 1 favours likely tokens.  [default: greedy]", DECODING),
    ] = None
    top_k: Annotated[int | None, option("K", "Sample from the K most likely tokens.", DECODING)] = None
    top_p: Annotated[
        float | None,
        option("P", "Sample from the smallest set of tokens with total probability P.", DECODING),
    ] = None
    seed: Annotated[int | None, option("N", "Seed for sampling.", DECODING)] = None
    stop: Annotated[
        list[str] | None,
        option(
            "TOKEN",
            "Stop token or its id; repeatable.  [default: the checkpoint's end-of-sequence tokens, if any]",
            DECODING,
        ),
    ] = None
    start: Annotated[
        int | None,
        option(
            "ID", "Decoder start token id of an encoder-decoder.  [default: the checkpoint's, or 0]", DECODING
        ),
    ] = None
    draft: DraftDirectory = None
    draft_tokens: DraftTokens = None
    adapter: Annotated[
        str | None, option("NAME", "Adapter of the export to switch on.  [default: none]", INPUTS)
    ] = None
    provider: ProviderName = None
    quiet: Quiet = False
    as_json: AsJson = False

    @property
    def inputs(self) -> GivenOptions:
        """The options that are inputs of the model."""
        from cli.options.run_inputs import GivenOptions

        return GivenOptions(self.text or [], self.ids or [], self.image or [], self.audio or [])

    def check(self, spec: Model) -> None:
        """Raise :class:`specs.base.errors.UserError` for options of decoders with a spec of another model."""
        from specs.base.errors import UserError

        generating = {
            "--max-new-tokens": self.max_new_tokens,
            "--temperature": self.temperature,
            "--top-k": self.top_k,
            "--top-p": self.top_p,
            "--seed": self.seed,
            "--stop": self.stop,
            "--start": self.start,
            "--draft": self.draft,
        }
        used = [option for option, value in generating.items() if value is not None]
        if used and not spec.decodes:
            raise UserError(
                f"{used[0]} applies only to decoders, and {spec.name} is an encoder.\n  Remove the option."
            )
        if used and ranks_pages(spec):
            raise UserError(
                f"{used[0]} applies only to models that generate text, and {spec.name} ranks images.\n  Remove the option."
            )
        check_draft_tokens(self.draft_tokens, self.draft)
        self._check_ranking(spec)

    def _check_ranking(self, spec: Model) -> None:
        """Raise :class:`specs.base.errors.UserError` for options of retrieval with another head."""
        from specs.base.errors import UserError

        texts = spec.architecture == "encoder" and spec.embedding_of(spec.first_stack).takes_tokens
        if self.query and not (texts and spec.head.compares_texts) and not ranks_pages(spec):
            raise UserError(
                f"--query ranks texts by the vectors or the terms of an encoder, which {spec.name} does not give\n"
                f"  value: {spec.architecture}, head {spec.head.kind}\n  Remove the option."
            )
        if self.head_weight and len(spec.head.parts) == 1:
            raise UserError(
                f"--head-weight applies only to models with several heads, and the head of {spec.name} is {spec.head.kind}\n"
                "  Remove the option."
            )

    def entity_labels(self, spec: Model, tokenizer: TextTokenizer | None) -> list[str]:
        """The labels of entities; none without the option.

        Raises :class:`specs.base.errors.UserError` for models that do not score spans, and without texts or a tokenizer.
        """
        from specs.base.errors import UserError

        options = {"--labels": self.labels, "--threshold": self.threshold}
        name = next((option for option, value in options.items() if value is not None), None)
        if name is not None and spec.head.span_width is None:
            raise UserError(
                f"{name} applies only to models that score spans of words, and the head of {spec.name} is {spec.head.kind}\n"
                "  Remove the option."
            )
        if self.labels is None:
            if self.threshold is not None:
                raise UserError("--threshold is the score of entities\n  Pass --labels A,B too.")
            return []
        labels = [label.strip() for entry in self.labels for label in entry.split(",")]
        if not all(labels):
            raise UserError(
                f"--labels must name labels, separated by commas\n  value: {','.join(self.labels)!r}\n"
                "  Pass them as in person,city."
            )
        if tokenizer is None or not self.text or self.ids:
            raise UserError(
                "--labels needs texts and a tokenizer.json beside the model\n  Pass --text, or --tokenizer PATH."
            )
        return list(dict.fromkeys(labels))

    @property
    def head_weights(self) -> dict[str, float]:
        """The weights of heads by name.  Raises :class:`specs.base.errors.UserError` for one that is not a number."""
        from specs.base.errors import UserError

        weights = {}
        for entry in self.head_weight or []:
            name, _, value = entry.partition("=")
            try:
                weights[name] = float(value)
            except ValueError:
                raise UserError(
                    f"--head-weight must be a head and a number\n  value: {entry!r}\n  Pass it as in sparse=0.3."
                ) from None
        return weights

    def sampling(self, settings: GenerationSettings) -> Sampling:
        """The sampling settings: greedy unless an option sets one, and then the checkpoint's for those that none sets."""
        from zoo.generation.sampling import Sampling

        defaults, temperature = settings.sampling, self.temperature
        if temperature is None:
            draws = (self.top_k, self.top_p, self.seed) != (None, None, None)
            temperature = defaults.get("temperature", 1.0) if draws else 0.0
        return Sampling(
            temperature,
            (defaults.get("top_k") or None) if self.top_k is None else self.top_k,
            defaults.get("top_p") if self.top_p is None else self.top_p,
            self.seed or 0,
            defaults.get("min_p"),
        )


def ranks_pages(spec: Model) -> bool:
    """Whether a model compares queries with images by the vectors of their tokens."""
    return spec.architecture == "vision-language" and spec.head.compared_by == "late interaction"


def run(directory: ExportDirectory, options: RunOptions) -> None:
    """Run an export in ONNX Runtime.

    Decoders and encoder-decoders continue each text, or say what is in each image or recording, greedily unless a
    sampling option is given. Encoders print vectors and their cosines, classes, the most likely tokens for each mask, or
    what is said in each recording (CTC), depending on the head; other heads' outputs are printed by name. Dual encoders print
    how well each text fits each image. With --query, encoders of texts rank them: by vectors, terms, late interaction, or
    all of these and their weighted mean; ColPali, ColQwen2 and ColModernVBERT rank images.
    With --labels, models that score spans of words (GLiNER) find entities.
    Text needs a tokenizer; --ids does not. Images and recordings are prepared as the checkpoint's
    preprocessor_config.json states. Timings go to stderr.

    \b
    Examples:
      zoo run build/gpt2 --text "The zoo opens at"
      zoo run build/tiny-gpt --ids 1,2,3 --max-new-tokens 20
      zoo run build/llama --text "Once upon" --temperature 0.8 --seed 1
      zoo run build/llama --text "Once upon" --draft build/llama-small
      zoo run build/minilm --text "A cat sat." --text "A cat was sitting."
      zoo run build/bge-m3 --query "cats" --text "Cats sleep." --text "Dogs bark."
      zoo run build/gliner --labels person,city --text "Ada lived in London."
      zoo run build/vit-base-16 --image cat.png --image dog.jpg
      zoo run build/whisper-tiny --audio speech.wav
      zoo run build/clip-vit-b32 --image cat.png --text "a cat" --text "a dog"
    """
    from cli.options import run_inputs as reading
    from cli.running.encoded import print_encoded
    from cli.running.matches import print_matches
    from cli.running.output import RunContext
    from cli.running.pages import check_pages, print_pages
    from exporters.runtime.exported import open_export

    exported = open_export(directory, options.provider, options.adapter)
    text_codec, inputs = _tokenizer(directory, options, exported), options.inputs
    options.check(exported.spec)
    _tell_boxes(exported.spec)
    if exported.spec.architecture == "dual-encoder":
        pair = reading.read_pair(inputs, exported, text_codec)
        print_matches(exported, *pair, as_json=options.as_json, quiet=options.quiet)
        return

    def context(values: RunInputs) -> RunContext:
        return RunContext(exported, text_codec, values, options.as_json, options.quiet)

    labels = options.entity_labels(exported.spec, text_codec)
    if ranks_pages(exported.spec):
        tokenizer = check_pages(inputs, options.query, exported, text_codec)
        print_pages(context(reading.read_pages(inputs, exported, tokenizer)), options.query or [], tokenizer)
        return
    if options.query:
        asked, ranked = reading.read_queries(options.query, inputs, exported, text_codec)
        print_encoded(context(ranked), context(asked), options.head_weights)
    elif exported.spec.decodes:
        _generate(context(reading.read_inputs(inputs, exported, text_codec)), options)
    else:
        read = reading.read_inputs(inputs, exported, text_codec)
        read = replace(read, what="text", names=[*inputs.texts]) if labels else read
        _encode(context(read), options, labels)
    _tell_cut(text_codec, len(options.query or ()) + len(inputs.texts))


def _tokenizer(directory: Path, options: RunOptions, exported: Exported) -> TextTokenizer | None:
    """The tokenizer of texts, with the prompts of the export."""
    from exporters.runtime.text import find_text

    text_codec = find_text(directory, options.tokenizer, needed=bool(options.text or options.query))
    if text_codec is not None:
        text_codec.use(exported.sentences)
    return text_codec


def _encode(shown: RunContext, options: RunOptions, labels: list[str]) -> None:
    """Print what an encoder gives, or the entities with these labels."""
    from cli.running.encoded import print_encoded
    from exporters.runtime.spans import THRESHOLD

    if shown.exported.spec.head.span_width is not None and not labels:
        _tell_words()
    threshold = THRESHOLD if options.threshold is None else options.threshold
    print_encoded(shown, None, options.head_weights, labels, threshold)


def _generate(shown: RunContext, options: RunOptions) -> None:
    """Print what a decoder generates, perhaps with a draft."""
    from cli.running.drafted import print_drafted
    from cli.running.output import print_generated
    from exporters.runtime.draft import DRAFT_TOKENS
    from exporters.runtime.exported import open_export

    sampling, stop = options.sampling(shown.exported.settings), _stop_ids(options.stop, shown)
    most = options.max_new_tokens or 64
    if options.draft is None:
        print_generated(shown, sampling, most, stop, options.start)
    else:
        draft = open_export(options.draft, options.provider)
        print_drafted(shown, draft, options.draft_tokens or DRAFT_TOKENS, sampling, most, stop)


def _tell_boxes(spec: Model) -> None:
    """Print that tokens have no boxes, on stderr, for a model that reads them."""
    from cli.terminal.render import say

    if any(token_input.is_box for token_input in spec.embedding_of(spec.first_stack).token_inputs):
        rest = "a text has no page. Run the graph itself with bbox for the boxes of a document."
        say(f"Every token has the box 0, 0, 0, 0: {rest}", "yellow", err=True)


def _tell_words() -> None:
    """Print that texts without labels are tokens alone, on stderr."""
    from cli.terminal.render import say

    say("Every token is a word. Pass --labels A,B to find entities in texts.", "yellow", err=True)


def _tell_cut(text: TextTokenizer | None, count: int) -> None:
    """Print how many of the texts were truncated, on stderr."""
    from cli.terminal.render import say

    if text is not None and text.cut:
        verb = "has" if text.cut == 1 else "have"
        rest = f"more than the checkpoint's {text.usage.most} tokens; the rest was not read."
        say(f"{text.cut} of {count} texts {verb} {rest}", "yellow", err=True)


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
