"""The checks of every family: a tiny reference model is saved as a checkpoint, imported, run, exported and converted back.

For each configuration the outputs of ``transformers`` are compared with ours in PyTorch (padded batch, cached steps), with
those of the exported files in ONNX Runtime, and with those of the checkpoint that is written back, which
``from_pretrained`` has to load without a tensor missing or left over.
"""

from __future__ import annotations

import copy
import functools
import inspect
import json
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import Tensor
from transformers import PreTrainedModel

from exporters.export import export
from exporters.steps.options import ExportOptions
from specs.model.model import Model
from tests.parity.families.in_memory import check_in_memory_layout
from tests.parity.families.recorded import RECORDED, Parity
from tests.parity.reference import build, difference, load, positions, ragged
from zoo.checkpoints.converting import convert
from zoo.configs.importing import import_spec
from zoo.core.state_names import is_past, is_present, past_of
from zoo.core.token_inputs import token_inputs
from zoo.families.registry import family

TOLERANCE = 1e-5
"""Largest absolute difference at unit scale, in float32."""

SAME_NAMES = ("logits", "last_hidden_state", "pooler_output", "start_logits", "end_logits", "text_embeds",
              "image_embeds", "relevance_logits", "class_queries_logits", "masks_queries_logits")  # fmt: skip
"""Outputs that the reference has under our name."""

RENAMED = {"query_embedding": "pooler_output"}
"""Outputs that the reference has under another name."""


class ReferenceFailsError(Exception):
    """A reference that can be built computes nothing."""


Prepare = Callable[[Any, int], None]
"""Changes a reference whose weights were drawn from a seed."""


def check(
    model_class: type,
    config: Any,
    directory: Path,
    *,
    seed: int = 1,
    prepare: Prepare | None = None,
    **options: Any,
) -> Model:
    """Compare one configuration of a family with its reference, whose weights are drawn; options as for ``check_reference``."""
    reference = prepared(model_class, config, seed, prepare)
    return check_reference(reference, directory, seed=seed, **options)


def prepared(model_class: type, config: Any, seed: int, prepare: Prepare | None = None) -> Any:
    """A reference model with drawn weights."""
    reference = build(model_class, config, seed)
    if prepare is not None:
        prepare(reference, seed)
    return reference


def check_reference(
    reference: PreTrainedModel,
    directory: Path,
    *,
    seed: int = 1,
    length: int = 13,
    sides: tuple[str, ...] = ("right", "left"),
    steps: bool = True,
    position_ids: bool = True,
    onnx: bool = True,
    verify: bool = False,
    fuzzed: bool = False,
    without: tuple[str, ...] = (),
) -> Model:
    """Put a reference model through everything; gives the spec that was imported.

    ``sides`` are where padding is tried: a family whose reference counts positions from the padding on, and takes no
    position_ids, is tried on the right alone; ``position_ids=False`` leaves positions to a reference that counts real
    tokens.  Fuzz tests leave out what takes long with ``onnx=False`` for most of their draws; ``verify`` also verifies the
    export as every export is, which takes as long as the comparison with the reference.  ``length`` is to exceed every
    window; ``steps=False`` leaves out the steps after a prompt, where the outputs depend on how long the input is
    altogether.  ``without`` begin the names of the reference's tensors that no output depends on.
    """
    reference.save_pretrained(directory / "reference")
    spec = import_spec(directory / "reference")
    ours = load(spec, directory / "reference")
    check_in_memory_layout(reference, spec, ours, directory / "in-memory", directory / "reference")
    result = Parity(reference.config.model_type, fuzzed=fuzzed)
    batches = [_Batch(spec, reference.config, length, side, seed, steps, position_ids) for side in sides]
    references = [batch.reference(reference) for batch in batches]
    for batch, expected in zip(batches, references, strict=True):
        for outputs in batch.ours(ours):
            result.pytorch = max(result.pytorch, batch.largest(outputs, expected))
    rounding = functools.cache(functools.partial(_rounding, reference, ours, batches, references))
    allowed = _allowed(result.pytorch, rounding)
    assert result.pytorch <= allowed, f"PyTorch differs by {result.pytorch:.2e}, and {allowed:.2e} is allowed"
    if onnx:
        export(spec, directory / "onnx", ExportOptions(weights=str(directory / "reference"), verify=verify))
        for batch, expected in zip(batches, references, strict=True):
            for outputs in batch.onnx(directory / "onnx"):
                result.onnx = max(result.onnx, batch.largest(outputs, expected))
        allowed = _allowed(result.onnx, rounding)
        assert result.onnx <= allowed, (
            f"ONNX Runtime differs by {result.onnx:.2e}, and {allowed:.2e} is allowed"
        )
    _check_conversion(spec, directory, reference, batches[0], references[0], without)
    RECORDED.results.append(result)
    return spec


def compare(reference: PreTrainedModel, spec: Model, ours: Any) -> float:
    """How far a model is from its reference, in one pass over a batch padded on the right.

    Raises :class:`ReferenceFailsError` where the reference computes nothing.
    """
    batch = _Batch(spec, reference.config, 13, "right", 1, steps=False, position_ids=False)
    try:
        expected = batch.reference(reference)
    except Exception as error:
        raise ReferenceFailsError(str(error)) from error
    return max(batch.largest(outputs, expected) for outputs in batch.ours(ours))


def _allowed(found: float, rounding: Callable[[], float]) -> float:
    """The largest difference allowed: where a difference exceeds the tolerance, what rounding explains."""
    return TOLERANCE if found <= TOLERANCE else max(TOLERANCE, 8 * rounding())


def _rounding(
    reference: PreTrainedModel, ours: Any, batches: list[_Batch], references: list[Outputs]
) -> float:
    """How far the outputs of the reference are from those that it has in float64, or our model where the reference gives no numbers there.

    Some draws magnify every rounding.
    """
    exact = copy.deepcopy(reference).double()
    far = [
        batch.largest(batch.reference(exact), expected)
        for batch, expected in zip(batches, references, strict=True)
    ]
    if all(map(math.isfinite, far)):
        return max(far)
    exact = copy.deepcopy(ours).double()
    return max(
        batch.largest(wide, narrow)
        for batch in batches
        for wide, narrow in zip(batch.ours(exact), batch.ours(ours), strict=True)
    )


def _check_conversion(
    spec: Model,
    directory: Path,
    reference: PreTrainedModel,
    batch: _Batch,
    expected: Outputs,
    without: tuple[str, ...],
) -> None:
    """Convert the checkpoint back: the config stays the same, and so do the outputs."""
    back = converted(spec, directory, reference, without)
    written, saved = (
        json.loads((directory / f"{name}/config.json").read_text()) for name in ("converted", "reference")
    )
    naming = family(reference.config.model_type).naming
    if all(saved[name] == value for name, value in naming.items()):
        assert {**written, "dtype": None} == {**saved, "dtype": None}, "the config stays as it is"
    tensors, again = reference.state_dict(), back.state_dict()
    is_same = tensors.keys() == again.keys() and all(
        torch.equal(tensors[name], again[name]) for name in tensors
    )
    # Equal tensors at other addresses are summed in another order: RWKV-7 amplifies it.
    assert batch.largest(batch.reference(back), expected) <= (1e-5 if is_same else 1e-6)


def converted(spec: Model, directory: Path, reference: Any, without: tuple[str, ...] = ()) -> Any:
    """The reference that reads the converted checkpoint: of the same class, with every tensor that a model reads."""
    target, model_type = directory / "converted", reference.config.model_type
    target.mkdir()
    convert(spec, str(directory / "reference"), target, model_type=model_type)
    assert json.loads((target / "config.json").read_text())["architectures"] == [type(reference).__name__]
    same = {
        "attn_implementation": reference.config._attn_implementation,
        "experts_implementation": reference.config._experts_implementation,
    }
    back, report = type(reference).from_pretrained(target, output_loading_info=True, **same)
    names = family(model_type).tensors
    computed = {name for name, _ in back.named_buffers() if names.unread([names.plain(name)])}
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        left = [name for name in report[kind] if name not in computed and not name.startswith(without)]
        assert not left, f"{kind}: {sorted(left)[:5]}"
    return back.eval()


Outputs = Mapping[str, Tensor]


class _Batch:
    """A padded batch of random tokens, and what models make of it."""

    def __init__(
        self, spec: Model, config: Any, length: int, side: str, seed: int, steps: bool, position_ids: bool
    ) -> None:
        self.spec, self.steps, self.position_ids = spec, steps, position_ids
        longest = min(length, spec.context_length_of(spec.last_stack) or length)
        vocabulary = spec.vocab_size or 1
        self.ids, self.mask = ragged(3, longest, vocabulary, side, seed)
        self.target, _ = ragged(3, max(2, longest - 2), vocabulary, "right", seed + 1)
        padding = getattr(config, "pad_token_id", None)
        if padding is not None and vocabulary > 1:  # some references find the real tokens by their ids
            other = (padding + 1) % vocabulary
            self.ids = self.ids.where(self.ids != padding, other).where(self.mask == 1, padding)
            self.target = self.target.where(self.target != padding, other)
        end = spec.head.token_to_find
        if end is not None:  # once in every row, where the reference finds it too
            other = next(id for id in range(vocabulary) if id not in (end, padding))
            last = (self.mask * torch.arange(longest)).argmax(1)
            self.ids = self.ids.where(self.ids != end, other)
            self.ids[torch.arange(3), last] = end
        first = spec.first_stack
        embedding: Any = spec.embedding_of(first)
        types = getattr(embedding, "token_types", 0)
        generator = torch.Generator().manual_seed(seed)
        self.types = torch.randint(0, types, self.ids.shape, generator=generator) if types else None
        codes = (
            torch.randint(0, 2**16, self.ids.shape, generator=generator)
            if embedding.token_inputs
            else self.ids
        )
        self.beside = token_inputs(embedding, codes)
        self.given = {"input_ids": self.ids, "attention_mask": self.mask}
        if not embedding.takes_tokens:
            self.given = self._dense(embedding, spec.context_length_of(first) or longest, generator)

    def _dense(self, embedding: Any, vectors: int, generator: torch.Generator) -> dict[str, Tensor]:
        """Images or audio; all of it is there, unless the embedding takes a mask, of samples or of frames, which extractors
        pad with zeros."""
        vectors = min(vectors, self.mask.shape[1]) if embedding.any_length else vectors
        values = torch.randn((3, *embedding.input_shape(vectors)), generator=generator)
        if embedding.takes_mask:
            lengths = [embedding.input_length(int(count)) for count in self.mask.sum(1)]
            samples = torch.arange(values.shape[1]) < torch.tensor(lengths)[:, None]
            values = values * samples[..., None] if values.ndim > 2 else values
            return {embedding.input_name: values, "attention_mask": samples.long()}
        self.mask = torch.ones_like(self.mask)
        return {embedding.input_name: values}

    @property
    def _cross(self) -> bool:
        return self.spec.architecture == "encoder-decoder"

    @property
    def _tokens(self) -> Tensor:
        """The tokens that are decoded, or encoded if there is no decoder."""
        return self.target if self._cross else self.ids

    @torch.no_grad()
    def reference(self, model: Any) -> Outputs:
        """The reference's outputs."""
        takes = inspect.signature(model.forward).parameters
        dtype = next(model.parameters()).dtype
        feeds: dict[str, Any] = {
            name: each.to(dtype) if each.is_floating_point() else each for name, each in self.given.items()
        }
        feeds |= self.beside
        if self.types is not None and "token_type_ids" in takes:
            feeds["token_type_ids"] = self.types
        if self._cross:
            feeds["decoder_input_ids"] = self.target
        elif self.position_ids and "position_ids" in takes:
            feeds["position_ids"] = positions(self.mask)
        return {name: value for name, value in model(**feeds).items() if name in SAME_NAMES}

    @torch.no_grad()
    def ours(self, model: Any) -> Iterator[Outputs]:
        """Our outputs in one pass, and for decoders in a prompt with single steps after it."""
        if self.spec.architecture == "encoder":
            types = {} if self.types is None else {"token_type_ids": self.types}
            yield model(*self.given.values(), **types, **self.beside)
            return
        encoded = model.encode(*self.given.values()).present_key_values if self._cross else None

        def call(start: int, end: int, past: Any) -> tuple[Outputs, Any]:
            ids = self._tokens[:, start:end]
            if self._cross:
                outputs = model.decode(ids, encoded, self.given.get("attention_mask"), past)
            else:
                outputs = model(ids, self.mask[:, :end], past)
            return outputs, outputs.present_key_values

        yield from self._passes(call, None)

    def onnx(self, directory: Path) -> Iterator[Outputs]:
        """The outputs of the exported files in the same passes."""
        feeds = {**self.given, **self.beside, "token_type_ids": self.types}
        if self.spec.architecture == "encoder":
            yield _run(_session(directory / "model.onnx"), feeds)
            return
        fixed: dict[str, Tensor] = {}
        session = _session(directory / ("decoder_model.onnx" if self._cross else "model.onnx"))
        if self._cross:
            encoded = _run(_session(directory / "encoder_model.onnx"), feeds)
            fixed = {**_cache(encoded), "encoder_attention_mask": self.mask}

        def call(start: int, end: int, past: Any) -> tuple[Outputs, Any]:
            tokens = {"input_ids": self._tokens[:, start:end], "attention_mask": self.mask[:, :end]}
            outputs = _run(session, {**fixed, **past, **tokens})
            return outputs, _cache(outputs)

        rows = len(self.ids)
        empty = {given.name: torch.zeros([rows, *(dim if isinstance(dim, int) else 0 for dim in given.shape[1:])])
                 for given in session.get_inputs()
                 if is_past(given.name) and given.name not in fixed}  # fmt: skip
        yield from self._passes(call, empty)

    def _passes(self, call: Callable[[int, int, Any], tuple[Outputs, Any]], past: Any) -> Iterator[Outputs]:
        """A full pass, then a prompt with single steps after it."""
        length = self._tokens.shape[1]
        yield call(0, length, past)[0]
        if not self.steps:
            return
        pieces, start = [], 0
        for end in range(length // 2 or 1, length + 1):
            outputs, past = call(start, end, past)
            pieces.append(
                {
                    name: value
                    for name, value in outputs.items()
                    if name in SAME_NAMES and value.shape[1:2] == (end - start,)
                }
            )
            start = end
        names = set.intersection(*(set(piece) for piece in pieces))
        yield {name: torch.cat([piece[name] for piece in pieces], 1) for name in names}

    def largest(self, ours: Outputs, expected: Outputs) -> float:
        """The largest difference over the outputs that both have, at unit scale, at real tokens."""
        ours = {RENAMED.get(name, name): value for name, value in ours.items()}
        common = [name for name in ours if name in expected and ours[name].shape == expected[name].shape]
        steps = self.spec.architecture != "encoder" and self._pooled(expected)
        assert common or steps, f"{list(ours)} have nothing of {list(expected)}"
        return max((self._difference(ours[name], expected[name]) for name in common), default=0.0)

    def _pooled(self, expected: Outputs) -> bool:
        """Whether all outputs are of whole sequences, of which steps give nothing."""
        return all(value.shape[:2] != self._tokens.shape for value in expected.values())

    def _difference(self, ours: Tensor, theirs: Tensor) -> float:
        along = ours.shape[:2] == self._tokens.shape
        return difference(ours, theirs, self.mask if along and not self._cross else None)


def _cache(outputs: Outputs) -> dict[str, Tensor]:
    """Outputs as inputs of the next call."""
    return {past_of(name): value for name, value in outputs.items() if is_present(name)}


@functools.lru_cache(maxsize=2)  # a model is run on texts padded on each side
def _session(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def _run(session: onnxruntime.InferenceSession, feeds: Mapping[str, Tensor | None]) -> dict[str, Tensor]:
    wanted = {given.name for given in session.get_inputs()}
    given = {name: np.ascontiguousarray(value.numpy()) for name, value in feeds.items()
             if name in wanted and value is not None}  # fmt: skip
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, map(torch.from_numpy, session.run(names, given)), strict=True))
