"""Checkpoints in the layout that transformers 5 has in memory, which PEFT, FSDP and ``save_original_format=False`` write."""

from __future__ import annotations

import filecmp
from pathlib import Path

import torch
from torch import nn
from transformers import PreTrainedModel

from specs.model.model import Model
from tests.parity.reference import load


def check_in_memory_layout(
    reference: PreTrainedModel, spec: Model, ours: nn.Module, directory: Path, published: Path
) -> None:
    """Assert that every parameter read from that layout equals ours, read from the ``published`` one.

    A checkpoint of the same bytes is read the same, and was.
    """
    reference.save_pretrained(directory, save_original_format=False)
    names = [path.name for path in directory.iterdir()]
    if filecmp.cmpfiles(directory, published, names, shallow=False)[0] == names:
        return
    read = dict(load(spec, directory).named_parameters())
    for name, parameter in ours.named_parameters():
        assert torch.equal(read.pop(name), parameter), name
    assert not read
