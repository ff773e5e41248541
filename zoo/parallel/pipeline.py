"""Stages of a pipeline: consecutive layers of an encoder or a decoder, the first with the embedding, the last with the head."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Unpack

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.pipelining.schedules import PipelineScheduleSingle

from specs.base.errors import UserError
from zoo import functional
from zoo.builder import ZooModel
from zoo.components.mixer import State
from zoo.components.per_layer_embedding import PerLayerEmbedding
from zoo.components.pooling import TokenSequence
from zoo.generation.generate import GenerationOptions, Prompts
from zoo.models.stack import Stack
from zoo.models.token_positions import TokenPositions
from zoo.parallel.stage_generation import generate
from zoo.weights.ties import hold_ties_once, tied_names

Loss = Callable[[Tensor, Tensor], Tensor]

SCHEDULES: dict[str, type[PipelineScheduleSingle]] = {"1f1b": Schedule1F1B, "gpipe": ScheduleGPipe}


class StageModule(nn.Module):
    """The layers of one process, under their names in the model.

    ``forward`` takes what the stage before returned, B T D, or the token ids, B T; the last returns the logits.
    """

    embedding: nn.Module | None
    head: nn.Module | None

    def __init__(self, model: ZooModel, mesh: DeviceMesh) -> None:
        super().__init__()
        self.spec, self.mesh = model.spec, mesh
        self.index, self.count = mesh.get_local_rank(), mesh.size()
        ((self.stack_name, _),) = model.spec.stacks()
        for name, child in model.named_children():
            self.add_module(name, child)
        stack: Stack = self.get_submodule(self.stack_name)  # type: ignore[assignment]
        depth = len(stack.blocks)
        self.layers = range(depth * self.index // self.count, depth * (self.index + 1) // self.count)
        for layer in range(depth):
            if layer not in self.layers:
                stack.blocks._modules[str(layer)] = None  # type: ignore[assignment]
        if not self.first:
            self.embedding = None
        if not self.last:
            self.head, stack.final_norm = None, nn.Identity()
        hold_ties_once(self)

    @property
    def first(self) -> bool:
        """Whether it reads the token ids."""
        return self.index == 0

    @property
    def last(self) -> bool:
        """Whether it returns the logits."""
        return self.index == self.count - 1

    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """x: token ids, B T, or the stream, B T D; attention_mask: B T -> the stream, B T D, or the logits."""
        return self._through(x, attention_mask)[0]

    def continue_from(
        self, x: Tensor, attention_mask: Tensor, past: list[State] | None
    ) -> tuple[Tensor, list[State]]:
        """The output of ``forward`` for new tokens, with the logits of the last alone, and the states of the stage's layers.

        attention_mask: B (P + T), past: the states that an earlier call returned.
        """
        return self._through(x, attention_mask, past, last_only=True)

    def _through(
        self,
        x: Tensor,
        attention_mask: Tensor | None,
        past: list[State] | None = None,
        *,
        last_only: bool = False,
    ) -> tuple[Tensor, list[State]]:
        stack: Stack = self.get_submodule(self.stack_name)  # type: ignore[assignment]
        length = x.shape[1]
        if attention_mask is None:
            positions = keys = functional.positions_from(0, length, x)[None]
            real = None
        else:
            positions = functional.token_positions(attention_mask, length)
            keys = functional.token_positions(attention_mask, attention_mask.shape[1])
            real = functional.last(attention_mask, length)
        if self.embedding is not None:
            x = self.embedding(x, positions)
        context = stack.mixer_context(x, TokenPositions(positions, real, attention_mask), keys)
        present: list[State] = []
        for index, layer in enumerate(self.layers):
            x, state = stack.blocks[layer](x, context, None if past is None else past[index], None)
            present.append(state)
        x = stack.final_norm(x)
        if self.head is None:
            return x, present
        x, real = (x[:, -1:], None) if last_only else (x, real)
        logits: Tensor = self.head(x, TokenSequence(None, real))["logits"]
        return logits, present

    def generate(
        self, prompts: Prompts, max_new_tokens: int = 20, **options: Unpack[GenerationOptions]
    ) -> list[list[int]]:
        """The tokens that follow each prompt, a list of ids, on every stage: all call it with the same arguments.

        The arguments are as for :func:`zoo.generation.generate.generate`.
        """
        return generate(self, prompts, max_new_tokens, **options)

    def schedule(
        self, microbatches: int, loss: Loss | None = None, kind: str = "1f1b"
    ) -> PipelineScheduleSingle:
        """A schedule of ``torch.distributed.pipelining``, ``1f1b`` or ``gpipe``: its ``step`` takes token ids on the first
        stage, and ``target`` on the last."""
        stage = PipelineStage(
            self, self.index, self.count, torch.device(self.mesh.device_type), group=self.mesh.get_group()
        )
        return SCHEDULES[kind](stage, microbatches, loss_fn=loss)


def stage_of(model: ZooModel, mesh: DeviceMesh) -> StageModule:
    """This process's stage of a model, which is taken apart.

    Raises :class:`specs.base.errors.UserError` where a model has fewer layers than the pipeline has stages, several stacks, or
    weights that several stages would share.
    """
    degree = mesh.size()
    check_stages(model, degree)
    return StageModule(model, mesh)


def check_stages(model: ZooModel, degree: int) -> None:
    """Raise :class:`specs.base.errors.UserError` unless a model can be cut in ``degree`` stages."""
    if degree == 1:
        return
    where = f"value: pp={degree}"
    if not model.in_stages:
        raise UserError(
            f"architecture: a pipeline needs an encoder or a decoder of tokens, not {model.spec.architecture}\n"
            f"  {where}\n  Use dp or tp."
        )
    ((name, _),) = model.spec.stacks()
    stack: Stack = model.get_submodule(name)  # type: ignore[assignment]
    depth = len(stack.blocks)
    if depth < degree:
        fitting = " or ".join(str(count) for count in range(1, depth + 1) if depth % count == 0)
        raise UserError(
            f"{name}.layers: a pipeline needs a layer for each stage, and there are {depth}\n  {where}\n"
            f"  Use pp={fitting}."
        )
    blocks = dict(model.spec.stacks())[name].layer_blocks()
    reading = [layer for layer, block in enumerate(blocks) if block.reads_embedding]
    if reading:
        raise UserError(
            f"{name}.blocks.{reading[0]}: a stage of a pipeline does not pass the embedding on, which this block reads\n"
            f"  {where}\n  Use dp or tp."
        )
    shared = list(_across_stages(model, name, stack))
    if shared:
        raise UserError(
            f"{shared[0]}, and stages of a pipeline share no weights\n  {where}\n"
            "  Use dp or tp, or a spec with weights of their own, such as head.tie_embeddings: false."
        )


def _across_stages(model: ZooModel, name: str, stack: Stack) -> Iterator[str]:
    """The weights and inputs that layers of a stack, or the embedding and the head, share."""
    if len(set(stack.blocks)) < len(stack.blocks):
        yield f"{name}.layers share a block"
    yield from (f"{name}.{tie}" for tie in stack.ties_between_layers())
    blocks = model.spec.last_stack.layer_blocks()
    if any(mixer.reads_first_layer for block in blocks for mixer in block.mixers):
        yield f"{name}.layers read the values of the first"
    if any(isinstance(module, PerLayerEmbedding) for module in stack.modules()):
        yield f"{name}.layers embed the tokens of the first stage"
    for other, first in tied_names(model).items():
        if "blocks" not in first:
            yield f"head and embedding share {first}"
        elif _layer(other) != _layer(first):
            yield f"{other} is {first}"
    for leaf, _ in stack.position.named_parameters():
        yield f"all layers share {name}.position.{leaf}"


def _layer(path: str) -> str:
    """The layer of a weight of a stack, such as ``decoder.blocks.3``."""
    return ".".join(path.split(".")[:3])
