"""Meshes on paper."""

from __future__ import annotations

import re

import pytest

import zoo
from specs.base.errors import UserError
from specs.files.device import load_device
from specs.language.load import load
from tests.cli.program import as_json, done, refused
from tests.parallel.models import MODELS
from tests.thinned import one_in
from zoo.parallel.on_paper import ModelOnPaper, Work
from zoo.parallel.smallest_mesh import mesh_degrees, smallest, splits


def test_seventy_billion_parameters_on_64_devices() -> None:
    found = as_json(
        "report", "llama-3-70b", "--mesh", "dp=8,tp=8", "--device", "h100", "--precision", "bf16", "--batch", "8",
        "--length", "4096",
    )  # fmt: skip
    assert found["devices"] == 64
    parameters = zoo.load("llama-3-70b").expect.parameters
    assert parameters is not None
    assert abs(found["memory"]["weights"] / (2 * parameters / 64) - 1) < 1e-3  # the norms are whole
    assert found["memory"]["adam_moments"] == 4 * found["memory"]["weights"]
    gathered, summed = found["traffic"]
    assert gathered["bytes"] == pytest.approx(3 * found["memory"]["weights"] * 7, rel=1e-6)
    # Two sums of the layers' outputs, computed twice, three and two gradients of inputs, the embedding and the head.
    widths = (80 * (2 * 2 + 3 + 2) + 2) * 8192
    assert summed["bytes"] == 2 * 7 / 8 * widths * 8 * 4096 * 2
    assert (gathered["link"], summed["link"], found["bound"]) == ("network", "node", "compute")


def test_stages_wait_for_each_other() -> None:
    mesh = ModelOnPaper(zoo.load("llama-3-70b"), "bf16").on({"pp": 4}, load_device("h100"), 12, 1024)
    assert mesh.idle == 3 / 15
    assert sum(mesh.model.stages(1, 4)) == sum(each.numel() for each in mesh.model.built.parameters())


@one_in(2)
@pytest.mark.parametrize("work", ["train", "serve"])
def test_the_smallest_mesh_has_room_and_half_of_it_has_not(work: Work) -> None:
    model, device = ModelOnPaper(zoo.load("llama-3-70b"), "bf16"), load_device("h100")
    found = smallest(model, device, 1, 4096, work)
    assert found.fits(work)
    assert found.devices == {"train": 16, "serve": 2}[work]
    total = 70_553_706_496 * {"train": 16, "serve": 2}[work]
    assert total > 0.9 * device.memory * found.devices / 2


def test_the_tables_name_memory_traffic_and_bound() -> None:
    result = done(
        "report", "tiny-gpt", "--set", "vocab_size=64", "--mesh", "dp=2,tp=2", "--device", "h100", "-v"
    )
    for text in (
        "dp=2,tp=2, 4 x h100",
        "Memory per device: 80.0 GB each",
        "gather weights twice",
        "Training step",
    ):
        assert text in result


WRONG = [
    (("--mesh", "dp=2,xp=4"), "The dims of a mesh must be named dp, tp, pp."),
    (("--mesh", "dp=two"), "Write it as dp=8,tp=4,pp=2."),
    (("--mesh", "tp=5"), "the degree of tensor parallelism must divide"),
    (("--mesh", "pp=64"), "a pipeline needs a layer for each stage"),
    (("--mesh", "dp=0"), "dp must be at least 1."),
    (("--mesh", "dp=2", "--fit", "train"), "--mesh and --fit are mutually exclusive."),
    (("--fit", "both"), "--fit must be train or serve."),
    (("--mesh", "dp=2", "--device", "l4"), "A mesh is of one kind of device."),
    (("--mesh", "dp=2", "--precision", "int4"), "Meshes are for weights in floating point."),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_wrong_meshes_are_refused(arguments: tuple[str, ...], message: str) -> None:
    untied = ("--set", "head.tie_embeddings=false", "--set", "expect={}")
    assert message in refused("report", "gpt2", *untied, "--device", "h100", *arguments)


def test_this_machine_has_no_known_links() -> None:
    message = refused("report", "gpt2", "--mesh", "dp=2", "--device", "this")
    assert "A mesh needs a device with known links." in message


def test_no_mesh_has_room() -> None:
    device = load_device("t4").model_copy(update={"memory": 1e4})
    with pytest.raises(UserError, match=re.escape("No mesh of up to 4096 devices has room.")):
        smallest(ModelOnPaper(MODELS["decoder"], "fp32"), device, 1, 8, "train")


def test_a_mesh_is_read_in_any_order() -> None:
    assert mesh_degrees("tp=4, dp=2") == {"tp": 4, "dp": 2}


def test_stacks_that_share_a_table_sum_it_each() -> None:
    model = ModelOnPaper(load("t5-small"), "bf16")
    attention, feed_forward = (
        2 * 512 + 3 * 512,
        2 * 512 + 512,
    )  # sums, computed again, and gradients of inputs
    layers = 6 * (attention + feed_forward) + 6 * (2 * attention + feed_forward)
    assert model.summed_widths == layers + 3 * 512  # the table in both stacks, and the head
    done("report", "t5-small", "--mesh", "tp=2", "--device", "h100", "--precision", "bf16")


def test_all_splits_of_a_number_of_devices_are_those_that_the_model_allows() -> None:
    model, device = ModelOnPaper(load("bert-base"), "bf16"), load_device("h100")
    found = splits(model, device, 1, 128, 12)
    assert all(mesh.devices == 12 for mesh in found)
    meshes = {(mesh["dp"], mesh["tp"], mesh["pp"]) for mesh in found}
    expected = {
        (dp, tp, pp)
        for dp in range(1, 13)
        for tp in model.plan.degrees(device.per_node)
        for pp in range(1, 13)
        if dp * tp * pp == 12
    }
    assert meshes == {each for each in expected if _allowed(model, each)}
    assert len(meshes) > 3


def _allowed(model: ModelOnPaper, mesh: tuple[int, int, int]) -> bool:
    try:
        model.on(dict(zip(("dp", "tp", "pp"), mesh, strict=True)), load_device("h100"), 1, 128)
    except UserError:
        return False
    return True
