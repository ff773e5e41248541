"""Judging: the files against the float model, what encoder-decoders say, and what each part costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from exporters.export import export
from exporters.exported.load_export import weights_of
from exporters.exported.model_source import model_source
from exporters.graph.precisions import PRECISIONS
from exporters.quality.blame import blame, layer_of, role_of
from exporters.quality.generated import generated
from exporters.quality.inputs import representative
from exporters.quality.judge import Speech, cases_of, input_batch, judge
from exporters.quality.quality import Quality
from exporters.quality.runners import Files, FloatModel
from exporters.runtime.exported import open_export
from exporters.runtime.text import find_text
from exporters.steps.options import ExportOptions
from exporters.steps.plan import Plan
from exporters.target.targets import TARGETS
from specs.base.errors import UserError
from specs.language.load import load
from tests.exporters.quality import checkpoints
from tests.thinned import one_in

SPEECH = Speech(0, [2])


def files(directory: Path, origin: Path, target: str = "portable", **options: Any) -> Files:
    """The files of an export of a checkpoint."""
    spec = model_source(str(origin)).spec
    settings = ExportOptions(target=target, weights=str(origin), verify=False, **options)
    export(spec, directory, settings)
    graphs = {directory / name: task for name, task in Plan.make(spec, settings).graph_paths.items()}
    return Files.open(graphs, spec, TARGETS[target], PRECISIONS[settings.precision])


def inputs(origin: Path) -> tuple:
    source = model_source(str(origin))
    model, _ = source.model()
    return source.spec, model, representative(source.spec, None, find_text(origin, None, needed=True))


@pytest.fixture(scope="module")
def origins(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("origins")
    return {name: getattr(checkpoints, name)(place / name) for name in ("llama", "bert", "t5")}


@one_in(6)
@pytest.mark.parametrize("target", ["portable", "cpu"])
@pytest.mark.parametrize("logits", ["all", "last"])
def test_float_files_are_the_model(
    origins: dict[str, Path], tmp_path: Path, target: str, logits: str
) -> None:
    spec, model, given = inputs(origins["llama"])
    found = judge(
        spec,
        given.judged[:2],
        files(tmp_path / "out", origins["llama"], target, logits=logits),
        FloatModel(model),
    ).figures
    assert found["kl"] < 1e-9
    assert found["top_token"] == 1
    assert found["perplexity"] == pytest.approx(found["reference_perplexity"], rel=1e-5)
    ids = torch.cat([window["input_ids"] for window in given.judged[:2]])
    with torch.no_grad():
        scores = model(ids).logits[:, :-1].flatten(0, 1)
    loss = torch.nn.functional.cross_entropy(scores, ids[:, 1:].flatten())
    assert found["perplexity"] == pytest.approx(float(loss.exp()), rel=1e-4)


@one_in(4)
@pytest.mark.parametrize("precision", ["fp16", "bf16", "int8", "int4"])
def test_every_precision_loses_something(origins: dict[str, Path], tmp_path: Path, precision: str) -> None:
    spec, model, given = inputs(origins["llama"])
    out = files(tmp_path / "out", origins["llama"], "cpu", precision=precision)
    found = judge(spec, given.judged[:2], out, FloatModel(model)).figures
    assert 1e-12 < found["kl"] < 0.1


@pytest.mark.slow
def test_figures_of_each_kind_of_text(origins: dict[str, Path], tmp_path: Path) -> None:
    spec, model, given = inputs(origins["llama"])
    out = files(tmp_path / "out", origins["llama"], "cpu", precision="int4")
    names = ["prose", "code", "prose"]
    figures, kinds = judge(spec, given.judged[:3], out, FloatModel(model), kinds=names)
    code = judge(spec, given.judged[1:2], out, FloatModel(model))
    assert code.kinds == {}
    assert kinds["code"] == code.figures
    assert figures["kl"] == pytest.approx((2 * kinds["prose"]["kl"] + kinds["code"]["kl"]) / 3, rel=1e-6)
    quality = Quality("three windows", "", figures, kinds=kinds)
    worst, value = quality.of_kinds()[0]
    assert value == max(kinds[worst]["kl"], kinds["prose"]["kl"], kinds["code"]["kl"])
    assert quality.as_dict()["kinds"] == kinds


@pytest.mark.slow
def test_vectors(origins: dict[str, Path], tmp_path: Path) -> None:
    spec, model, given = inputs(origins["bert"])
    same = judge(spec, given.judged[:3], files(tmp_path / "a", origins["bert"]), FloatModel(model)).figures
    assert same["least_cosine"] > 1 - 1e-6
    assert same["same_neighbours"] == 1
    rounded = files(tmp_path / "b", origins["bert"], precision="int4")
    found = judge(spec, given.judged[:3], rounded, FloatModel(model)).figures
    assert 0.8 < found["least_cosine"] <= found["cosine"] < 1 - 1e-5


@pytest.mark.slow
def test_figures_of_an_encoder_decoder(origins: dict[str, Path], tmp_path: Path) -> None:
    spec, model, given = inputs(origins["t5"])
    found = files(tmp_path / "a", origins["t5"])
    batches = [input_batch(spec, example) for example in given.judged[:4]]
    reference = FloatModel(model)
    with torch.inference_mode():
        for batch in batches:
            said = reference.greedy(batch, 0, [2], 8)
            assert found.greedy(batch, 0, [2], 8) == said  # from nothing
            assert found.greedy_near(batch, 0, [2], 8, said) == said  # from the right guess
            assert said == _greedy(model, batch, 8)
    figures = judge(spec, given.judged[:2], found, reference, SPEECH).figures
    assert figures["token_error_rate"] == 0
    assert figures["kl"] < 1e-9
    assert "perplexity" not in figures


def _greedy(model: torch.nn.Module, batch: Any, most: int) -> list[int]:
    """The same without a cache."""
    ids = [0]
    while len(ids) <= most:
        scores = model(batch.inputs, torch.tensor([ids]), batch.mask).logits[0, -1]
        ids.append(int(scores.argmax()))
        if ids[-1] == 2:
            break
    return ids[1:]


@pytest.mark.slow
def test_a_worse_file_has_worse_figures(origins: dict[str, Path], tmp_path: Path) -> None:
    spec, model, given = inputs(origins["t5"])
    other = checkpoints.t5(tmp_path / "other")
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter += 0.1 * torch.randn_like(parameter)
    figures = judge(spec, given.judged[:3], files(tmp_path / "out", other), FloatModel(model), SPEECH).figures
    assert figures["token_error_rate"] > 0
    assert figures["kl"] > 0.01


@pytest.mark.slow
def test_the_cost_of_each_part_is_measured(origins: dict[str, Path], tmp_path: Path) -> None:
    spec, model, given = inputs(origins["llama"])
    files(tmp_path / "out", origins["llama"], precision="int4")
    exported = open_export(tmp_path / "out")
    cases = list(cases_of(spec, given.judged[:2]))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}

    def costs(group_of) -> dict[str, float]:
        found = blame(spec, model, weights_of(exported, model), cases, group_of)
        assert [each.cost for each in found] == sorted((each.cost for each in found), reverse=True)
        return {each.part: each.cost for each in found}

    layers, roles, (every,) = costs(layer_of), costs(role_of), costs(lambda name: "all").values()
    assert {"decoder.blocks.0", "decoder.blocks.1", "embedding"} <= layers.keys()
    assert {"attention.query", "feed_forward.down"} <= roles.keys()
    assert every > max(layers.values()) > 0
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_the_layer_that_is_worst_is_named(origins: dict[str, Path]) -> None:
    spec, model, given = inputs(origins["llama"])
    cases = list(cases_of(spec, given.judged[:2]))
    stored = [
        (name, tensor + (0.1 if name.startswith("decoder.blocks.1.") else 0.001) * torch.randn_like(tensor))
        for name, tensor in model.named_parameters()
    ]
    assert blame(spec, model, stored, cases, layer_of)[0].part == "decoder.blocks.1"


@pytest.mark.slow
def test_generated_inputs_are_sampled_from_the_decoder(origins: dict[str, Path]) -> None:
    spec, model, _ = inputs(origins["llama"])
    found = generated(spec, model, 1)
    rows: Sequence[torch.Tensor] = [each["input_ids"] for each in [*found.calibration, *found.judged]]
    assert [tuple(row.shape) for row in rows] == [(1, 128)] * 12
    assert all(row[0, 0] == 1 for row in rows)
    assert len({tuple(row[0].tolist()) for row in rows}) == 12
    assert (
        len({int(row[0, 0]) for row in [each["input_ids"] for each in generated(spec, model, None).judged]})
        > 1
    )
    with torch.no_grad():
        scores = model(torch.cat([*rows])).logits[:, :-1].flatten(0, 1)
        loss = torch.nn.functional.cross_entropy(scores, torch.cat([*rows])[:, 1:].flatten())
        entropy = torch.distributions.Categorical(logits=scores).entropy().mean()
    assert float(loss) == pytest.approx(float(entropy), rel=0.05)  # as for what is drawn from the model


def test_models_without_figures_are_refused(origins: dict[str, Path], tmp_path: Path) -> None:
    spec, _, given = inputs(origins["bert"])
    with pytest.raises(UserError) as caught:
        judge(spec, given.judged, files(tmp_path / "out", origins["bert"]), None)
    assert str(caught.value).startswith(f"Judging {spec.name} needs a model to compare with, ")
    with pytest.raises(UserError, match="needs a head of kind language_modeling, to compare generated text"):
        judge(load("t5-small", ["head.kind=none"]), [], Files([], frozenset()), None)
