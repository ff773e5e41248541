"""How a model is cut, from the tables of its components."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torch import nn

from specs.base.errors import UserError
from specs.base.result_table import ResultTable
from specs.base.tabular import Tabular
from specs.model.model import Model
from zoo.builder import ZooModel, assemble
from zoo.components.attention import Projections
from zoo.components.block import Block
from zoo.core.facts import SHARDING
from zoo.core.sharding import Cut, Section
from zoo.core.tensors import weight_tensors
from zoo.models.stack import stacks_of
from zoo.models.vision_language import VisionLanguage

if TYPE_CHECKING:
    from torch.distributed.tensor.parallel import ParallelStyle


@dataclass(frozen=True)
class Count:
    """A number that the degree of tensor parallelism must divide: the module that states it, and its field."""

    path: str
    name: str
    value: int


@dataclass(frozen=True)
class ParallelPlan(Tabular):
    """The cuts of a model's modules and parameters by path, and what follows from them.

    ``counts`` are the numbers that a degree must divide, ``divided`` the attributes that count heads by the path of their
    component, ``last`` the layers whose sum is a component's output.  ``replicated`` are the weights that nothing cuts.
    """

    spec: Model
    cuts: dict[str, Cut]
    counts: tuple[Count, ...]
    divided: dict[str, dict[str, tuple[Section, ...]]]
    last: dict[str, str | None]
    blocks: dict[str, tuple[str, ...]]
    wrapped: tuple[str, ...]
    replicated: tuple[str, ...]
    norms: tuple[str, ...] = field(default=())
    edges: dict[str, tuple[bool, bool]] = field(default_factory=dict)
    mixing: tuple[str, ...] = ()

    def table(self) -> ResultTable:
        """The cut of each module and parameter."""
        degrees = ", ".join(map(str, self.degrees()))
        title = f"{self.spec.name}: {len(self.cuts):,} parts cut, tensor parallelism of degree {degrees}"
        return ResultTable(title, ("path", "cut"), [(path, cut.kind) for path, cut in self.cuts.items()])

    def degrees(self, most: int = 64) -> list[int]:
        """The degrees of tensor parallelism that fit, 1 among them."""
        return [
            degree for degree in range(1, most + 1) if not any(count.value % degree for count in self.counts)
        ]

    def check(self, degree: int) -> None:
        """Raise :class:`specs.base.errors.UserError` unless a degree of tensor parallelism divides all counts."""
        unfit = {(count.name, count.value): count for count in self.counts if count.value % degree}
        if unfit:
            counts = ", ".join(f"{name} ({value:,})" for name, value in unfit)
            fitting = " or ".join(map(str, self.degrees()))
            first = next(iter(unfit.values()))
            raise UserError(
                f"{first.path}: the degree of tensor parallelism must divide {counts}\n  value: tp={degree}\n"
                f"  Use tp={fitting}.{_remedy(unfit)}"
            )

    def tensor_parallel(self, degree: int, *, sequence: bool = False) -> dict[str, ParallelStyle]:
        """The plan for ``torch.distributed.tensor.parallel.parallelize_module``, by module.

        With ``sequence`` the stream between the layers is cut by tokens.  Raises as :meth:`check`.
        """
        from zoo.parallel.torch_plan import torch_plan

        self.check(degree)
        if sequence and self.mixing:
            raise UserError(
                f"{self.mixing[0]} reads more than the token at hand, so that the stream cannot be cut by tokens\n"
                "  value: sequence\n  Parallelize without it."
            )
        return torch_plan(self, sequence=sequence)

    def hugging_face(self, family: str | None = None) -> dict[str, Any]:
        """``tp_plan`` and ``pp_plan`` as in a config of transformers, with the module names of a family (default: the
        first whose config can say all of the spec)."""
        from zoo.parallel.hugging_face import hugging_face_plan

        return hugging_face_plan(self, family)

    @property
    def fsdp(self) -> dict[str, str]:
        """The settings that wrap blocks in Accelerate, by the names of its FSDP plugin."""
        return {
            "fsdp_version": "2",
            "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
            "fsdp_transformer_layer_cls_to_wrap": ",".join(self.wrapped),
        }

    @property
    def deepspeed(self) -> dict[str, Any]:
        """The block classes as ``no_split_module_classes`` and leaf modules of DeepSpeed's ZeRO-3."""
        return {"no_split_module_classes": [*self.wrapped], "stage3_leaf_modules": [*self.wrapped]}

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "cuts": {path: cut.kind for path, cut in self.cuts.items()},
            "counts": [
                {"path": count.path, "name": count.name, "value": count.value} for count in self.counts
            ],
            "degrees": self.degrees(),
            "wrapped": [*self.wrapped],
            "replicated": [*self.replicated],
        }


def _remedy(unfit: dict[tuple[str, int], Count]) -> str:
    sizes = [value for name, value in unfit if name == "vocab_size"]
    return " Or pad vocab_size, such as to a multiple of 128." if sizes else ""


def parallel_plan(spec: Model) -> ParallelPlan:
    """The plan of a spec's model."""
    return plan_of(assemble(spec))


def plan_of(model: ZooModel) -> ParallelPlan:
    """The plan of a model that is not cut yet."""
    cuts: dict[str, Cut] = {}
    counts: list[Count] = []
    divided: dict[str, dict[str, tuple[Section, ...]]] = {}
    last: dict[str, str | None] = {}
    for path, module in model.named_modules():
        table = SHARDING.of(module)()
        if table is None:
            continue
        counts += [Count(path, name, value) for name, value in table.counts.items()]
        last[path] = table.last
        if table.divided:
            divided[path] = dict(table.divided)
        for inside, cut in table.cuts.items():
            cuts |= dict.fromkeys(_existing(module, path, inside, cut), cut)
    blocks = {path: _parts(block) for path, block in blocks_of(model)}
    classes = {type(block).__name__ for _, block in blocks_of(model)}
    return ParallelPlan(
        model.spec,
        cuts,
        tuple(counts),
        divided,
        last,
        blocks,
        tuple(sorted(classes)),
        tuple(_uncut(model, cuts)),
        tuple(_norms(model)),
        dict(_edges(model)),
        tuple(_mixing(model)),
    )


def _existing(module: nn.Module, path: str, inside: str, cut: Cut) -> Iterator[str]:
    """The full paths of a module or a parameter, and of all modules in one that is shared; none where it does not exist."""
    modules, parameters = dict(module.named_modules()), dict(module.named_parameters())
    if inside in parameters:
        yield _joined(path, inside)
    if inside not in modules:
        return
    nested = cut.kind == "shared"
    for name, inner in (
        modules[inside].named_modules(prefix=inside) if nested else [(inside, modules[inside])]
    ):
        if not isinstance(inner, nn.Identity) and (name == inside or inner._parameters):
            yield _joined(path, name)


def _joined(*parts: str) -> str:
    return ".".join(part for part in parts if part)


def _parts(block: Block) -> tuple[str, ...]:
    """The branches of a block: its mixers, its attention to an encoder, its feed-forward."""
    names = ("attention", "mixer", "cross_attention", "feed_forward")
    return tuple(name for name in names if block._modules.get(name) is not None)


def _norms(model: nn.Module) -> Iterator[str]:
    """The modules with parameters of their own that act on the stream inside blocks, token by token."""
    for path, block in blocks_of(model):
        for name, child in block.named_children():
            if name not in _parts(block) and any(True for _ in child.parameters()):
                yield f"{path}.{name}"


def _mixing(model: nn.Module) -> Iterator[str]:
    """The parts of blocks beside branches, norms and scales, which may read other tokens or inputs of the stack, and what reads
    the stream between blocks."""
    for path, block in blocks_of(model):
        attention = block.attention
        for name, child in block.named_children():
            known = name in _parts(block) or name.endswith(("norm", "_scale"))
            if not known and any(True for _ in child.parameters()):
                yield f"{path}.{name}"
        if (
            isinstance(attention, Projections)
            and attention.query.in_features != attention.output.out_features
        ):
            yield f"{path}.attention"
    if isinstance(model, VisionLanguage) and len(
        model.deep_connectors
    ):  # which read the outputs of layers in between
        yield "deep_connectors"


def _edges(model: nn.Module) -> Iterator[tuple[str, tuple[bool, bool]]]:
    """Whether each block receives the whole stream, and whether it returns it; shared blocks do both."""
    for name, stack in stacks_of(model).items():
        layers = list(stack.blocks)
        alone = len(set(layers)) < len(layers) or stack.sums_layers
        for layer, _ in enumerate(layers):
            yield f"{name}.blocks.{layer}", (alone or layer == 0, alone or layer == len(layers) - 1)


def _uncut(model: nn.Module, cuts: dict[str, Cut]) -> Iterator[str]:
    """The weights that every process holds: the innermost cut of a weight decides."""
    for name, _ in weight_tensors(model):
        parts = name.split(".")
        places = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
        cut_path = next((path for path in places if path in cuts), None)
        if cut_path is None or _is_kept(cuts[cut_path], bias=name == f"{cut_path}.bias"):
            yield name


def _is_kept(cut: Cut, *, bias: bool) -> bool:
    """Whether every process holds a weight under a cut: whole copies, and the biases of sums."""
    whole = cut.kind in ("shared", "read_by_all", "gathered", "sliced")
    return whole or bool(cut.sections) or (bias and cut.kind in ("rows", "summed"))


def blocks_of(model: nn.Module) -> Iterator[tuple[str, Block]]:
    """The blocks of a model by path."""
    return ((path, module) for path, module in model.named_modules() if isinstance(module, Block))
