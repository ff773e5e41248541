"""Stages of a pipeline: consecutive layers of an encoder or a decoder, the first with the embedding, the last with the head."""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.pipelining.schedules import PipelineScheduleSingle

from zoo import functional
from zoo.builder import ZooModel
from zoo.components.mixer import State
from zoo.components.pooling import TokenSequence
from zoo.generation.generate import GenerationOptions, Prompts
from zoo.models.stack import Stack
from zoo.models.token_positions import TokenPositions
from zoo.parallel.stage_generation import generate
from zoo.parallel.stage_limits import check_stages
from zoo.weights.ties import hold_ties_once

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
