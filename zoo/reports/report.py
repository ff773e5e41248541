"""The report of a model at some sizes: parameters, FLOPs, memory, and bounds on devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from specs.base.errors import UserError
from specs.base.result_table import ResultTable
from specs.base.suggest import suggestion
from specs.base.tabular import Tabular
from specs.files.device import Device, load_device
from specs.model.model import Model
from zoo.core.units import byte_text, total_and_active
from zoo.reports.costs import Costs, costs
from zoo.reports.devices import this_device
from zoo.reports.expert_reads import BATCHES, ExpertRead, expected_experts
from zoo.reports.folding import Folded
from zoo.reports.lengths import Lengths
from zoo.reports.memory import DTYPES, CacheSizes, TrainingState, cache, stored_bytes
from zoo.reports.roles import RoleParameters, active_parameters, roles, ties
from zoo.reports.roofline import COMPUTED_IN, THIS, Demand, Roofline, Room, roofline
from zoo.reports.training import Training, training

OUTPUT_BYTES = 4
"""Bytes of each output value: float32."""


@dataclass(frozen=True)
class Report(Tabular):
    """The costs of a model with weights in a precision. ``weights``: bytes of its file in each known precision."""

    spec: Model
    folded: Folded
    lengths: Lengths
    precision: str
    weights: Mapping[str, int]
    devices: tuple[Device, ...]

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of caches and activations."""
        return DTYPES[COMPUTED_IN[self.precision]]

    @cached_property
    def roles(self) -> list[RoleParameters]:
        """The parameters by role."""
        return roles(self.folded)

    @cached_property
    def costs(self) -> Costs:
        """FLOPs by stage and module."""
        return costs(self.spec)

    @cached_property
    def cache(self) -> CacheSizes | None:
        """The caches of a decoder."""
        return cache(self.folded, self.dtype)

    @cached_property
    def training(self) -> Training:
        """FLOPs and activations of a training step."""
        return training(self.spec, self.dtype)

    @cached_property
    def state(self) -> TrainingState:
        """The training state without activations."""
        return TrainingState.of(self.folded, self.dtype)

    def at(self, lengths: Lengths, precision: str, weights: Mapping[str, int]) -> Report:
        """The report of the same model at other sizes, which traces nothing again that this one has traced."""
        other = replace(self, lengths=lengths, precision=precision, weights=weights)
        kept = ("roles", "costs", *(("cache", "training", "state") if other.dtype == self.dtype else ()))
        other.__dict__.update({name: self.__dict__[name] for name in kept if name in self.__dict__})
        return other

    def knowing(self, **readings: Costs | Training) -> Report:
        """The same report with ``costs``, or with ``training`` in its dtype, that were read elsewhere."""
        other = self.at(self.lengths, self.precision, self.weights)
        other.__dict__.update(readings)
        return other

    @property
    def parameters(self) -> int:
        """All parameters, each once."""
        return sum(role.parameters for role in self.roles)

    @property
    def active(self) -> int:
        """The parameters that process each token: of experts, only the selected ones."""
        return active_parameters(self.folded)

    def table(self) -> ResultTable:
        """Parameters by role, and the size of the weights."""
        size = self.weights[self.precision]
        rows = [
            (
                role.name,
                f"{role.parameters:,}",
                f"{role.active:,}",
                f"{role.parameters / self.parameters:.1%}",
            )
            for role in self.roles
        ]
        return ResultTable(
            f"{self.spec.name}: {total_and_active(self.parameters, self.active)}, {byte_text(size)} in {self.precision}",
            ("role", "parameters", "active per token", "share"),
            rows,
        )

    def demand(self, stage: str) -> Demand:
        """FLOPs and bytes of a stage: weights and caches are read once, and of experts only those that its tokens select."""
        costs, sizes, tokens = (
            self.costs.stages[stage],
            self.lengths.symbols(stage),
            self.lengths.tokens(stage),
        )
        size = self._weights_read(stage, tokens) + self._cached(stage)
        return Demand(costs.total.at(**sizes), size, tokens)

    def _weights_read(self, stage: str, tokens: int) -> int:
        """The bytes of weights that a stage reads for some tokens: of experts, the expected number that they select."""
        values = sum(
            size if share is None else size * expected_experts(*share, tokens) / share[1]
            for share, size in self.costs.weights_by_share[stage].items()
        )
        return round(values * self.weights[self.precision] / self.stored_values)

    @property
    def expert_reads(self) -> list[ExpertRead]:
        """The weights that a decoder step reads, by batch size; empty without a mixture in a decoder."""
        if not self.costs.routed or "step" not in self.costs.stages:
            return []
        shares = dict.fromkeys(self.costs.routed.values())
        return [
            ExpertRead(
                batch,
                tuple((expected_experts(*share, batch), share[1]) for share in shares),
                self._weights_read("step", batch),
            )
            for batch in BATCHES
        ]

    @cached_property
    def stored_values(self) -> int:
        """The number of values in weights and buffers, each stored once."""
        return stored_bytes(self.folded, torch.float32) // torch.float32.itemsize

    def _cached(self, stage: str) -> int:
        """The bytes of caches that a stage reads and writes."""
        batch, length, past, source = (
            self.lengths.batch, self.lengths.length, self.lengths.past, self.lengths.source
        )  # fmt: skip
        if self.cache is None:
            return 0
        match stage:
            case "see":
                return 0
            case "encode":
                return self.cache.needed(batch, 0, source)
            case "prefill":
                return self.cache.needed(batch, length, source)
            case _:
                return self.cache.needed(batch, past, source) + self.cache.needed(batch, 1)

    def need(self, batch: int, length: int) -> int:
        """Bytes of memory for inference: weights, caches, and the head's output for one new token of each sequence.

        An encoder has no caches; the activations of one layer exist at a time.
        """
        weights = self.weights[self.precision]
        if self.cache is not None:
            outputs = OUTPUT_BYTES * self.costs.stages["step"].outputs.at(B=batch, P=length)
            return weights + self.cache.needed(batch, length, self.lengths.source) + outputs
        sizes = {"B": batch, "T": length}
        layer = max(layer.at(**sizes) for layer in self.training.checkpointed.layers)
        return weights + layer + OUTPUT_BYTES * self.costs.stages["forward"].outputs.at(**sizes)

    @property
    def estimated_operations(self) -> list[str]:
        """Operations without an entry in :mod:`zoo.ops`: their FLOPs and saved tensors are estimates."""
        return sorted({name for stage in self.costs.stages.values() for name in stage.estimated})

    @property
    def estimate_note(self) -> str | None:
        """A sentence that names these operations; None if every operation has an entry."""
        names = self.estimated_operations
        if not names:
            return None
        return f"Estimated FLOPs and activations: no entry in zoo.ops for {', '.join(names)}."

    @property
    def room(self) -> Room:
        """The memory need of sequences, to find how many fit."""
        longest = self.spec.context_length_of(self.spec.last_stack)
        return Room(self.need, self.lengths.batch, max(self.lengths.length, self.lengths.past), longest)

    @property
    def rooflines(self) -> list[Roofline]:
        """The bounds on every device."""
        demands = {stage: self.demand(stage) for stage in self.costs.stages}
        return [roofline(device, COMPUTED_IN[self.precision], demands, self.room) for device in self.devices]

    def as_dict(self) -> dict[str, Any]:
        """As JSON data; polynomials are lists of terms."""
        sizes = {"batch": self.lengths.batch, "length": self.lengths.length}
        if self.cache is not None:
            sizes["past"] = self.lengths.past
        if self.spec.architecture == "encoder-decoder":
            sizes["source_length"] = self.lengths.source
        stages = self.costs.as_dict()
        for name, stage in self.costs.stages.items():
            symbols = self.lengths.symbols(name)
            stages[name]["at"] = {
                "matmul": stage.total.at(**symbols),
                "roles": {role: part.at(**symbols) for role, part in self.costs.by_role(name).items()},
                "other": stage.total_elements.at(**symbols),
                **self.demand(name).as_dict(),
            }
        return {
            "name": self.spec.name,
            "precision": self.precision,
            "sizes": sizes,
            "parameters": {
                "total": self.parameters,
                "active": self.active,
                "roles": [role.as_dict() for role in self.roles],
                "tied": ties(self.folded),
            },
            "stages": stages,
            "estimated_operations": self.estimated_operations,
            "memory": {
                "weights": dict(self.weights),
                "step_reads": [item.as_dict() for item in self.expert_reads],
                **self._cache_dict(),
            },
            "training": self._training_dict(),
            "devices": [item.as_dict() for item in self.rooflines],
        }

    def _cache_dict(self) -> dict[str, Any]:
        if self.cache is None:
            return {}
        tokens = max(self.lengths.length, self.lengths.past)
        sizes = (self.lengths.batch, tokens, self.lengths.source)
        return {
            "cache": {
                **self.cache.as_dict(),
                "bytes": self.cache.needed(*sizes),
                "held_bytes": self.cache.held(*sizes),
            }
        }

    def _training_dict(self) -> dict[str, Any]:
        sizes, training = self.lengths.symbols("train"), self.training
        return {
            **training.as_dict(),
            "state": self.state.as_dict(),
            "at": {
                "matmul": training.passes.total.at(**sizes),
                "matmul_checkpointed": training.passes.checkpointed.at(**sizes),
                "activations": training.activations.at(**sizes),
                "activations_unfused": training.unfused.at(**sizes),
                "activations_checkpointed": training.checkpointed.at(**sizes),
            },
        }


def report(
    spec: Model,
    lengths: Lengths | None = None,
    precision: str = "fp16",
    devices: Sequence[str] = (),
    weights: Mapping[str, int] | None = None,
) -> Report:
    """The report of a spec's model with weights in a precision, on devices given by name or file, or ``this``.

    ``weights``: bytes of its file by precision; float precisions default to the bytes of the values.
    Raises :class:`specs.base.errors.UserError` for an unknown precision or device.
    """
    folded = Folded.of(spec)
    known = {name: stored_bytes(folded, dtype) for name, dtype in DTYPES.items()} | dict(weights or {})
    if precision not in known:
        raise UserError(f"Precision {precision!r} is unknown\n  {suggestion(precision, known)}")
    computed = COMPUTED_IN[precision]
    loaded = tuple(this_device(computed) if device == THIS else load_device(device) for device in devices)
    return Report(spec, folded, lengths or Lengths.of(spec), precision, known, loaded)
