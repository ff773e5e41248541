"""What every family is put through: a tiny reference model saved as a checkpoint, imported, run, exported, converted back.

For each configuration the outputs of ``transformers`` are compared with ours in PyTorch (padded batch, cached steps), with
those of the exported files in ONNX Runtime, and with those of the checkpoint that is written back, which
``from_pretrained`` has to load without a tensor missing or left over.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import Tensor

from exporters.export import Options, export
from specs.model import Model
from tests.parity.reference import build, difference, load, positions, ragged
from zoo.builder import ZooModel
from zoo.checkpoints.converting import convert
from zoo.configs.importing import import_spec

TOLERANCE = 1e-5
"""Largest absolute difference at unit scale, in float32."""

SAME_NAMES = ("logits", "last_hidden_state", "pooler_output", "start_logits", "end_logits", "text_embeds")
"""Outputs that the reference has under our name."""


@dataclass
class Parity:
    """The largest differences of one configuration."""

    family: str
    pytorch: float = 0.0
    onnx: float = 0.0
    fuzzed: bool = False


@dataclass
class Recorded:
    """What the tests of this process have compared, for the summary at the end."""

    results: list[Parity] = field(default_factory=list)


RECORDED = Recorded()


def check(
    model_class: type,
    config: Any,
    directory: Path,
    *,
    seed: int = 1,
    length: int = 13,
    sides: tuple[str, ...] = ("right", "left"),
    onnx: bool = True,
    fuzzed: bool = False,
) -> Model:
    """Put one configuration of a family through everything; gives the spec that was imported.

    ``sides`` are where padding is tried: an encoder with learned positions that counts them from the padding on is
    tried on the right alone.  Fuzz tests leave out what takes long with ``onnx=False`` for most of their draws.
    """
    reference = build(model_class, config, seed)
    reference.save_pretrained(directory / "reference")
    spec = import_spec(directory / "reference")
    ours = load(spec, directory / "reference")
    result = Parity(config.model_type, fuzzed=fuzzed)
    for side in sides:
        batch = _Batch(spec, length, side, seed)
        expected = batch.reference(reference)
        result.pytorch = max(result.pytorch, batch.largest(batch.ours(ours), expected))
        if spec.architecture != "encoder":
            result.pytorch = max(result.pytorch, batch.largest(batch.stepped(ours), expected))
    assert result.pytorch <= TOLERANCE, f"PyTorch differs by {result.pytorch:.2e}"
    if onnx:
        export(spec, directory / "onnx", Options(weights=str(directory / "reference")))
        for side in sides:
            batch = _Batch(spec, length, side, seed)
            expected = batch.reference(reference)
            result.onnx = max(result.onnx, batch.largest(batch.onnx(directory / "onnx"), expected))
        assert result.onnx <= TOLERANCE, f"ONNX Runtime differs by {result.onnx:.2e}"
    _check_conversion(spec, model_class, directory, reference, _Batch(spec, length, sides[0], seed))
    RECORDED.results.append(result)
    return spec


def _check_conversion(spec: Model, model_class: type, directory: Path, reference: Any, batch: _Batch) -> None:
    """The way back: a checkpoint with the same config, every tensor, and equal outputs."""
    (directory / "converted").mkdir()
    convert(
        spec, str(directory / "reference"), directory / "converted", model_type=reference.config.model_type
    )
    written = json.loads((directory / "converted" / "config.json").read_text())
    assert written["architectures"] == [model_class.__name__]
    back, report = model_class.from_pretrained(
        directory / "converted", output_loading_info=True, attn_implementation="eager"
    )
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        assert not report[kind], f"{kind}: {sorted(report[kind])[:5]}"
    assert batch.largest(batch.reference(back.eval()), batch.reference(reference)) <= 1e-6


class _Batch:
    """A padded batch of random tokens, and what models make of it."""

    def __init__(self, spec: Model, length: int, side: str, seed: int) -> None:
        self.spec = spec
        self.ids, self.mask = ragged(3, length, spec.vocab_size, side, seed)
        types = spec.embedding.token_types
        generator = torch.Generator().manual_seed(seed)
        self.types = torch.randint(0, types, self.ids.shape, generator=generator) if types else None
        self.target, _ = ragged(3, length - 2, spec.vocab_size, "right", seed + 1)

    @property
    def _cross(self) -> bool:
        return self.spec.architecture == "encoder-decoder"

    @torch.no_grad()
    def reference(self, model: Any) -> Mapping[str, Tensor]:
        """The reference's outputs."""
        takes = inspect.signature(model.forward).parameters
        feeds: dict[str, Any] = {"input_ids": self.ids, "attention_mask": self.mask}
        if self.types is not None and "token_type_ids" in takes:
            feeds["token_type_ids"] = self.types
        if self._cross:
            feeds["decoder_input_ids"] = self.target
        elif "position_ids" in takes:
            feeds["position_ids"] = positions(self.mask)
        return {name: value for name, value in model(**feeds).items() if name in SAME_NAMES}

    @torch.no_grad()
    def ours(self, model: ZooModel) -> Mapping[str, Tensor]:
        """Our outputs in one pass."""
        if self._cross:
            return model(self.ids, self.target, self.mask)
        if self.types is not None:
            return model(self.ids, self.mask, token_type_ids=self.types)
        return model(self.ids, self.mask)

    @torch.no_grad()
    def stepped(self, model: Any) -> Mapping[str, Tensor]:
        """Our outputs for a prompt and then one token at a time."""
        ids = self.target if self._cross else self.ids
        encoded = model.encode(self.ids, self.mask).present_key_values if self._cross else None
        pieces: list[Mapping[str, Tensor]] = []
        past, start = None, 0
        for end in (ids.shape[1] // 2, *range(ids.shape[1] // 2 + 1, ids.shape[1] + 1)):
            if self._cross:
                outputs = model.decode(ids[:, start:end], encoded, self.mask, past)
            else:
                outputs = model(ids[:, start:end], self.mask[:, :end], past)
            pieces.append(outputs)
            past, start = outputs.present_key_values, end
        return _joined(pieces)

    def onnx(self, directory: Path) -> Mapping[str, Tensor]:
        """What the exported files give: for decoders a prompt, then one token at a time."""
        if self.spec.architecture == "encoder":
            feeds = {"input_ids": self.ids, "attention_mask": self.mask, "token_type_ids": self.types}
            return _run(_session(directory / "model.onnx"), feeds)
        fixed: dict[str, Tensor] = {}
        ids, session = self.ids, None
        if self._cross:
            feeds = {"input_ids": self.ids, "attention_mask": self.mask}
            encoded = _run(_session(directory / "encoder_model.onnx"), feeds)
            fixed = {name.replace("present", "past_key_values"): value
                     for name, value in encoded.items() if name.startswith("present")}  # fmt: skip
            fixed["encoder_attention_mask"] = self.mask
            ids, session = self.target, _session(directory / "decoder_model.onnx")
        session = session or _session(directory / "model.onnx")
        cache = {given.name: torch.zeros([dim if isinstance(dim, int) else 0 for dim in given.shape])
                 for given in session.get_inputs()
                 if given.name.startswith("past_key_values") and given.name not in fixed}  # fmt: skip
        cache = {name: value.new_zeros((3, *value.shape[1:])) for name, value in cache.items()}
        pieces, start = [], 0
        for end in (ids.shape[1] // 2, *range(ids.shape[1] // 2 + 1, ids.shape[1] + 1)):
            feeds = {**fixed, **cache, "input_ids": ids[:, start:end], "attention_mask": self.mask[:, :end]}
            outputs = _run(session, feeds)
            cache = {name.replace("present", "past_key_values"): value
                     for name, value in outputs.items() if name.startswith("present")}  # fmt: skip
            pieces.append({name: value for name, value in outputs.items() if not name.startswith("present")})
            start = end
        return _joined(pieces)

    def largest(self, ours: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> float:
        """The largest difference over the outputs that both have, at unit scale, at real tokens."""
        common = [name for name in ours if name in expected]
        assert common, f"nothing to compare: {list(ours)} and {list(expected)}"
        return max(self._difference(ours[name], expected[name]) for name in common)

    def _difference(self, ours: Tensor, theirs: Tensor) -> float:
        tokens = self.target if self._cross else self.ids
        along = ours.dim() > 1 and ours.shape[:2] == tokens.shape
        mask = self.mask if along and not self._cross else None
        return difference(ours, theirs, mask)


def _joined(pieces: list[Mapping[str, Tensor]]) -> Mapping[str, Tensor]:
    """Outputs per token, one piece after the other; of those per sequence, what the last piece gives is of it alone."""
    return {name: torch.cat([piece[name] for piece in pieces], 1)
            for name, value in pieces[0].items() if value.dim() == 3}  # fmt: skip


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
