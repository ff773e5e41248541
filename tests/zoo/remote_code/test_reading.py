"""A checkpoint with a model's own code is read again, as any other."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import zoo
from specs.model.model import Model
from tests.thinned import one_in
from tests.zoo.stored import stored
from tests.zoo.tiny import BLOCK, bert, gpt2, t5
from zoo.families.common.config_errors import ConfigError

BATCH_NORM = {**BLOCK, "norm": {"kind": "batch_norm"}}
"""A block whose statistics are buffers."""


@one_in(4)
@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(gpt2(), id="tied"),
        pytest.param(gpt2(head={"kind": "language_modeling", "tie_embeddings": False}), id="scores"),
        pytest.param(gpt2(decoder={"layers": 2, "block": BATCH_NORM}), id="buffers"),
        pytest.param(gpt2(head={"kind": "none"}), id="body"),
        pytest.param(bert(head={"kind": "classification", "labels": 3}), id="labels"),
        pytest.param(
            bert(head={"kind": "masked_language_modeling", "norm": {"kind": "layer_norm"}}), id="transform"
        ),
        pytest.param(bert(head={"kind": "question_answering"}), id="span"),
        pytest.param(t5(), id="encoder-decoder"),
    ],
)
def test_zoo_reads_the_checkpoints_that_it_writes_with_code(spec: Model, tmp_path: Path) -> None:
    weights, code = stored(spec, tmp_path / "own"), tmp_path / "code"
    zoo.convert(spec, weights, code, remote_code=True)
    written = zoo.build(spec, str(weights)).state_dict()
    for described in (spec, str(code)):
        read = zoo.build(described, str(code)).state_dict()
        assert read.keys() == written.keys()
        assert all(torch.equal(read[name], values) for name, values in written.items())


def test_a_saved_model_without_its_spec_is_refused_with_the_file_to_copy(tmp_path: Path) -> None:
    spec = gpt2()
    zoo.convert(spec, "random", tmp_path / "code", remote_code=True)
    (tmp_path / "code" / "spec.yaml").unlink()
    with pytest.raises(ConfigError) as refused:
        zoo.load(str(tmp_path / "code"))
    assert str(refused.value) == (
        f"{tmp_path}/code/config.json: model_type: names a model with its own code, whose spec.yaml is missing\n"
        "  value: 'zoo'\n"
        f"  Copy spec.yaml from the directory that zoo convert wrote into {tmp_path}/code."
    )
    assert zoo.build(spec, str(tmp_path / "code")).state_dict()  # its weights need no config
