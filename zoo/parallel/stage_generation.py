"""Generation with the stages of a pipeline: each keeps the states of its own layers, and every process learns every token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import torch
import torch.distributed as dist
from torch import Tensor

from zoo.generation.generate import GenerationOptions, Prompts, check_generates, continued
from zoo.generation.prompts import check_prompts
from zoo.models.outputs import Outputs

if TYPE_CHECKING:
    from zoo.parallel.pipeline import StageModule


def generate(
    stage: StageModule, prompts: Prompts, max_new_tokens: int, **options: Unpack[GenerationOptions]
) -> list[list[int]]:
    """See :meth:`zoo.parallel.pipeline.StageModule.generate`."""
    check_generates(stage)
    check_prompts(stage.spec, stage.spec.stack("decoder"), prompts, room=1)

    def step(ids: Tensor, mask: Tensor, before: Outputs | None) -> Outputs:
        past = None if before is None else before.present_key_values
        x = ids if stage.first else _received(stage, ids)
        x, present = stage.continue_from(x, mask, past)
        if not stage.last:
            _send(stage, x)
        return Outputs({"logits": _from_last(stage, x, len(ids))}, present)

    return continued(stage, prompts, max_new_tokens, step, options, prompts)


def _send(stage: StageModule, x: Tensor) -> None:
    """Pass the stream on to the next stage, after its dtype."""
    group, following = stage.mesh.get_group(), stage.index + 1
    dist.send_object_list([x.dtype], group=group, group_dst=following)
    dist.send(x.contiguous(), group=group, group_dst=following)


def _received(stage: StageModule, ids: Tensor) -> Tensor:
    """The stream of the stage before, for ids B T: B T D."""
    group, before = stage.mesh.get_group(), stage.index - 1
    dtype: list[torch.dtype] = [torch.float32]
    dist.recv_object_list(dtype, group=group, group_src=before)
    x = torch.empty(*ids.shape, stage.spec.output_width, dtype=dtype[0], device=ids.device)
    dist.recv(x, group=group, group_src=before)
    return x


def _from_last(stage: StageModule, x: Tensor, batch: int) -> Tensor:
    """The logits of the last stage on every stage: B 1 vocabulary, in float32."""
    if stage.last:
        logits = x.float().contiguous()
    else:
        logits = torch.empty(batch, 1, stage.spec.vocab_size or 0, device=x.device)
    dist.broadcast(logits, group=stage.mesh.get_group(), group_src=stage.count - 1)
    return logits
