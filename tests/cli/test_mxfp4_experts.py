"""Experts in MXFP4 on a machine without CUDA: what an export says that it has not run, and the commands that refuse it."""

from __future__ import annotations

import json

import pytest

from exporters.target.providers import CPU, present
from exporters.target.targets import TARGETS
from tests.cli.program import done, invoke, refused
from tests.zoo.checkpoints.gpt_oss_checkpoint import write_gpt_oss

pytestmark = [
    pytest.mark.usefixtures("empty_directory"),
    pytest.mark.skipif(present(TARGETS["cuda"].providers) != [CPU], reason="a GPU is here"),
]


def test_files_for_cuda_alone_are_not_run_elsewhere(tmp_path):
    write_gpt_oss(tmp_path / "x")
    result = " ".join(
        done(
            "export", "x", "--target", "cuda", "--precision", "int4", "--rounding", "nearest", "-o", "out"
        ).split()
    )
    assert "6 MXFP4 weights: stored with the codes and scales of the checkpoint" in result
    assert "not tested on CUDA" in result
    assert "in place of CUDA's kernel for experts of 4-bit floats" in result
    assert json.loads((tmp_path / "out/export.json").read_text())["providers"] == ["CUDAExecutionProvider"]

    assert "zoo report out # parameters, sizes, FLOPs" in result
    assert "zoo run" not in result
    done("report", "out")

    told = refused("run", "out", "--ids", "1,2,3")
    assert "its experts are 4-bit floats (MXFP4), which only CUDAExecutionProvider reads" in told
    assert "export the model with --target cpu" in told

    again = invoke("verify", "out", "--provider", "cpu")
    assert again.exit_code == 1
    assert "out was not run: Only CUDAExecutionProvider runs its graphs." in again.stderr
