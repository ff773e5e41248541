"""A model on a mesh of devices, on paper: bytes per device, bytes that it sends in a step, and what bounds the step.

Devices are counted from the innermost dim on: tp, then dp, then pp; the dims that fit into a node use its links, the others the
network.  Collectives are rings: an all-reduce among n sends 2 (n - 1) / n of its tensor, a gather or a scatter half of that.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

from torch import nn

from specs.base.errors import UserError
from specs.files.device import Device
from specs.model.model import Model
from zoo.builder import assemble
from zoo.models.stack import stacks_of
from zoo.parallel.mesh import check_names
from zoo.parallel.plan import ParallelPlan, blocks_of, plan_of
from zoo.parallel.stage_limits import check_stages
from zoo.reports.folding import Folded
from zoo.reports.memory import DTYPES, CacheSizes, cache
from zoo.reports.roofline import COMPUTED_IN, best_rate
from zoo.reports.training import Training, training

Work = Literal["train", "serve"]
Sizes = Counter[tuple[int, bool]]
"""The number of parameters by size and by whether every tp rank holds them whole."""
FULL = 4
"""Bytes of a value of Adam's moments, and of the copy of weights in half precision."""
ORDER = ("tp", "dp", "pp")
"""The dims from the innermost on."""
ROOM = 0.9
"""The fraction of a device's memory that a mesh may fill: buffers of collectives and fragments need the rest."""


@dataclass(frozen=True)
class Traffic:
    """The traffic of a device in a step along one dim: bytes, the link that they take, and seconds, if its bandwidth is known."""

    dim: str
    what: str
    bytes: int
    link: Literal["node", "network"]
    seconds: float | None


@dataclass(frozen=True)
class OnPaper:
    """A model of which every dp group processes ``batch`` sequences of ``length`` tokens in a step."""

    model: ModelOnPaper
    degrees: Mapping[str, int]
    device: Device
    batch: int
    length: int

    @property
    def devices(self) -> int:
        """The number of devices."""
        return math.prod(self.degrees.values())

    def __getitem__(self, dim: str) -> int:
        return self.degrees.get(dim, 1)

    @property
    def microbatches(self) -> int:
        """The parts of a batch that pass through a pipeline one after the other; 1 without one."""
        return self.batch if self["pp"] > 1 else 1

    @cached_property
    def stage(self) -> int:
        """The values of the weights of the largest stage, of which a tp rank holds its part."""
        return max(self.model.stages(self["tp"], self["pp"]))

    @cached_property
    def memory(self) -> dict[str, int]:
        """Bytes of training by device, by what they are for."""
        model, own, share = self.model, -(-self.stage // self["dp"]), 1 / self["pp"]
        size = DTYPES[model.precision].itemsize
        sizes = {"B": self.batch // self.microbatches, "T": self.length, "S": self.length}
        inputs = model.training.checkpointed.kept.at(**sizes) * share * min(self["pp"], self.microbatches)
        layer = max(layer_bytes.at(**sizes) for layer_bytes in model.training.checkpointed.layers)
        return {
            "weights": own * size,
            "gradients": own * size,
            "adam_moments": 2 * own * FULL,
            "master_weights": own * FULL if size < FULL else 0,
            "gathered_blocks": 2 * model.largest_block(self["tp"]) * size if self["dp"] > 1 else 0,
            "activations": round((inputs + layer) / self["tp"]),
        }

    @cached_property
    def serving(self) -> dict[str, int]:
        """Bytes of serving by device: dp groups hold a copy each."""
        cached = (
            0 if self.model.cache is None else self.model.cache.needed(self.batch, self.length, self.length)
        )
        size = DTYPES[self.model.precision].itemsize
        return {"weights": self.stage * size, "cache": round(cached / self["tp"] / self["pp"])}

    def bytes_of(self, work: Work) -> int:
        """Bytes by device."""
        return sum((self.memory if work == "train" else self.serving).values())

    def fits(self, work: Work) -> bool:
        """Whether a device has room."""
        return self.bytes_of(work) <= ROOM * self.device.memory

    @cached_property
    def traffic(self) -> list[Traffic]:
        """The traffic of a device in a training step, by dim."""
        model, size = self.model, DTYPES[self.model.precision].itemsize
        tokens, dp, tp, pp = self.batch * self.length, self["dp"], self["tp"], self["pp"]
        traffic = []
        if dp > 1:
            moved = self.stage * size * (dp - 1) / dp
            traffic.append(
                self._sent("dp", "gather weights twice, scatter gradients", 3 * moved * self.microbatches)
            )
        if tp > 1:
            widths = model.summed_widths / pp
            traffic.append(
                self._sent(
                    "tp", "sum outputs, and gradients of inputs", 2 * (tp - 1) / tp * widths * tokens * size
                )
            )
        if pp > 1:
            stream = self.model.plan.spec.output_width * tokens * FULL
            traffic.append(self._sent("pp", "the stream, and its gradient", 2 * stream))
        return traffic

    def _sent(self, dim: str, what: str, moved: float) -> Traffic:
        inner = math.prod(self[other] for other in ORDER[: ORDER.index(dim) + 1])
        inside = inner <= self.device.per_node
        bandwidth = self.device.link if inside else self.device.network
        seconds = None if bandwidth is None else moved / bandwidth
        return Traffic(dim, what, round(moved), "node" if inside else "network", seconds)

    @property
    def computing(self) -> float | None:
        """The least seconds of the matrix products of a step, with layers computed again; None if the device's speed is
        unknown."""
        rate = best_rate(self.device, COMPUTED_IN[self.model.precision])
        sizes = {"B": self.batch, "T": self.length, "S": self.length}
        products = self.model.training.passes.checkpointed.at(**sizes)
        return None if rate is None else products / rate / self["tp"] / self["pp"]

    @property
    def idle(self) -> float:
        """The fraction of a pipeline's time in which a stage waits."""
        stages = self["pp"] - 1
        return stages / (self.microbatches + stages)

    @property
    def bound(self) -> tuple[float, str]:
        """The least seconds of a step, and what it is bounded by: everything else may overlap with it."""
        times = {traffic.dim: traffic.seconds for traffic in self.traffic if traffic.seconds is not None}
        if self.computing is not None:
            times["compute"] = self.computing / (1 - self.idle)
        longest = max(times, key=lambda name: times[name], default="nothing known")
        return times.get(longest, 0.0), longest

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        seconds, bound = self.bound
        return {
            "mesh": dict(self.degrees),
            "devices": self.devices,
            "device": self.device.name,
            "precision": self.model.precision,
            "batch": self.batch,
            "length": self.length,
            "memory": self.memory,
            "total": self.bytes_of("train"),
            "fits": self.fits("train"),
            "serving": self.serving,
            "fits_serving": self.fits("serve"),
            "traffic": [asdict(traffic) for traffic in self.traffic],
            "computing": self.computing,
            "idle": self.idle,
            "step_seconds": seconds,
            "bound": bound,
        }


class ModelOnPaper:
    """The figures that all meshes share: plan, cache and activations of a spec in a precision."""

    def __init__(self, spec: Model, precision: str) -> None:
        if precision not in DTYPES:
            raise UserError(
                f"Meshes are for weights in floating point.\n  value: {precision}\n  Use {', '.join(DTYPES)}."
            )
        self.precision, self.built = precision, assemble(spec)
        self.plan: ParallelPlan = plan_of(self.built)
        self._whole = set(self.plan.replicated)
        self._refusals: dict[int, str | None] = {}

    @cached_property
    def training(self) -> Training:
        """The costs of a training step."""
        return training(self.plan.spec, DTYPES[self.precision])

    @cached_property
    def cache(self) -> CacheSizes | None:
        """The caches of a decoder."""
        return cache(Folded.of(self.plan.spec), DTYPES[self.precision])

    def on(self, degrees: Mapping[str, int], device: Device, batch: int, length: int) -> OnPaper:
        """The model on a mesh. Raises :class:`specs.base.errors.UserError` for dims and degrees that do not fit."""
        named = check_names(degrees)
        self.plan.check(named.get("tp", 1))
        self._check_stages(named.get("pp", 1))
        return OnPaper(self, named, device, batch, length)

    def _check_stages(self, degree: int) -> None:
        """Check a number of stages once: hundreds of meshes have the same."""
        if degree not in self._refusals:
            self._refusals[degree] = None
            try:
                check_stages(self.built, degree)
            except UserError as error:
                self._refusals[degree] = error.text
        if (text := self._refusals[degree]) is not None:
            raise UserError(text)

    @staticmethod
    def _held(sizes: Sizes, tp: int) -> int:
        """The values that a tp rank holds of parameters of these sizes."""
        return sum(count * (size if whole else -(-size // tp)) for (size, whole), count in sizes.items())

    @cached_property
    def _places(self) -> dict[tuple[str, int], Sizes]:
        """The sizes of the parameters of each layer, by its stack, and of those before (-1) and after (-2) the layers."""
        places: dict[tuple[str, int], Sizes] = defaultdict(Counter)
        for name, parameter in self.built.named_parameters():
            stack, _, rest = name.partition(".blocks.")
            last = name.startswith("head.") or ".final_norm." in name
            key = (stack, int(rest.partition(".")[0])) if rest else ("", -2 if last else -1)
            places[key][parameter.numel(), name in self._whole] += 1
        return places

    def stages(self, tp: int, pp: int) -> list[int]:
        """The values that a tp rank of each stage holds: the first has the embedding, the last the head."""
        sums = [0] * pp
        depths = {name: len(stack.blocks) for name, stack in stacks_of(self.built).items()}
        for (stack, layer), sizes in self._places.items():
            if layer >= 0:
                stage = next(i for i in range(pp) if layer < depths[stack] * (i + 1) // pp)
            else:
                stage = pp - 1 if layer == -2 else 0
            sums[stage] += self._held(sizes, tp)
        return sums

    @cached_property
    def _blocks(self) -> list[Sizes]:
        """The sizes of the parameters of each block."""
        return [
            Counter(
                (parameter.numel(), f"{path}.{name}" in self._whole)
                for name, parameter in block.named_parameters()
            )
            for path, block in blocks_of(self.built)
        ]

    def largest_block(self, tp: int) -> int:
        """The values of the largest block that a tp rank holds."""
        return max(self._held(sizes, tp) for sizes in self._blocks)

    @cached_property
    def summed_widths(self) -> int:
        """The widths of all vectors per token that are summed in a step: outputs, twice as layers are computed again, and
        gradients of inputs."""
        total, modules = 0, dict(self.built.named_modules(remove_duplicate=False))  # stacks may share a table
        for path, cut in self.plan.cuts.items():
            module = modules.get(path)
            inside = ".blocks." in path
            if cut.kind in ("rows", "summed") and isinstance(module, nn.Linear):
                total += module.out_features * (2 if inside else 1) * (2 if cut.kind == "summed" else 1)
            elif cut.kind == "columns" and isinstance(module, nn.Linear):
                total += module.in_features
            elif cut.kind == "experts":
                total += 3 * self.plan.spec.output_width
            elif cut.kind == "vocabulary":
                total += module.in_features if isinstance(module, nn.Linear) else module.embedding_dim  # type: ignore[union-attr]
        return total
