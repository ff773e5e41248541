"""The weights in a checkpoint that a user names."""

from __future__ import annotations

import os
from pathlib import Path

import torch
from torch import nn

from specs.base.suggest import did_you_mean
from specs.model.model import Model
from zoo.checkpoints.families import family_of, module_files, text_model_files
from zoo.checkpoints.low_rank import merged_files
from zoo.checkpoints.source import CheckpointWeights
from zoo.checkpoints.token_scores import with_token_scores
from zoo.configs.recorded_spec import check_recorded_spec
from zoo.configs.reranking import scored_tokens
from zoo.families.common.tensors import Tensors
from zoo.packed.formats import unpacked_files
from zoo.weights.files import TensorFiles
from zoo.weights.hub import located
from zoo.weights.lora import LoraAdapter
from zoo.weights.names import METADATA
from zoo.weights.source import WeightError


def checkpoint_weights(
    argument: str, model: nn.Module, spec: Model, dtype: torch.dtype, adapter: LoraAdapter | None
) -> CheckpointWeights:
    """The weights in a file, a directory or a repository, with ``adapter`` merged into them.

    Raises :class:`WeightError` as :func:`zoo.checkpoints.open_weights.open_weights`.
    """
    argument = str(located(argument, weights=True))
    if not os.path.exists(argument):
        close = did_you_mean(argument, ("random", "none"))
        hint = f" ({close})" if close.startswith("did you mean") else ""
        raise WeightError(
            f"{argument!r} has no weights{hint}\n  Pass random, none, a file (.safetensors, .bin, .gguf), a directory with one, "
            "or a repository on the Hugging Face hub (org/name)."
        )
    if os.path.lexists(Path(argument) / METADATA):
        check_recorded_spec(Path(argument), spec)
    files, names = opened(argument, model, spec)
    if adapter is not None:
        files = merged_files(adapter, files, names, model, spec)
    return CheckpointWeights(files, names, model, spec, dtype)


def opened(argument: str, model: nn.Module, spec: Model) -> tuple[TensorFiles, Tensors]:
    """The tensors of the weights that a user names, and the table of their names. Raises :class:`WeightError`."""
    files = text_model_files(unpacked_files(TensorFiles.open(located(argument, weights=True))))
    names = family_of(files, model, spec)
    files = module_files(files, names)
    if spec.head.kind == "classification" and (tokens := scored_tokens(files.path)):
        files = with_token_scores(files, names, tokens)
    return files, names
