"""Publishing on the hub, by its own library, to the stand-in of ``hub_server.py``."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import environment, zoo
from tests.exporters.remotes.files import contents, states
from tests.exporters.remotes.hub_server import Hub, running

Run = Callable[..., Any]


@pytest.fixture
def hub() -> Iterator[Hub]:
    with running() as server:
        yield server


@pytest.fixture
def run(hub: Hub, tmp_path: Path) -> Run:
    """Runs ``zoo``, in a process that has the stand-in for the hub; gives what it prints, as text or data."""
    proxies = {key: "" for key in os.environ if key.lower().endswith("_proxy")}
    settings = {
        **environment(**proxies),
        "HF_HOME": str(tmp_path / "cache"),
        "HF_ENDPOINT": hub.url,
        "HF_HUB_DISABLE_XET": "1",
        "HF_TOKEN": "hf_test",
    }

    def run(*arguments: object, status: int = 0) -> Any:
        done = zoo(*map(str, arguments), env=settings)
        assert done.returncode == status, done.stderr
        assert "Traceback" not in done.stderr
        if status:
            return done.stderr
        return json.loads(done.stdout) if "--json" in arguments else done.stdout

    return run


OWN = {".gitattributes", "README.md"}


@pytest.mark.slow
def test_a_pulled_export_equals_the_pushed_one(exports, run, hub, tmp_path):
    hub.commit("main", {**hub.files(), "README.md": b"# Tiny\n"})
    pushed = run("push", exports / "first", "--to", "hf://org/tiny")
    assert "/org/tiny/commit/" in pushed
    assert "\n  zoo pull hf://org/tiny -o first-pulled " in pushed
    assert hub.files().keys() - OWN == contents(exports / "first").keys() - OWN
    assert hub.files()["README.md"] == b"# Tiny\n"  # which stays
    run("pull", "hf://org/tiny", "-o", tmp_path / "pulled")
    assert contents(tmp_path / "pulled") == {**contents(exports / "first"), "README.md": b"# Tiny\n"}

    again = run("push", exports / "first", "--to", "hf://org/tiny", "--json")
    assert set(states(again).values()) == {"same"}
    assert (again["bytes_to_send"], again["published"]) == (0, None)
    assert len(hub.commits) == 3


@pytest.mark.slow
def test_an_interrupted_push_resumes(exports, run, hub):
    hub.refuse_commits = True
    assert "org/tiny could not be published: " in run(
        "push", exports / "first", "--to", "hf://org/tiny", status=2
    )
    assert hub.files().keys() == {".gitattributes"}
    first = list(hub.uploads)
    assert hashlib.sha256((exports / "first" / "model.onnx").read_bytes()).hexdigest() in first
    hub.refuse_commits = False
    run("push", exports / "first", "--to", "hf://org/tiny")
    assert hub.uploads == first  # nothing twice
    assert hub.files().keys() - {".gitattributes"} == contents(exports / "first").keys()


@pytest.mark.slow
def test_another_export_is_not_overwritten_unasked(copy, exports, run, hub, key):
    first = copy("first")
    run("sign", first, "--key", key)
    run("push", first, "--to", "hf://org/tiny")
    before = hub.branches["main"]
    for more in ((), ("--dry-run",)):
        said = run("push", exports / "other", "--to", "hf://org/tiny", *more, status=2)
        assert said.startswith(
            "hf://org/tiny holds other files, which would be overwritten: README.md (changed), bom.cdx.json (removed), "
        )
        assert "\n  target: portable -> cpu\n" in said
    assert hub.branches["main"] == before
    run("push", exports / "other", "--to", "hf://org/tiny", "--force")
    attributes = {".gitattributes": b"*.onnx filter=lfs\n"}
    assert hub.files() == {**contents(exports / "other"), **attributes}


@pytest.mark.slow
def test_concurrent_commits_are_kept(exports, run, hub):
    hub.meanwhile = {"export.json": b"theirs"}
    said = run("push", exports / "first", "--to", "hf://org/tiny", status=2)
    assert said.startswith("org/tiny could not be published: ")
    assert "412" in said
    assert hub.files()["export.json"] == b"theirs"
    assert "export.json (changed)" in run("push", exports / "first", "--to", "hf://org/tiny", status=2)


@pytest.mark.slow
def test_a_new_branch_has_the_export_alone(exports, run, hub, tmp_path):
    run("push", exports / "first", "--to", "hf://org/tiny")
    run("push", exports / "other", "--to", "hf://org/tiny@cpu")
    assert hub.files("cpu").keys() - {".gitattributes"} == contents(exports / "other").keys()
    assert hub.files("cpu")["export.json"] != hub.files("main")["export.json"]
    run("pull", "hf://org/tiny@cpu", "-o", tmp_path / "pulled")
    assert contents(tmp_path / "pulled") == contents(exports / "other")


@pytest.mark.slow
def test_files_of_another_kind_are_not_overwritten_unasked(exports, run, hub):
    hub.commit("main", {**hub.files(), "model.onnx": b"another one"})
    said = run("push", exports / "first", "--to", "hf://org/tiny", status=2)
    assert said.startswith(
        "hf://org/tiny holds other files, which would be overwritten: model.onnx (changed)."
    )


@pytest.mark.slow
def test_a_dry_run_sends_nothing(exports, run, hub):
    assert "would be sent to hf://org/tiny" in run(
        "push", exports / "first", "--to", "hf://org/tiny", "--dry-run"
    )
    assert (hub.uploads, len(hub.commits)) == ([], 1)


@pytest.mark.slow
def test_refusals_of_the_hub_are_explained(exports, run, hub, tmp_path):
    said = run("push", exports / "first", "--to", "hf://org/gone", status=2)
    assert said.startswith("org/gone is neither a path nor a public repository on the hub")
    hub.writable = False
    said = run("push", exports / "first", "--to", "hf://org/tiny", status=2)
    assert said.startswith("org/tiny could not be published: ")
    assert "403" in said
    assert "hf://org/tiny has no export" in run("pull", "hf://org/tiny", "-o", tmp_path / "here", status=2)
