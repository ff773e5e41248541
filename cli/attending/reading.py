"""Inputs of ``zoo attend``: token ids, and images or recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cli.options.media import INPUT_OPTIONS, read_audio_files, read_image_files
from cli.options.run_inputs import token_ids
from specs.base.errors import UserError
from zoo.attention_maps.choice import AttentionChoice, Reader, heads_by_layer, looked_at, looks
from zoo.attention_maps.reading import AttentionInput
from zoo.generation.prompts import check_prompts
from zoo.generation.settings import start_token

if TYPE_CHECKING:
    from exporters.exported.model_source import ModelSource
    from exporters.runtime.text import TextTokenizer
    from specs.model.model import Model

DEFAULT_NEW_TOKENS = 12
"""Number of tokens that an encoder-decoder generates without a target."""

MOST_WEIGHTS = 2**28
"""Maximum number of attention weights to keep, 1 GiB in float32."""


@dataclass(frozen=True)
class AttendInputs:
    """Inputs on the command line: texts or ids, an image or a recording, and the target of an encoder-decoder."""

    texts: Sequence[str]
    ids: str | None
    target_text: str | None
    target_ids: str | None
    image: Path | None = None
    audio: Path | None = None

    @property
    def options(self) -> list[str]:
        """The input options in use, except target options."""
        inputs = {"--text": self.texts, "--ids": self.ids, "--image": self.image, "--audio": self.audio}
        return [option for option, value in inputs.items() if value not in (None, [])]

    def stacks(self, spec: Model) -> list[str]:
        """The stacks that have an input, if each stack reads its own; empty for other models, which run as a whole."""
        if not _read_apart(spec):
            return []
        return [name for name, stack in spec.stacks() if self._gives(spec.embedding_of(stack).input_name)]

    def new_tokens(self, spec: Model, asked: int | None) -> int:
        """The number of tokens to generate: as asked, else a default for an encoder-decoder without a target."""
        if asked is not None:
            return asked
        targeted = self.target_text is not None or self.target_ids is not None
        if spec.decoder is None or not _has_two(spec) or targeted or spec.head.kind != "language_modeling":
            return 0
        return min(DEFAULT_NEW_TOKENS, spec.context_length_of(spec.decoder) or DEFAULT_NEW_TOKENS)

    def reading(
        self, source: ModelSource, text: TextTokenizer | None, choice: AttentionChoice
    ) -> AttentionInput:
        """The inputs of the chosen stacks: token ids, with the special tokens of a text, and prepared images or recordings.

        Raises :class:`specs.base.errors.UserError` for options that exclude each other or do not apply to the model, and for
        unsuitable files.
        """
        inputs = _inputs(source.spec, choice)
        self._check(source.spec, inputs)
        reading = AttentionInput(target=self._target(source, text))
        if "input_ids" in inputs.values():
            ids, types = self._read(source.spec, text)
            reading = replace(reading, ids=ids, types=types)
        for path in (self.image, self.audio):
            if path is not None and path.is_dir():
                raise UserError(
                    f"{path} is a directory, and zoo attend shows one input.\n  Pass one file of it."
                )
        if self.image is not None and source.spec.packs_images:
            raise UserError(
                f"{source.spec.name} reads images of any size, which zoo attend does not show\n  value: {self.image}\n"
                "  Pass text alone, or record its attention in Python: zoo.attention_maps.recording.Recording."
            )
        if self.image is not None and ("pixel_values" in inputs.values() or "decoder" in inputs):
            values, _ = read_image_files([self.image], source.spec, source.origin)
            if "decoder" in inputs:
                from exporters.runtime.embedding import with_placeholders

                prefix = text.prefix if self.texts and text else []
                (ids,) = with_placeholders(source.spec, [reading.ids], 1, prefix)
                reading = replace(reading, ids=ids)
            return replace(reading, values=values)
        if self.audio is not None:
            sounds = read_audio_files([self.audio], source.spec, source.origin)
            if len(sounds.inputs) > 1:
                length = sounds.inputs[0].shape[-1] * sounds.column_seconds
                raise UserError(
                    f"{self.audio}: must last at most {length:g} seconds, the length of an input of {source.spec.name}\n"
                    f"  value: {len(sounds.inputs)} inputs\n  Pass a shorter recording."
                )
            return replace(reading, values=sounds.inputs[0], column_seconds=sounds.column_seconds)
        return reading

    def _gives(self, input_name: str) -> bool:
        return any(option in INPUT_OPTIONS.get(input_name, ()) for option in self.options)

    def _check(self, spec: Model, inputs: dict[Reader, str]) -> None:
        """Raise :class:`specs.base.errors.UserError` unless the options give the inputs of the chosen stacks, and no others."""
        self._check_inputs(spec, inputs)
        if self.texts and self.ids is not None:
            raise UserError(
                "--text and --ids are mutually exclusive.\n  Pass --text, or token ids such as --ids 1,2,3."
            )
        if len(self.texts) > 1 and spec.architecture != "encoder":
            remedy = "Pass the decoder input as --target-text." if _has_two(spec) else "Join them into one."
            raise UserError(
                f"{spec.name} takes one text; only encoders take a pair.\n  value: {len(self.texts)} texts\n  {remedy}"
            )
        if len(self.texts) > 2:
            raise UserError(
                f"{spec.name} takes at most a pair of texts.\n  value: {len(self.texts)} texts\n  Pass --text twice."
            )
        if self.target_text is not None and self.target_ids is not None:
            raise UserError("--target-text and --target-ids are mutually exclusive.\n  Pass one of them.")
        for option, value in (("--target-text", self.target_text), ("--target-ids", self.target_ids)):
            if value is not None and not _has_two(spec):
                raise UserError(
                    f"{option} applies only to encoder-decoders, and {spec.name} is architecture: {spec.architecture}.\n"
                    f"  value: {value!r}\n  Pass the whole input as {self._whole(inputs)}."
                )

    def _check_inputs(self, spec: Model, inputs: dict[Reader, str]) -> None:
        stacks = [stack for _, stack in spec.stacks()] if _read_apart(spec) else [spec.first_stack]
        names = [spec.embedding_of(stack).input_name for stack in stacks]
        takes = [option for name in names for option in INPUT_OPTIONS.get(name, ())]
        if not takes:
            raise UserError(
                f"{spec.name} takes {names[0]}, which no option gives\n"
                "  Record its attention in Python: zoo.attention_maps.recording.Recording."
            )
        if wrong := next((option for option in self.options if option not in takes), None):
            raise UserError(
                f"{spec.name} takes {' and '.join(names)}, which {wrong} does not give\n  Pass {takes[0]}."
            )
        if not self.options:
            raise UserError(f"No input.\n  Pass {self._whole(inputs)}.")
        for reader, name in inputs.items():
            if not self._gives(name):
                option = INPUT_OPTIONS[name][0]
                raise UserError(
                    f"The {reader} stack of {spec.name} takes {name}, and {option} is missing\n"
                    f"  value: --stack {reader}\n  Pass {option}, or another --stack."
                )

    @staticmethod
    def _whole(inputs: dict[Reader, str]) -> str:
        """The options that give the inputs, as text."""
        words = {"input_ids": "--text, or token ids such as --ids 1,2,3"}
        return ", and ".join(
            words.get(name, f"{INPUT_OPTIONS[name][0]} with a file") for name in inputs.values()
        )

    def _read(self, spec: Model, text: TextTokenizer | None) -> tuple[list[int], list[int] | None]:
        if self.ids is not None:
            return token_ids(self.ids), None
        from exporters.runtime.text import filled_text

        tokenizer = _needed("--text", text)
        if self.image is not None and spec.connector is not None:
            from exporters.runtime.marked_prompts import marked_ids

            (read,) = marked_ids(self.texts, 1, spec, tokenizer)
            return read, None
        if len(self.texts) == 1:
            (read,) = tokenizer.ids(self.texts)
            return filled_text(read, spec, tokenizer) if spec.text else read, None
        ids, types = tokenizer.pair(*self.texts)
        embedding = spec.embedding_of(spec.last_stack)
        return ids, types if embedding.segment_count else None

    def _target(self, source: ModelSource, text: TextTokenizer | None) -> list[int]:
        if not _has_two(source.spec):
            return []
        if self.target_ids is not None:
            return token_ids(self.target_ids, "--target-ids")
        start = [start_token(source.settings)]
        if self.target_text is None:
            return start
        return start + _needed("--target-text", text).ids([self.target_text])[0]


def check_length(
    spec: Model, reading: AttentionInput, choice: AttentionChoice, new_tokens: int
) -> dict[Reader, int]:
    """The number of tokens, patches or frames of each stack that runs, generated tokens included.

    Raises :class:`specs.base.errors.UserError` unless ids are in the vocabulary, everything fits the context, and the weights fit
    in memory.  The last generated token is never an input.
    """
    if new_tokens and spec.head.kind != "language_modeling":
        raise UserError(
            f"--max-new-tokens needs a head of kind language_modeling, and the head of {spec.name} is {spec.head.kind}.\n"
            f"  value: {new_tokens}\n  Remove the option."
        )
    lengths = dict[Reader, int]()
    for name, stack in spec.stacks():
        if name not in _inputs(spec, choice) and (name != "decoder" or not _has_two(spec)):
            continue
        ids, most = reading.ids_of(spec, name), spec.context_length_of(stack)
        lengths[name] = reading.length_of(spec, name)
        if spec.embedding_of(stack).takes_tokens:
            check_prompts(spec, stack, [ids])
        elif most is not None and lengths[name] > most:
            raise UserError(
                f"A recording must fit the context of {spec.name}, which is {most} frames\n"
                f"  value: {lengths[name]} frames\n  Pass a shorter recording."
            )
        if name == "decoder" and most is not None and len(ids) + new_tokens - 1 > most:
            raise UserError(
                f"Input and new tokens must fit the context of {spec.name}, which is {most} tokens.\n"
                f"  value: {len(ids)} tokens, and --max-new-tokens {new_tokens}\n"
                f"  Pass --max-new-tokens {most - len(ids) + 1} or less."
            )
    if "decoder" in lengths:
        lengths["decoder"] += max(0, new_tokens - 1)
    _check_size(spec, choice, lengths)
    return lengths


def _check_size(spec: Model, choice: AttentionChoice, lengths: dict[Reader, int]) -> None:
    counts = heads_by_layer(spec)
    total = sum(
        (len(choice.heads) if choice.heads else counts[stack][layer] or 1)
        * lengths[looks(stack)]
        * lengths[looked_at(stack)]
        for stack, layers in choice.layers.items()
        for layer in layers
    )
    if total > MOST_WEIGHTS:
        raise UserError(
            f"The attention maps of {spec.name} must have at most {MOST_WEIGHTS:,} weights\n  value: {total:,}\n"
            "  Choose fewer layers, heads or stacks, such as --layer 0 or --head 0."
        )


def _inputs(spec: Model, choice: AttentionChoice) -> dict[Reader, str]:
    """The names of the inputs, except a target; if each stack reads its own, the inputs of the chosen stacks."""
    if _read_apart(spec):
        readers: list[Reader] = [looked_at(stack) for stack in choice.layers]
    else:
        readers = ["encoder" if spec.encoder is not None else "decoder"]
    return {reader: spec.embedding_of(spec.stack(reader)).input_name for reader in readers}


def _read_apart(spec: Model) -> bool:
    """Whether a model has several stacks that each read an input of their own."""
    return spec.encoder is None and len(list(spec.stacks())) > 1


def _has_two(spec: Model) -> bool:
    return spec.architecture == "encoder-decoder"


def _needed(option: str, text: TextTokenizer | None) -> TextTokenizer:
    if text is None:
        raise UserError(
            f"{option} needs a tokenizer, and there is no tokenizer.json beside the weights.\n"
            "  Pass --tokenizer PATH, or token ids with --ids."
        )
    return text
