"""All that a spec's model costs at some sizes: parameters, FLOPs, memory, and bounds on devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from specs.device import Device, load_device
from specs.errors import UserError, option_name
from specs.model import Model
from specs.stack import Stack as StackSpec
from specs.suggest import did_you_mean
from zoo.reports.costs import Costs, costs
from zoo.reports.devices import this_device
from zoo.reports.folding import Folded
from zoo.reports.memory import DTYPES, Cache, TrainingState, cache, stored_bytes
from zoo.reports.roles import Role, roles, ties
from zoo.reports.roofline import COMPUTED_IN, THIS, Demand, Roofline, Room, roofline
from zoo.reports.training import Training, training

USUAL = 1024
"""The tokens of a sequence where nothing is said of them, or as many as the model takes."""

OUTPUT_BYTES = 4
"""Of each value that a head gives: float32."""


@dataclass(frozen=True)
class Lengths:
    """The sizes that costs are told for: sequences at once, tokens, tokens before one more, tokens of an encoder."""

    batch: int
    length: int
    past: int
    source: int

    @classmethod
    def of(
        cls,
        spec: Model,
        batch: int = 1,
        length: int | None = None,
        past: int | None = None,
        source: int | None = None,
    ) -> Lengths:
        """The sizes given, with usual ones for those that are not.

        Raises :class:`specs.errors.UserError` for those that the model does not take, or has no use for.
        """
        if spec.decoder is None and past is not None:
            raise UserError(
                f"{option_name('past')} is of decoders, and {spec.name} is an encoder\n  value: {past}\n  leave it out"
            )
        if spec.architecture != "encoder-decoder" and source is not None:
            article = "an" if spec.architecture == "encoder" else "a"
            raise UserError(
                f"{option_name('source_length')} is of models with an encoder and a decoder, and {spec.name} is {article} {spec.architecture}\n"
                f"  value: {source}\n  {option_name('length')} would work"
            )
        last, first = spec.last_stack, spec.encoder or spec.last_stack
        tokens = _length(spec, last, option_name("length"), length)
        read = _length(spec, first, option_name("source_length"), source)
        room = spec.context_length_of(last)
        if past is None:
            past = min(tokens, room - 1) if room else tokens
        elif room and past > room - 1:
            raise UserError(_too_long(spec, option_name("past"), past, room - 1))
        return cls(batch, tokens, past, read)

    def symbols(self, stage: str) -> dict[str, int]:
        """The sizes of a stage by symbol."""
        tokens = {"T": 1, "P": self.past} if stage == "step" else {"T": self.length, "P": 0}
        return {"B": self.batch, "S": self.source, **tokens}

    def tokens(self, stage: str) -> int:
        """How many tokens a stage works on."""
        return self.batch * {"step": 1, "encode": self.source}.get(stage, self.length)


def _length(spec: Model, stack: StackSpec, option: str, given: int | None) -> int:
    most, fixed = spec.context_length_of(stack), not spec.embedding_of(stack).takes_tokens
    if given is None:
        return most if fixed and most else min(USUAL, most or USUAL)
    if fixed and given != most:
        raise UserError(
            f"{option} of {spec.name} is fixed: its embedding gives {most} vectors\n  value: {given}\n  leave it out"
        )
    if most and given > most:
        raise UserError(_too_long(spec, option, given, most))
    return given


def _too_long(spec: Model, option: str, given: int, most: int) -> str:
    return f"{option} must fit the context of {spec.name}\n  value: {given}\n  {most} or less would work"


@dataclass(frozen=True)
class Report:
    """What a model costs with its weights in a precision.  ``weights`` has the bytes of its file in every precision known."""

    spec: Model
    folded: Folded
    lengths: Lengths
    precision: str
    weights: Mapping[str, int]
    devices: tuple[Device, ...]

    @property
    def dtype(self) -> torch.dtype:
        """Of caches and activations."""
        return DTYPES[COMPUTED_IN[self.precision]]

    @cached_property
    def roles(self) -> list[Role]:
        """The parameters by role."""
        return roles(self.folded)

    @cached_property
    def costs(self) -> Costs:
        """FLOPs by stage and module."""
        return costs(self.spec)

    @cached_property
    def cache(self) -> Cache | None:
        """The caches of a decoder."""
        return cache(self.spec, self.dtype)

    @cached_property
    def training(self) -> Training:
        """FLOPs and activations of a training step."""
        return training(self.spec, self.dtype)

    @cached_property
    def state(self) -> TrainingState:
        """What a training step has beside activations."""
        return TrainingState.of(self.folded, self.dtype)

    @property
    def parameters(self) -> int:
        """All, each once."""
        return sum(role.parameters for role in self.roles)

    @property
    def active(self) -> int:
        """Those that a token meets."""
        return sum(role.active for role in self.roles)

    def demand(self, stage: str) -> Demand:
        """What a stage asks of a device: the experts of its tokens, weights and caches once."""
        costs, sizes, tokens = (
            self.costs.stages[stage],
            self.lengths.symbols(stage),
            self.lengths.tokens(stage),
        )
        values = sum(
            count * len(paths) * self._met(paths[0], tokens) for paths, count in costs.weights.groups()
        )
        size = values * self.weights[self.precision] / self.stored_values
        return Demand(costs.total_active.at(**sizes), round(size) + self._cached(stage), tokens)

    def _met(self, path: str, tokens: int) -> float:
        """The part of a weight that some tokens meet: all, or the experts that they choose as if by chance."""
        share = self.costs.share_of(path)
        return 1.0 if share is None else 1 - (1 - share[0] / share[1]) ** tokens

    @cached_property
    def stored_values(self) -> int:
        """How many values weights and buffers have, each stored once."""
        return stored_bytes(self.folded, torch.float32) // torch.float32.itemsize

    def _cached(self, stage: str) -> int:
        """The bytes of caches that a stage reads and writes."""
        batch, length, past, source = (
            self.lengths.batch, self.lengths.length, self.lengths.past, self.lengths.source
        )  # fmt: skip
        if self.cache is None:
            return 0
        match stage:
            case "encode":
                return self.cache.needed(batch, 0, source)
            case "prefill":
                return self.cache.needed(batch, length, source)
            case _:
                return self.cache.needed(batch, past, source) + self.cache.needed(batch, 1)

    def need(self, batch: int, length: int) -> int:
        """Bytes of memory that running takes: weights, caches, and what the head gives for a new token of each sequence.

        An encoder has no caches; one layer works at a time.
        """
        weights = self.weights[self.precision]
        if self.cache is not None:
            outputs = OUTPUT_BYTES * self.costs.stages["step"].outputs.at(B=batch, P=length)
            return weights + self.cache.needed(batch, length, self.lengths.source) + outputs
        sizes = {"B": batch, "T": length}
        layer = max(layer.at(**sizes) for layer in self.training.checkpointed.layers)
        return weights + layer + OUTPUT_BYTES * self.costs.stages["forward"].outputs.at(**sizes)

    @property
    def room(self) -> Room:
        """How much fits into memory."""
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
            at = self.lengths.symbols(name)
            stages[name]["at"] = {
                "matmul": stage.total.at(**at),
                "matmul_active": stage.total_active.at(**at),
                "other": stage.total_elements.at(**at),
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
            "memory": {"weights": dict(self.weights), **self._cache_dict()},
            "training": self._training_dict(),
            "devices": [each.as_dict() for each in self.rooflines],
        }

    def _cache_dict(self) -> dict[str, Any]:
        if self.cache is None:
            return {}
        tokens = max(self.lengths.length, self.lengths.past)
        at = (self.lengths.batch, tokens, self.lengths.source)
        return {
            "cache": {
                **self.cache.as_dict(),
                "bytes": self.cache.needed(*at),
                "held_bytes": self.cache.held(*at),
            }
        }

    def _training_dict(self) -> dict[str, Any]:
        at, found = self.lengths.symbols("train"), self.training
        return {
            **found.as_dict(),
            "state": self.state.as_dict(),
            "at": {
                "matmul": found.passes.total.at(**at),
                "matmul_active": found.active.total.at(**at),
                "matmul_checkpointed": found.passes.checkpointed.at(**at),
                "activations": found.activations.at(**at),
                "activations_unfused": found.unfused.at(**at),
                "activations_checkpointed": found.checkpointed.at(**at),
            },
        }


def report(
    spec: Model,
    lengths: Lengths | None = None,
    precision: str = "fp16",
    devices: Sequence[str] = (),
    weights: Mapping[str, int] | None = None,
) -> Report:
    """The report of a spec's model with its weights in a precision, on devices of some names or files, or ``this``.

    ``weights`` are the bytes of its file by precision; for halves and float32, where they are not given, those of its values alone.
    Raises :class:`specs.errors.UserError` for an unknown precision or device.
    """
    folded = Folded.of(spec)
    known = {name: stored_bytes(folded, dtype) for name, dtype in DTYPES.items()} | dict(weights or {})
    if precision not in known:
        raise UserError(f"there is no precision {precision!r}: {did_you_mean(precision, known)}")
    computed = COMPUTED_IN[precision]
    found = tuple(this_device(computed) if each == THIS else load_device(each) for each in devices)
    return Report(spec, folded, lengths or Lengths.of(spec), precision, known, found)
