"""Stages of a pipeline: consecutive layers of an encoder or a decoder, the first with the embedding, the last with the head."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.pipelining.schedules import PipelineScheduleSingle

from specs.errors import UserError
from zoo import functional
from zoo.builder import ZooModel
from zoo.components.pooling import TokenSequence
from zoo.models.decoder import Decoder
from zoo.models.encoder import Encoder
from zoo.models.stack import Stack
from zoo.models.vision_language import VisionLanguage
from zoo.weights.ties import hold_ties_once, tied_names

Loss = Callable[[Tensor, Tensor], Tensor]

SCHEDULES: dict[str, type[PipelineScheduleSingle]] = {"1f1b": Schedule1F1B, "gpipe": ScheduleGPipe}


class Stage(nn.Module):
    """The layers of one process, under their names in the model.

    ``forward`` takes what the stage before returned, B T D, or the token ids, B T; the last returns the logits.
    """

    embedding: nn.Module | None
    head: nn.Module | None

    def __init__(self, model: Encoder | Decoder, mesh: DeviceMesh) -> None:
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
        stack: Stack = self.get_submodule(self.stack_name)  # type: ignore[assignment]
        length = x.shape[1]
        if attention_mask is None:
            positions = functional.positions_from(0, length, x)[None]
        else:
            positions = functional.token_positions(attention_mask, length)
        if self.embedding is not None:
            x = self.embedding(x, positions)
        context = stack.mixer_context(x, positions, positions, attention_mask, real=attention_mask)
        for layer in self.layers:
            x, _ = stack.blocks[layer](x, context, None, None)
        x = stack.final_norm(x)
        if self.head is None:
            return x
        logits: Tensor = self.head(x, TokenSequence(None, attention_mask))["logits"]
        return logits

    def schedule(
        self, microbatches: int, loss: Loss | None = None, kind: str = "1f1b"
    ) -> PipelineScheduleSingle:
        """A schedule of ``torch.distributed.pipelining``, ``1f1b`` or ``gpipe``: its ``step`` takes token ids on the first
        stage, and ``target`` on the last."""
        stage = PipelineStage(
            self, self.index, self.count, torch.device(self.mesh.device_type), group=self.mesh.get_group()
        )
        return SCHEDULES[kind](stage, microbatches, loss_fn=loss)


def stage_of(model: ZooModel, mesh: DeviceMesh) -> Stage:
    """This process's stage of a model, which is taken apart.

    Raises :class:`specs.errors.UserError` where a model has fewer layers than the pipeline has stages, several stacks, or
    weights that several stages would share.
    """
    degree = mesh.size()
    check_stages(model, degree)
    assert isinstance(model, Encoder | Decoder)
    return Stage(model, mesh)


def check_stages(model: ZooModel, degree: int) -> None:
    """Raise :class:`specs.errors.UserError` unless a model can be cut in so many stages."""
    if degree == 1:
        return
    where = f"value: pp={degree}"
    if not isinstance(model, Encoder | Decoder) or isinstance(model, VisionLanguage):
        raise UserError(
            f"architecture: a pipeline needs an encoder or a decoder of tokens, not {model.spec.architecture}\n"
            f"  {where}\n  Use dp or tp."
        )
    ((name, _),) = model.spec.stacks()
    stack: Stack = model.get_submodule(name)  # type: ignore[assignment]
    depth = len(stack.blocks)
    if depth < degree:
        fitting = " or ".join(str(each) for each in range(1, depth + 1) if depth % each == 0)
        raise UserError(
            f"{name}.layers: a pipeline needs a layer for each stage, and there are {depth}\n  {where}\n"
            f"  Use pp={fitting}."
        )
    shared = [
        *(
            f"head and embedding share {first}"
            for first in tied_names(model).values()
            if "blocks" not in first
        ),
        *([f"{name}.layers share a block"] if len(set(stack.blocks)) < depth else []),
        *(f"all layers share {name}.position.{leaf}" for leaf, _ in stack.position.named_parameters()),
        *([f"{name}.layer_sum reads all layers"] if stack.layer_sum is not None else []),
    ]
    if shared:
        raise UserError(
            f"{shared[0]}, and stages of a pipeline share no weights\n  {where}\n"
            "  Use dp or tp, or a spec with weights of their own, such as head.tie_embeddings: false."
        )
