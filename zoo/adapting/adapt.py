"""From a checkpoint to a checkpoint of a variant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from specs.base.errors import UserError, option_name
from specs.base.result_table import ResultTable
from specs.base.tabular import Tabular
from specs.model.model import Model
from zoo.adapting.layers import layer_sources, stack_sources
from zoo.adapting.plan import Origin, Plan, Planner
from zoo.builder import assemble
from zoo.checkpoints.carried import origin_of
from zoo.checkpoints.converting import DTYPES, CheckpointContents, Conversion, described_if_any
from zoo.checkpoints.open_weights import open_weights
from zoo.configs.named_model import checkpoint_spec, named_model, unknown_family
from zoo.configs.spec_beside import SPEC
from zoo.core.progress import Progress
from zoo.core.tensors import weight_tensors
from zoo.families.common.config import CONFIG
from zoo.weights.hub import located_adapter
from zoo.weights.lora import LoraAdapter
from zoo.weights.random import RandomWeights
from zoo.weights.source import WeightSource
from zoo.weights.stored import narrowed


@dataclass(frozen=True)
class Adaptation(Tabular):
    """A written checkpoint, and the origin of each of its tensors."""

    conversion: Conversion
    plan: Plan

    def table(self) -> ResultTable:
        """The origin of each tensor."""
        origins, unused = self.plan.origins, len(self.plan.unused)
        derived = sum(origin.rule is not None for origin in origins)
        title = f"{derived:,} of {len(origins):,} tensors derived, {unused:,} of the source unused"
        rows = [(origin.tensor, origin.text, ", ".join(origin.sources)) for origin in origins]
        name = self.conversion.class_name or "Checkpoint"
        return ResultTable(f"{name}: {title}", ("tensor", "rule", "sources"), rows)

    def as_dict(self) -> dict[str, object]:
        """The result as JSON data."""
        origins = [origin.as_dict() for origin in self.plan.origins]
        return {**self.conversion.as_dict(), "origins": origins, "unused": list(self.plan.unused)}


def source_spec(origin: Path, name: str | None, family: str | None) -> Model:
    """Return the spec of a checkpoint: the spec called ``name``, or else the one in its directory, whose config of an unknown
    type is read as a ``family``.

    Raises :class:`UserError` where it has none.
    """
    if name is not None:
        return named_model(name).spec
    unknown = unknown_family(str(origin), family) if (origin / CONFIG).is_file() else None
    if (spec := checkpoint_spec(origin, unknown)) is not None:
        return spec
    raise UserError(
        f"{origin} has no {CONFIG} and no {SPEC}, so its architecture is unknown\n"
        f"  Set {option_name('source')} to the spec of the weights."
    )


@dataclass(frozen=True)
class AdaptedModel:
    """A variant with weights derived from a checkpoint as far as rules allow, not yet computed."""

    contents: CheckpointContents
    plan: Plan
    dtype: str

    @staticmethod
    def of(
        spec: Model,
        weights: str,
        *,
        source: str | None = None,
        layers: Sequence[str] = (),
        model_type: str | None = None,
        dtype: str = "fp32",
        seed: int = 0,
        merge: str | None = None,
    ) -> AdaptedModel:
        """Find the origin of each tensor of a variant.

        ``source`` is the spec of the weights (default: that of their config), ``layers`` are lists of layers as for
        :func:`zoo.adapting.layers.layer_sources`. Weights that cannot be derived are drawn by the spec's recipe with ``seed``.
        The checkpoint is one of a family where one can express the spec, and otherwise has zoo's own names and no config.
        ``merge`` is the directory of a LoRA adapter of PEFT that is merged into the weights first. Raises :class:`UserError`.
        """
        origin = origin_of(weights)
        if not origin.exists():
            raise UserError(
                f"{weights!r} does not exist\n  Pass a checkpoint: a file, a directory with one, or a repository on the "
                "Hugging Face hub (org/name)."
            )
        old = source_spec(origin, source, model_type)
        stacks = stack_sources(old, spec)
        mapped = layer_sources(old, spec, stacks, layers)
        held, model = assemble(old), assemble(spec, DTYPES[dtype])
        adapter = None if merge is None else LoraAdapter.open(located_adapter(merge))
        stored = open_weights(weights, held, old, adapter=adapter)
        plan = Planner((old, held), (spec, model), stacks, mapped).plan()
        drawn = RandomWeights(model, spec, seed, DTYPES[dtype])
        adapted = AdaptedWeights(plan, model, held, stored, drawn, DTYPES[dtype])
        config = described_if_any(spec, origin, model_type)
        return AdaptedModel(CheckpointContents(spec, model, adapted, origin, config), plan, dtype)

    def write(self, directory: Path, progress: Progress = lambda stage: None) -> Adaptation:
        """Write the checkpoint into an empty directory; memory holds one tensor at a time, with those that it is made of."""
        return Adaptation(self.contents.write(directory, dtype=self.dtype, progress=progress), self.plan)


class AdaptedWeights(WeightSource):
    """The weights of ``model`` by a plan: from ``stored``, the weights of ``source``, in float32, or else from ``drawn``."""

    def __init__(
        self,
        plan: Plan,
        model: nn.Module,
        source: nn.Module,
        stored: WeightSource,
        drawn: RandomWeights,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.description = f"{stored.description}, adapted"
        self.dtype = dtype
        self._origins = {origin.tensor: origin for origin in plan.origins}
        self._shapes, self._sources = dict(weight_tensors(model)), dict(weight_tensors(source))
        self._stored, self._drawn = stored, drawn

    @torch.no_grad()
    def pieces(self, name: str) -> Iterator[Tensor]:
        origin = self._origins[name]
        if origin.rule is None:
            yield from self._drawn.pieces(name)
        else:
            values = origin.rule.apply(self._read(origin), lambda: self._draw(name))
            yield narrowed(values.reshape(-1), self.dtype, f"{self.description}: {name}")

    def _read(self, origin: Origin) -> Tensor:
        """The source's tensor, or the mean of several."""
        first, *others = (self._stored.whole(source, self._sources[source]) for source in origin.sources)
        return sum(others, first) / (1 + len(others)) if others else first

    def _draw(self, name: str) -> Tensor:
        return self._drawn.whole(name, self._shapes[name].float())
