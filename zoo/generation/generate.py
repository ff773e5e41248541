"""Generation with a PyTorch model: tokens are chosen one by one, through the cache, until every sequence has ended."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, TypedDict, Unpack

import torch
from torch import Tensor, nn

from specs.base.errors import UserError
from specs.model.model import Model
from zoo.generation.prompts import check_prompts, weights_missing
from zoo.generation.sampling import Sampler, Sampling
from zoo.generation.score_rules import ScoreRules
from zoo.generation.settings import NO_SETTINGS, GenerationSettings, stops

if TYPE_CHECKING:
    from zoo.models.decoder import Decoder
    from zoo.models.encoder_decoder import EncoderDecoder
    from zoo.models.outputs import Outputs

Prompts = Sequence[Sequence[int]]
"""Token ids, a list for each prompt; they may differ in length."""

StepFunction = Callable[[Tensor, Tensor, "Outputs | None"], "Outputs"]
"""Returns the outputs for new tokens, B T, given the mask of all tokens, B S, and the outputs of the previous step."""


class GenerationOptions(TypedDict, total=False):
    """The sampling options of generation.

    ``temperature``, ``top_k``, ``top_p``, ``min_p`` and ``seed`` are those of :class:`zoo.generation.sampling.Sampling`
    (default: greedy decoding). ``settings`` are a checkpoint's. A sequence ends with a token of ``stop`` (default: those of
    the settings). ``tell`` receives the tokens of every step, one per row, None for sequences that have ended.
    """

    temperature: float
    top_k: int | None
    top_p: float | None
    min_p: float | None
    seed: int
    settings: GenerationSettings
    stop: Collection[int]
    tell: Callable[[list[int | None]], None]


def generate(
    model: Decoder, prompts: Prompts, max_new_tokens: int, **options: Unpack[GenerationOptions]
) -> list[list[int]]:
    """The tokens that follow each prompt: up to ``max_new_tokens``, a token of ``stop`` (included), or the end of the
    context.

    Each row is independent of the others. Raises :class:`specs.base.errors.UserError` for a model without next-token
    scores, and for invalid prompts.
    """
    spec = model.spec
    check_generates(model)
    check_prompts(spec, spec.stack("decoder"), prompts, room=1)

    def step(ids: Tensor, mask: Tensor, before: Outputs | None) -> Outputs:
        past = None if before is None else before.present_key_values
        return model(ids, mask, past, last_only=True)

    return continued(model, prompts, max_new_tokens, step, options, prompts)


def generate_from(
    model: EncoderDecoder,
    inputs: Prompts | Tensor,
    max_new_tokens: int,
    *,
    start: int = 0,
    attention_mask: Tensor | None = None,
    **options: Unpack[GenerationOptions],
) -> list[list[int]]:
    """The tokens that the decoder generates after the token ``start``, given the encoder's inputs.

    inputs: token ids, a list for each row, or a tensor that the encoder's embedding takes, with an ``attention_mask``
    where some of it is padding. Otherwise as :func:`generate`.
    """
    spec = model.spec
    check_generates(model)
    read = None if isinstance(inputs, Tensor) else inputs
    if not isinstance(inputs, Tensor):
        check_prompts(spec, spec.stack("encoder"), inputs)
        inputs, attention_mask = _padded(model, inputs, right=True)
    prompts = [[start] for _ in range(inputs.shape[0])]
    check_prompts(spec, spec.stack("decoder"), prompts, room=1)
    with torch.no_grad():
        encoded = model.encode(inputs, attention_mask).present_key_values

    def step(ids: Tensor, mask: Tensor, before: Outputs | None) -> Outputs:
        past = None if before is None else before.present_key_values
        return model.decode(ids, encoded, attention_mask, past, mask, last_only=True)

    return continued(model, prompts, max_new_tokens, step, options, read)


class Generates(Protocol):
    """A model, or a stage of one, with the spec and weights that generation asks for."""

    @property
    def spec(self) -> Model: ...

    def parameters(self) -> Iterator[nn.Parameter]:
        """The weights."""
        ...


def check_generates(model: Generates) -> None:
    """Raise :class:`specs.base.errors.UserError` for a model without next-token scores, or without weights."""
    if not model.spec.head.predicts_next:
        raise UserError(
            f"Generating needs a head of kind language_modeling\n  value: {model.spec.head.kind}\n"
            "  Set head.kind=language_modeling."
        )
    if next(model.parameters()).is_meta:
        raise weights_missing(model.spec)


@torch.no_grad()
def continued(
    model: Generates,
    prompts: Prompts,
    most: int,
    step: StepFunction,
    options: GenerationOptions,
    read: Prompts | None,
) -> list[list[int]]:
    """The tokens that ``step`` leads to after each prompt, until all have ended; ``read`` are those that the model read."""
    settings, tell = options.get("settings", NO_SETTINGS), options.get("tell", lambda tokens: None)
    stop = stops(options.get("stop"), settings)
    sampling = Sampling(
        options.get("temperature", 0.0),
        options.get("top_k"),
        options.get("top_p"),
        options.get("seed", 0),
        options.get("min_p"),
    )
    sampler = Sampler(sampling, len(prompts))
    context = model.spec.context_length_of(model.spec.stack("decoder"))
    room = most if context is None else context - max(map(len, prompts))
    generated: list[list[int]] = [[] for _ in prompts]
    ended = [False for _ in prompts]
    ids, mask = _padded(model, prompts, right=False)  # B T
    outputs: Outputs | None = None
    rules = ScoreRules(settings, prompts, read, min(most, room), stop)
    for _ in range(min(most, room)):
        outputs = step(ids, mask, outputs)
        chosen = sampler.choose(rules.apply(outputs.logits[:, -1].float().cpu().numpy(), generated))
        tell([None if over else token for token, over in zip(chosen, ended, strict=True)])
        for row, token in enumerate(chosen):
            if not ended[row]:
                generated[row].append(token)
                ended[row] = token in stop
        if all(ended):
            break
        ids = ids.new_tensor(chosen)[:, None]  # B 1
        mask = torch.cat((mask, torch.ones_like(ids)), 1)
    return generated


def _padded(model: Generates, rows: Prompts, *, right: bool) -> tuple[Tensor, Tensor]:
    """Rows of ids, padded to the longest, B T, and their mask."""
    longest, device = max(map(len, rows)), next(model.parameters()).device
    gaps = [[0] * (longest - len(row)) for row in rows]
    pairs = [(row, gap) if right else (gap, row) for row, gap in zip(rows, gaps, strict=True)]
    real = [[int(part is row) for part in pair for _ in part] for row, pair in zip(rows, pairs, strict=True)]
    return (
        torch.tensor([[*first, *second] for first, second in pairs], device=device),
        torch.tensor(real, device=device),
    )
