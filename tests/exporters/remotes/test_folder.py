"""Publishing in directories, and what every remote refuses."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from exporters.remotes.addresses import remote_of
from exporters.remotes.artefact import read_artefact
from exporters.remotes.push import OverwriteError, plan_push, push
from specs.base.errors import UserError
from tests.cli.process import environment
from tests.cli.program import as_json, done, invoke, refused
from tests.exporters.remotes.files import contents, push_refused, states


@pytest.mark.slow
def test_a_pulled_export_equals_the_pushed_one(exports, tmp_path):
    place = tmp_path / "published" / "first"
    pushed = done("push", exports / "first", "--to", place, "-v")
    assert ["file", "size", "at", "the", "address", "send"] in [line.split() for line in pushed.splitlines()]
    assert f"{place} is published: " in " ".join(pushed.split())
    assert contents(place) == contents(exports / "first")
    pulled = " ".join(done("pull", place, "-o", tmp_path / "pulled").split())
    assert f" from {place} files {len(contents(exports / 'first'))} files, " in pulled
    assert f"{tmp_path / 'pulled'} is ready in " in pulled
    assert contents(tmp_path / "pulled") == contents(exports / "first")


def test_a_dry_run_sends_nothing(exports, tmp_path):
    data = as_json("push", exports / "first", "--to", tmp_path / "p", "--dry-run")
    sizes = {name: len(content) for name, content in contents(exports / "first").items()}
    assert {file["name"]: file["size"] for file in data["files"]} == sizes
    assert set(states(data).values()) == {"new"}
    assert all(file["sent"] for file in data["files"])
    assert (data["bytes_to_send"], data["dry_run"], data["published"]) == (sum(sizes.values()), True, None)
    assert not (tmp_path / "p").exists()
    text = done("push", exports / "first", "--to", tmp_path / "p", "--dry-run")
    assert "would be sent to" in " ".join(text.split())


def test_a_second_push_sends_nothing(exports, tmp_path):
    done("push", exports / "first", "--to", tmp_path / "p")
    before = {path: path.stat().st_ino for path in (tmp_path / "p").iterdir()}
    data = as_json("push", exports / "first", "--to", tmp_path / "p")
    assert set(states(data).values()) == {"same"}
    assert (data["bytes_to_send"], data["published"]) == (0, None)
    assert before == {path: path.stat().st_ino for path in (tmp_path / "p").iterdir()}
    again = done("push", exports / "first", "--to", tmp_path / "p")
    assert f"{tmp_path / 'p'} is up to date" in " ".join(again.split())


def test_files_that_are_there_are_not_sent_again(copy, tmp_path, key):
    first = copy("first")
    done("push", first, "--to", tmp_path / "p")
    model = (tmp_path / "p" / "model.onnx").stat().st_ino
    done("sign", first, "--key", key)
    data = as_json("push", first, "--to", tmp_path / "p")
    sent = {name for name, state in states(data).items() if state == "new"}
    assert sent == {"model.sig", "bom.cdx.json"}
    assert contents(tmp_path / "p") == contents(first)
    assert (tmp_path / "p" / "model.onnx").stat().st_ino == model


def test_another_export_is_not_overwritten_unasked(exports, tmp_path):
    place = tmp_path / "p"
    done("push", exports / "first", "--to", place)
    before = contents(place)
    for more in ((), ("--dry-run",)):
        said = push_refused(exports / "other", "--to", place, *more)
        assert said.startswith(f"{place} holds other files, which would be overwritten: ")
        assert "\n  target: portable -> cpu\n  seed: 0 -> 1\n" in said
        assert said.endswith("  Choose another place, or pass --force.\n")
        assert contents(place) == before
    (place / "notes.txt").write_text("mine")
    done("push", exports / "other", "--to", place, "--force")
    assert contents(place) == {**contents(exports / "other"), "notes.txt": b"mine"}


def test_the_signature_of_an_earlier_export_goes(copy, exports, tmp_path, key):
    signed, place = copy("first"), tmp_path / "p"
    done("sign", signed, "--key", key)
    done("push", signed, "--to", place)
    data = as_json("push", exports / "other", "--to", place, "--force")
    assert {"model.sig", "bom.cdx.json"} == {
        name for name, state in states(data).items() if state == "removed"
    }
    assert contents(place) == contents(exports / "other")


def test_a_directory_of_something_else_stays(exports, tmp_path):
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "thesis.tex").write_text("years")
    said = refused("push", exports / "first", "--to", tmp_path / "p", "--force")
    assert "holds files and no valid export.json, so zoo did not write it" in said
    assert contents(tmp_path / "p") == {"thesis.tex": b"years"}


def test_a_changed_file_is_not_published(copy, tmp_path):
    first = copy("first")
    data = bytearray((first / "model.onnx.data").read_bytes())
    data[100] ^= 1
    (first / "model.onnx.data").write_bytes(data)
    for more in ((), ("--unverified",)):
        said = refused("push", first, "--to", tmp_path / "p", *more)
        assert said.startswith(
            f"{first} has changed since it was exported: model.onnx.data has other contents"
        )
    assert not (tmp_path / "p").exists()


def test_an_unverified_export_is_published_only_on_request(exports, copy, tmp_path):
    said = refused("push", exports / "unverified", "--to", tmp_path / "p")
    assert said.endswith("  Export the model again with verification, or pass --unverified.\n")
    assert "has not been verified: it was exported without verification" in said
    done("push", exports / "unverified", "--to", tmp_path / "p", "--unverified")
    assert contents(tmp_path / "p") == contents(exports / "unverified")
    first = copy("first")
    (first / "build.json").unlink()
    assert "has not been verified: build.json is missing" in refused("push", first, "--to", tmp_path / "q")


def test_files_of_the_user_are_left_out(copy, tmp_path):
    first = copy("first")
    (first / "key.pem").write_text("secret")
    assert "not listed by export.json: key.pem" in done("push", first, "--to", tmp_path / "p")
    assert not (tmp_path / "p" / "key.pem").exists()


def test_only_exports_are_published(tmp_path):
    assert refused("push", tmp_path, "--to", tmp_path / "p").startswith(
        f"{tmp_path} is not an export (no export.json)"
    )


def test_a_damaged_place_is_not_pulled(exports, tmp_path):
    place = tmp_path / "p"
    for harm, said in (
        (lambda path: path.unlink(), "model.onnx is missing"),
        (lambda path: path.write_bytes(b"x" * path.stat().st_size), "model.onnx has other contents"),
    ):
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(exports / "first", place)
        harm(place / "model.onnx")
        assert said in refused("pull", place, "-o", tmp_path / "pulled")
        assert not (tmp_path / "pulled").exists()


def test_pulling_replaces_an_export_and_reuses_its_files(exports, tmp_path):
    target = tmp_path / "here"
    done("pull", exports / "first", "-o", target)
    (target / "notes.txt").write_text("mine")
    kept = (target / "spec.yaml").stat().st_ino
    done("pull", exports / "other", "-o", target)
    assert contents(target) == {**contents(exports / "other"), "notes.txt": b"mine"}
    assert (target / "spec.yaml").stat().st_ino == kept


def test_nothing_to_pull(tmp_path):
    said = refused("pull", tmp_path / "gone", "-o", tmp_path / "here")
    assert said == f"{tmp_path / 'gone'} has no export: there is no export.json.\n  Check the address.\n"
    assert not (tmp_path / "here").exists()


@pytest.mark.parametrize(
    "address",
    ["s3://bucket/name", "hf://name", "hf://a/b/c", "hf://org/name@", "oci://host.io/name", "oci://name:tag",
     "oci://ghcr.io/Org/name:v1", "oci://ghcr.io/a//b:v1", "oci://ghcr.io/name@sha256:12"],
)  # fmt: skip
def test_invalid_addresses_are_refused(address):
    with pytest.raises(UserError, match="The address of a remote must be"):
        remote_of(address)


def test_a_manifest_cannot_lead_elsewhere(copy, tmp_path):
    first = copy("first")
    manifest = json.loads((first / "export.json").read_text())
    manifest["files"]["../out.txt"] = manifest["files"]["spec.yaml"]
    (first / "export.json").write_text(json.dumps(manifest))
    (first.parent / "out.txt").write_bytes((first / "spec.yaml").read_bytes())
    assert invoke("pull", first, "-o", tmp_path / "deep" / "here").exit_code == 2
    assert not (tmp_path / "deep").exists()


def test_the_library_names_fields(exports, tmp_path):
    remote = remote_of(str(tmp_path / "p"))
    push(plan_push(read_artefact(exports / "first"), remote))
    with pytest.raises(OverwriteError) as found:
        push(plan_push(read_artefact(exports / "other"), remote))
    assert str(found.value).endswith("or pass force.")


@pytest.mark.slow
def test_publishing_loads_no_torch(exports, tmp_path):
    code = "import sys; from cli.app import app; app(sys.argv[1:], standalone_mode=False); assert 'torch' not in sys.modules"
    arguments = ["push", exports / "first", "--to", tmp_path / "p"]
    subprocess.run([sys.executable, "-c", code, *map(str, arguments)], env=environment(), check=True)
