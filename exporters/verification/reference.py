"""The reference of an export: the outputs of the PyTorch model."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from exporters.data.stored_weights import StoredWeight
from exporters.verification.cases import Batch, Case, without
from exporters.verification.verified_model import VerifiedModel
from specs.model.model import Model
from zoo.builder import ZooModel, assemble
from zoo.components.head import token_outputs
from zoo.components.mixer import declared_state
from zoo.components.router import Router
from zoo.core.graph_names import EMBEDDED, SEEN
from zoo.core.progress import Progress, Stage
from zoo.models.dual_encoder import DualEncoder
from zoo.models.vision_language import VisionLanguage
from zoo.weights.materialize import materialize

DECISIVE = 1e-5
"""The relative margin by which the last chosen expert must beat the next one, so that rounding cannot change the
choice."""

DRAWS = 8
"""The largest number of draws of a case's tokens in search of such a margin."""

ENCODED = "encoder last_hidden_state"
"""The name under which the output of an encoder-decoder's encoder is reported."""

VECTORS_PER_IMAGE = ("image ", "logits_per_image", "image_embeds", SEEN)
"""The beginnings of the names under which outputs for images are reported."""

_WITH_TEXTS = " with texts"

_OF_PATCHES = ("logits", "pred_boxes", "class_embeds")

PRESENT = "present"
"""The name under which the keys and values of all layers are reported."""

STATE = "state"
"""The name under which the states without a length are reported, those of all layers in one."""

TakeStored = Callable[[ZooModel], Mapping[str, StoredWeight]]
"""Gives a model the weights as stored, and returns how each has changed."""


Run = Callable[[Any, Case], dict[str, Tensor]]
"""Returns all outputs of a model for a case at once."""


class Reference:
    """A model with its weights, in float32. It can be dropped from memory, and is restored on access."""

    def __init__(self, spec: Model, fill: Callable[[], ZooModel]) -> None:
        self.spec = spec
        self._fill = fill
        self._take_stored: TakeStored | None = None
        self._model: ZooModel | None = None
        self._filling = threading.Lock()

    @property
    def model(self) -> ZooModel:
        """The model, filled on first access."""
        with self._filling:
            if self._model is None:
                self._model = self._fill()
                if self._take_stored is not None:
                    self._take_stored(self._model)
            return self._model

    def take_stored(self, take_stored: TakeStored) -> Mapping[str, StoredWeight]:
        """Give the model the stored weights, now and whenever it is filled again."""
        stored, self._take_stored = take_stored(self.model), take_stored
        return stored

    def drop(self) -> None:
        """Release the memory of the weights."""
        self._model = None


def reference_of(subject: VerifiedModel, progress: Progress) -> Reference:
    """The model of a subject, filled on access."""

    def fill() -> ZooModel:
        progress(Stage("fill the model to compare with"))
        model = assemble(subject.spec)
        materialize(model, subject.source)
        return model

    return Reference(subject.spec, fill)


@dataclass(frozen=True, eq=False)
class ExpectedCase:
    """A case and its outputs by name: ``outputs`` with stored weights and cache, ``original`` with the original ones.

    ``run`` is the function that computed the former.
    """

    case: Case
    outputs: Mapping[str, Tensor]
    original: Mapping[str, Tensor]
    run: Run


@dataclass(frozen=True)
class Expected:
    """The model's outputs in every case, the change of each stored weight, and the outputs with a token axis.

    ``tied``: in every case a router chooses between experts with equal scores, and outputs are compared all the same.
    """

    cases: tuple[ExpectedCase, ...]
    weights: Mapping[str, StoredWeight]
    per_token: frozenset[str]
    tied: bool = False


def expect(
    reference: Reference,
    cases: Iterable[Case],
    progress: Callable[[str], None],
    written: Callable[[], None],
    take_stored: TakeStored | None,
) -> Expected:
    """Run the full pass of every case; ``written`` waits until the stored weights can be read."""
    model, spec = reference.model, reference.spec
    found = []
    for case in cases:
        progress(f"{case.name}, PyTorch")
        decided, full = _decided(model, case, spec.vocab_size or 0)
        found.append(ExpectedCase(decided, full, full, full_pass))
    written()
    weights: Mapping[str, StoredWeight] = {}
    if take_stored is not None:
        progress("the weights as they are stored, PyTorch")
        weights = reference.take_stored(take_stored)
        found = [run_again(model, each, full_pass) for each in found]
    per_token = per_token_outputs(model)
    comparable = [each for each in found if each.case.decided is None or bool(each.case.decided.any())]
    whole = [replace(each, case=replace(each.case, decided=None)) for each in found]
    return Expected(tuple(comparable or whole), weights, per_token, tied=not comparable)


def per_token_outputs(model: ZooModel) -> frozenset[str]:
    """The reported outputs with a token axis."""
    spec = model.spec
    if isinstance(model, DualEncoder):
        return frozenset(
            f"{name} {output}"
            for name, stack in spec.stacks()
            for output in token_outputs(model.get_submodule(f"{name}_head"), spec.width_of(stack))
        )
    return frozenset({ENCODED, PRESENT, EMBEDDED}) | token_outputs(model.head, spec.output_width)


def run_again(model: nn.Module, each: ExpectedCase, run: Run) -> ExpectedCase:
    """A case with the outputs of ``run`` for the model's present weights, in the rows that all runs decide."""
    if not (routers := _routers(model)):
        return replace(each, outputs=run(model, each.case), run=run)
    margins, outputs = _margins(model, each.case, routers, run)
    decided = margins >= DECISIVE
    if each.case.decided is not None:
        decided &= each.case.decided
    case = each.case if bool(decided.all()) else replace(each.case, decided=decided)
    return ExpectedCase(case, outputs, each.original, run)


def _routers(model: nn.Module) -> list[Router]:
    return [module for module in model.modules() if isinstance(module, Router)]


def _image_routers(model: nn.Module) -> set[nn.Module]:
    """The routers of a stack of images, whose rows are images rather than rows of tokens."""
    if not isinstance(model, DualEncoder | VisionLanguage):
        return set()
    return {module for module in model.get_submodule("image").modules() if isinstance(module, Router)}


def _decided(model: nn.Module, case: Case, vocabulary: int) -> tuple[Case, dict[str, Tensor]]:
    """A case and its full pass, with other tokens where a router would choose between equal experts.

    A token whose last chosen expert ties with the next one may go to either, depending on rounding, and everything
    after it differs. If no draw is clear, the clearest one is used, restricted to its clear rows.
    """
    routers = _routers(model)
    if not routers:
        return case, full_pass(model, case)
    generator = torch.Generator().manual_seed(1)
    clearest, best = -1.0, None
    for _ in range(DRAWS):
        margins, outputs = _margins(model, case, routers, full_pass)
        if best is None or float(margins.min()) > clearest:
            decided = margins >= DECISIVE
            clearest = float(margins.min())
            best = (case if bool(decided.all()) else replace(case, decided=decided), outputs)
        if clearest >= DECISIVE:
            break
        encoder = None if case.encoder is None else _redrawn(case.encoder, vocabulary, generator)
        batch = _redrawn(case.batch, vocabulary, generator)
        if case.placeholder is not None:
            batch = _with_placeholders(batch, case.batch, case.placeholder, vocabulary)
        case = replace(case, batch=batch, encoder=encoder)
    assert best is not None
    return best


def _redrawn(batch: Batch, vocabulary: int, generator: torch.Generator) -> Batch:
    if batch.inputs.is_floating_point():
        return replace(batch, inputs=torch.randn(batch.inputs.shape, generator=generator))
    return replace(batch, inputs=torch.randint(vocabulary, batch.inputs.shape, generator=generator))


def _with_placeholders(drawn: Batch, given: Batch, token: int, vocabulary: int) -> Batch:
    """A drawn batch whose images are at the places of the given one's."""
    others = without(drawn.inputs, token, vocabulary)
    return replace(drawn, inputs=torch.where(given.inputs == token, token, others))


def _margins(
    model: nn.Module, case: Case, routers: Sequence[Router], run: Run
) -> tuple[Tensor, dict[str, Tensor]]:
    """For each row of tokens the narrowest margin of all routers at its real tokens or at any image, B, and the full pass
    that gave it."""
    narrowest = [torch.full((case.batch.inputs.shape[0],), math.inf)]
    masks = [batch.real == 1 for batch in (case.batch, case.encoder) if batch and batch.real is not None]
    of_images = _image_routers(model)

    def look(router: Router, args: tuple[Tensor], logits: Tensor) -> None:
        margins = router.margin(logits)  # B T
        if router in of_images:  # M N: each row may depend on any image
            narrowest.append(margins.amin().expand_as(narrowest[0]))
            return
        real = next((mask for mask in masks if mask.shape == margins.shape), None)
        narrowest.append((margins if real is None else margins.where(real, math.inf)).amin(1))

    hooks = [router.register_forward_hook(look) for router in routers]
    try:
        outputs = run(model, case)
    finally:
        for hook in hooks:
            hook.remove()
    return torch.stack(narrowest).amin(0), outputs


def full_pass(model: Any, case: Case) -> dict[str, Tensor]:
    """All outputs of a case by their reported names; outputs of a gap are moved to the positions of its tokens."""
    batch, encoder = case.batch, case.encoder
    if isinstance(model, DualEncoder):
        return _full_pair(model, case)
    batch = batch.closed_up() if case.gap else batch
    apart: dict[str, Tensor] = {}
    if isinstance(model, VisionLanguage):
        apart, x = _with_images(model, case, batch)
        at = model.positions(x, batch.mask, None, None).seeing(model.ahead(batch.inputs))
        at = at.along(coordinates_of(model, case, batch))
        if model.bidirectional == "prompt":
            assert case.batch.mask is not None
            at = at.with_prompt(case.batch.mask[:, : case.ends[0]].sum(1, keepdim=True))
        outputs = model.decode(x, at, None)
    elif encoder is not None:
        encoded = model.encode(_inputs(encoder, model), encoder.mask, encoder.types)
        outputs = model.decode(
            batch.inputs, encoded.present_key_values, encoder.mask, decoder_attention_mask=batch.mask
        )
        apart = {ENCODED: encoded.last_hidden_state}
    else:
        outputs = model(_inputs(batch, model), batch.mask, token_type_ids=batch.types)
    results = {**outputs}
    if outputs.present_key_values:
        declared = declared_state(model.decoder.states, outputs.present_key_values)
        results |= reported_state(
            [x for each, x in declared if each.grows], [x for each, x in declared if not each.grows]
        )
    if case.gap:
        assert case.batch.mask is not None
        width = model.spec.output_width
        for name in results.keys() & {PRESENT, *token_outputs(model.head, width)}:
            results[name] = at_their_places(results[name], case.batch.mask)
    return apart | results


def coordinates_of(model: VisionLanguage, case: Case, batch: Batch) -> Tensor | None:
    """The frame, row and column of each token of a ``batch`` with a case's images, where the decoder rotates by them."""
    images = case.encoder
    if images is None or images.grids is None or not model.rotates_by_axis:
        return None
    return model.coordinates(batch.inputs, batch.mask, images.grids)


def _with_images(model: VisionLanguage, case: Case, batch: Batch) -> tuple[dict[str, Tensor], Tensor]:
    """The vectors of a case's images and the embeddings with them, as outputs, and those of its ``batch``."""
    images = case.encoder
    assert images is not None
    seen = model.see(_inputs(images, model), images.grids) if len(images.inputs) else None
    embedded = model.embed(case.batch.inputs, seen, case.batch.types)
    x = model.embed(batch.inputs, seen, batch.types) if case.gap else embedded
    return {EMBEDDED: embedded} | ({} if seen is None else {SEEN: seen}), x


def _full_pair(model: DualEncoder, case: Case) -> dict[str, Tensor]:
    """The outputs of a dual encoder: of each encoder under its name, and of both."""
    texts, images = case.batch, case.encoder
    assert images is not None
    seen = _inputs(images, model)
    alone = {
        "text": model.encode("text", texts.inputs, texts.mask, texts.types),
        "image": model.encode("image", seen),
    }
    named = {f"{name} {output}": x for name, outputs in alone.items() for output, x in outputs.items()}
    return named | reported_pairs(model(texts.inputs, seen, texts.mask, texts.types))


def reported_pairs(outputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The outputs of both encoders together under the names that they are reported by: those of each patch are of images."""
    return {f"image {name}{_WITH_TEXTS}" if name in _OF_PATCHES else name: x for name, x in outputs.items()}


def _pairs_with_texts(output: str) -> bool:
    """Whether an output for images depends on every text."""
    return output == "logits_per_image" or output.endswith(_WITH_TEXTS)


def _inputs(batch: Batch, model: nn.Module) -> Tensor:
    """A batch's inputs as a model takes them: token ids, or numbers in the model's dtype."""
    inputs = batch.inputs
    return inputs.to(next(model.parameters()).dtype) if inputs.is_floating_point() else inputs


def reported_state(growing: Sequence[Tensor], constant: Sequence[Tensor]) -> dict[str, Tensor]:
    """The state of all layers as it is reported: what holds every token, B S ..., and the rest, B ..."""
    found = {PRESENT: side_by_side(growing)} if growing else {}
    return found | ({STATE: torch.cat([x.float().flatten(1) for x in constant], 1)} if constant else {})


def side_by_side(caches: Iterable[Tensor]) -> Tensor:
    """B G S K each -> B S and everything that belongs to a token."""
    return torch.cat([cache.transpose(1, 2).flatten(2) for cache in caches], -1)


def at_their_places(values: Tensor, mask: Tensor) -> Tensor:
    """Move the values at the front of each row to the positions where the mask is 1: B S (N) and B S -> B S (N)."""
    places = (mask.cumsum(1) - 1).clamp(min=0)  # B S
    return values.gather(
        1, places if values.dim() == 2 else places[..., None].expand(-1, -1, values.shape[-1])
    )


def real_places(case: Case, output: str, per_token: frozenset[str], dtype: torch.dtype) -> Tensor:
    """An index of the values of an output that are compared, B or B T; values at padding are excluded.

    Also excluded are rows without real tokens in half precision, where masked scores differ (they must only be
    finite), and rows that a router does not decide.
    """
    of_encoder = output == ENCODED or (not case.reads_encoder and output.startswith(VECTORS_PER_IMAGE))
    batch = case.encoder if of_encoder and case.encoder is not None else case.batch
    read = (case.encoder, case.batch) if case.reads_encoder else (batch,)
    masks = [each.real == 1 for each in read if each is not None and each.real is not None]
    rows = torch.ones(batch.rows, dtype=torch.bool)
    if case.decided is not None and (case.reads_encoder or not of_encoder):
        rows = case.decided  # of tokens
    elif case.decided is not None and _pairs_with_texts(output):
        rows &= bool(case.decided.all())
    if dtype != torch.float32:
        rows = torch.stack([rows, *(mask.any(1) for mask in masks)]).all(0)
    if batch.real is None or output not in per_token:
        return rows
    return (batch.real == 1) & rows[:, None]
