"""Publishing in a real OCI registry."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import requests

from exporters.remotes.addresses import remote_of
from exporters.remotes.artefact import read_artefact
from exporters.remotes.oci import ARTIFACT_TYPE, GRAPH, RECORD, WEIGHTS
from exporters.remotes.push import plan_push, push
from tests.cli.program import as_json, done, refused
from tests.exporters.remotes.files import contents, push_refused, states
from tests.exporters.remotes.token_gate import TokenGate

IMAGE = "application/vnd.oci.image.manifest.v1+json"


@pytest.fixture
def client():
    """The client of ORAS; importing it compiles grammars for a second."""
    from oras.client import OrasClient

    return OrasClient(insecure=True)


@pytest.fixture
def tag(registry, request):
    """An address that no other test has."""
    return f"oci://{registry}/team/{request.node.name.lower().partition('[')[0]}:v1"


def manifest(address: str) -> requests.Response:
    host, _, rest = address.removeprefix("oci://").partition("/")
    name, _, reference = rest.rpartition(":") if "@" not in rest else rest.partition("@")
    url = f"http://{host}/v2/{name}/manifests/{reference}"
    return requests.get(url, headers={"Accept": IMAGE}, timeout=200)


def test_a_pulled_export_equals_the_pushed_one(copy, tag, tmp_path, key):
    first = copy("first")
    done("sign", first, "--key", key)
    address = as_json("push", first, "--to", tag)["published"]
    assert address.startswith(f"{tag.removesuffix(':v1')}@sha256:")
    for number, source in enumerate((tag, address)):
        done("pull", source, "-o", tmp_path / f"pulled{number}")
        assert contents(tmp_path / f"pulled{number}") == contents(first)


def test_the_artifact_is_one_of_ours_and_oras_reads_it(exports, tag, client, tmp_path):
    done("push", exports / "first", "--to", tag)
    found = manifest(tag).json()
    assert (found["artifactType"], found["config"]["mediaType"]) == (
        ARTIFACT_TYPE,
        "application/vnd.oci.empty.v1+json",
    )
    kinds = {
        each["annotations"]["org.opencontainers.image.title"]: each["mediaType"] for each in found["layers"]
    }
    assert kinds["model.onnx"] == GRAPH
    assert kinds["model.onnx.data"] == WEIGHTS
    assert kinds["export.json"] == kinds["build.json"] == RECORD
    assert found["annotations"]["org.opencontainers.image.title"] == "tiny-bert"
    client.pull(tag.removeprefix("oci://"), outdir=str(tmp_path / "pulled"))
    assert contents(tmp_path / "pulled") == contents(exports / "first")


def test_a_second_push_sends_nothing_and_equal_exports_have_equal_digests(exports, tag):
    first = as_json("push", exports / "first", "--to", tag)["published"]
    again = as_json("push", exports / "first", "--to", tag)
    assert (again["bytes_to_send"], again["published"]) == (0, None)
    elsewhere = tag.replace(":v1", ":v2")
    second = as_json("push", exports / "first", "--to", elsewhere)
    assert second["bytes_to_send"] == 0  # another tag of the repository has all contents
    assert set(states(second).values()) == {"new"}
    assert second["published"] == first


def test_an_interrupted_push_resumes(exports, tag):
    artefact = read_artefact(exports / "first")
    plan = plan_push(artefact, remote_of(tag))

    def interrupt(stage):
        if stage.name == "send model.onnx.data":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        push(plan, progress=interrupt)
    assert manifest(tag).status_code == 404
    again = plan_push(artefact, remote_of(tag))
    assert {change.name for change in again.changes if change.sent} == {
        "model.onnx.data",
        "probe.npz",
        "spec.yaml",
    }
    push(again)
    assert manifest(tag).status_code == 200


def test_another_export_is_not_overwritten_unasked(exports, tag, tmp_path):
    done("push", exports / "first", "--to", tag)
    before = manifest(tag).content
    said = push_refused(exports / "other", "--to", tag)
    assert said.startswith(f"{tag} holds other files, which would be overwritten: ")
    assert "build.json (changed)" in said
    assert "\n  target: portable -> cpu\n" in said
    assert manifest(tag).content == before
    done("push", exports / "other", "--to", tag, "--force")
    done("pull", tag, "-o", tmp_path / "pulled")
    assert contents(tmp_path / "pulled") == contents(exports / "other")


def test_an_artifact_of_something_else_is_not_overwritten_unasked(
    exports, tag, client, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("thesis.tex").write_text("years")
    client.push(target=tag.removeprefix("oci://"), files=["thesis.tex"])
    assert "thesis.tex (removed)" in push_refused(exports / "first", "--to", tag)
    assert f"{tag} has no export: there is no export.json" in refused("pull", tag, "-o", "here")
    data = as_json("push", exports / "first", "--to", tag, "--force")
    assert states(data)["thesis.tex"] == "removed"


def test_an_image_for_several_machines_is_not_overwritten(exports, tag):
    host, _, rest = tag.removeprefix("oci://").partition("/")
    name = rest.removesuffix(":v1")
    kind = "application/vnd.oci.image.index.v1+json"
    index = json.dumps({"schemaVersion": 2, "mediaType": kind, "manifests": []})
    url = f"http://{host}/v2/{name}/manifests/v1"
    requests.put(url, index, headers={"Content-Type": kind}, timeout=200).raise_for_status()
    for more in ((), ("--force",)):
        said = refused("push", exports / "first", "--to", tag, *more)
        assert said == f"{tag} is not an artifact of files.\n  Choose another tag.\n"
    assert requests.get(url, headers={"Accept": kind}, timeout=200).text == index


def test_a_damaged_registry_is_not_pulled(copy, tag, registry_place, tmp_path):
    directory = copy("first")
    done("push", directory, "--to", tag)
    digest = read_artefact(directory).files["model.onnx"].sha256
    blob = registry_place / "blobs/docker/registry/v2/blobs/sha256" / digest[:2] / digest / "data"
    content = blob.read_bytes()
    try:
        blob.write_bytes(content[:-1] + b"x")
        said = refused("pull", tag, "-o", tmp_path / "pulled")
        assert said.startswith(f"{tag} is damaged: the contents of model.onnx do not match its digest.")
        assert not (tmp_path / "pulled").exists()
    finally:
        blob.write_bytes(content)


def test_a_dry_run_sends_nothing(exports, tag):
    assert as_json("push", exports / "first", "--to", tag, "--dry-run")["bytes_to_send"] > 0
    assert manifest(tag).status_code == 404


def test_a_digest_is_pulled_and_not_pushed(exports, tag):
    address = as_json("push", exports / "first", "--to", tag)["published"]
    assert "names contents by digest" in push_refused(exports / "first", "--to", address[:-4] + "0000")


def test_a_registry_that_is_gone(exports):
    said = refused("push", exports / "first", "--to", "oci://127.0.0.1:9/team/x:v1")
    assert said.startswith("oci://127.0.0.1:9/team/x:v1 cannot be reached: ")
    assert said.endswith("  Check the registry and the network.\n")


def test_a_tag_that_is_gone(registry, tmp_path):
    assert "has no export" in refused("pull", f"oci://{registry}/team/gone:v1", "-o", tmp_path / "here")


def test_tokens_that_expire_are_renewed(exports, registry, tmp_path):
    with TokenGate(registry) as gate:
        address = f"oci://{gate.host}/team/tokens:v1"
        done("push", exports / "first", "--to", address)
        assert gate.issued > 2
        done("pull", address, "-o", tmp_path / "pulled")
        assert contents(tmp_path / "pulled") == contents(exports / "first")
        gate.issues = False
        said = refused("pull", address, "-o", tmp_path / "again")
    assert said.startswith(f"{address}: the registry refuses access: ")
    assert said.endswith(f"log in: docker login {gate.host}.\n")


def test_without_the_library(exports, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "oras", None)
    monkeypatch.setitem(__import__("sys").modules, "oras.auth", None)
    assert "pip install 'zoo[oci]'" in refused("push", exports / "first", "--to", "oci://127.0.0.1:9/x:v1")
