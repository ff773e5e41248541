"""Directories that others made: links out of them, pipes, devices and sparse files are refused, and nothing is written."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import zoo
from exporters.quality.texts import read_text
from exporters.steps.card import license_of
from specs.base.errors import UserError
from tests.cli.program import done, invoke, refused
from tests.exporters.remotes.conftest import write_keys
from tests.thinned import one_in
from tests.zoo.tiny import bert

SECRET = "root:$y$j9T$secret:20000:0:99999:7:::\n"
Attack = Callable[[Path], object]


@pytest.fixture(autouse=True)
def never_waits() -> Iterator[None]:
    """A test that waits for a pipe fails."""
    signal.alarm(120)
    yield
    signal.alarm(0)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint with a tokenizer's files, and a verified export."""
    place = tmp_path_factory.mktemp("made")
    zoo.convert(bert(), "random", place / "checkpoint")
    (place / "checkpoint" / "vocab.txt").write_text("[PAD]\n")
    zoo.export(bert(), place / "export")
    return place


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with copies of them, and a secret beside them."""
    shutil.copytree(made, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "here" / "secret").write_text(SECRET)
    (tmp_path / "here" / "bert.yaml").write_text((made / "export" / "spec.yaml").read_text())
    return tmp_path / "here"


def link(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("../secret")


def pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def device(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(300 * 10**9)


READERS = {
    "export": ("export", "bert.yaml", "--weights", "checkpoint", "--no-verify", "-o", "out"),
    "convert": ("convert", "bert.yaml", "--weights", "checkpoint", "-o", "out"),
    "adapt": ("adapt", "bert.yaml", "--weights", "checkpoint", "-o", "out"),
}


@one_in(5)
@pytest.mark.parametrize("attack", [link, pipe, device, sparse], ids=lambda each: each.__name__)
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", ["vocab.txt", "tokenizer.json", "generation_config.json", "spiece.model"])
def test_carried_files_of_a_checkpoint(here: Path, name: str, reader: str, attack: Attack) -> None:
    attack(here / "checkpoint" / name)
    said = refused(*READERS[reader])
    assert f"checkpoint/{name} cannot be read: it " in said
    assert said.count("\n") >= 2  # with a remedy
    assert not (here / "out").exists()


@pytest.mark.parametrize("attack", [link, pipe, device], ids=lambda each: each.__name__)
@pytest.mark.parametrize(
    ("name", "reader"),
    [("config.json", "import"), ("model.safetensors", "export"), ("README.md", "export")],
)
def test_read_files_of_a_checkpoint(here: Path, name: str, reader: str, attack: Attack) -> None:
    attack(here / "checkpoint" / name)
    command = ("import", "checkpoint", "-o", "out") if reader == "import" else READERS[reader]
    assert f"checkpoint/{name} cannot be read: it is " in refused(*command)
    assert not (here / "out").exists()


@pytest.mark.parametrize("attack", [link, pipe], ids=lambda each: each.__name__)
def test_a_linked_or_waiting_shard(here: Path, attack: Attack) -> None:
    weights = here / "checkpoint" / "model.safetensors"
    names = {"weight_map": {"embeddings.word_embeddings.weight": "model-1.safetensors"}}
    (here / "checkpoint" / "model.safetensors.index.json").write_text(json.dumps(names))
    weights.unlink()
    attack(here / "checkpoint" / "model-1.safetensors")
    assert "model-1.safetensors cannot be read: it is " in refused(*READERS["export"])


def test_weights_that_the_user_names_may_be_a_link(here: Path) -> None:
    weights = here / "checkpoint" / "model.safetensors"
    (here / "named.safetensors").symlink_to(weights)
    done("export", "bert.yaml", "--weights", "named.safetensors", "--no-verify", "-o", "out")


@pytest.mark.parametrize("attack", [link, pipe, device], ids=lambda each: each.__name__)
@pytest.mark.parametrize("name", ["README.md", "spec.yaml", "probe.npz", "export.json", "build.json"])
def test_files_of_an_export(here: Path, name: str, attack: Attack) -> None:
    if name == "README.md" or name == "probe.npz":
        assert (here / "export" / name).exists()
    key = write_keys(here / "keys")
    attack(here / "export" / name)
    assert name in refused("push", "export", "--to", "pushed")
    assert not (here / "pushed").exists()
    if name != "README.md":
        assert name in refused("sign", "export", "--key", key)
        result = invoke("verify", "export")
        assert result.exit_code in (1, 2), result.output
        assert name in result.output
    assert name == "README.md" or name in invoke("verify", "export", "--pytorch").output


def test_push_never_publishes_a_secret(here: Path) -> None:
    link(here / "export" / "README.md")
    invoke("push", "export", "--to", "pushed")
    found = [path for path in here.glob("pushed/**/*") if path.is_file()]
    assert not any(SECRET in path.read_text(errors="replace") for path in found)


@pytest.mark.parametrize("place", ["export/model.onnx", "export/model.onnx.data", "export/probe.npz"])
def test_a_signed_file_that_became_a_pipe(here: Path, place: str) -> None:
    key = write_keys(here / "keys")
    done("sign", "export", "--key", key)
    pipe(here / place)
    result = invoke("verify", "export", "--key", here / "keys" / "public.pem")
    assert result.exit_code == 1
    assert "it is a pipe" in " ".join(result.stderr.split())


@pytest.mark.parametrize("name", ["tokenizer.json", "config.json", "preprocessor_config.json"])
def test_settings_beside_a_signed_export_are_not_used(here: Path, name: str) -> None:
    done("sign", "export", "--key", write_keys(here / "keys"))
    done("run", "export", "--ids", "1,2")
    (here / "export" / name).write_text("{}")
    said = refused("run", "export", "--ids", "1,2")
    assert said.startswith(f"export is signed, and holds {name}, which is not part of the export")
    assert "Move it to another directory" in said


@pytest.mark.parametrize("attack", [pipe, device], ids=lambda each: each.__name__)
def test_representative_inputs(here: Path, attack: Attack) -> None:
    attack(here / "ids.npy")
    assert "ids.npy cannot be read: it is a" in refused("eval", "export", "--data", "ids.npy")
    attack(here / "text.txt")
    with pytest.raises(UserError, match=r"text\.txt cannot be read: it is a"):
        read_text(here / "text.txt")


def test_a_path_that_is_no_utf8(here: Path) -> None:
    broken = os.fsdecode(b"bad\xff")
    said = refused("export", "bert.yaml", "-o", broken)
    assert said.startswith(
        "'bad\\udcff': the path of an export must be UTF-8, because ONNX Runtime opens no other.\n"
    )
    assert not os.path.lexists(broken)
    shutil.move("export", broken)
    for command in ("run", "verify"):
        options = ("--ids", "1,2") if command == "run" else ()
        assert "must be UTF-8" in refused(command, broken, *options)


def test_layers_of_a_variant_are_bounded(here: Path) -> None:
    for layers, rule in {
        "0-1000000000": "layer",
        "0-999999999": "layer 999999999 is beyond the",
        ",".join(["0-1"] * 6000): "must list at most 10,000 layers",
        "1-0": "the range 1-0 is empty",
        "9" * 5000: "is neither a layer",
    }.items():
        said = refused("adapt", "bert.yaml", "--weights", "checkpoint", "--layers", layers, "-o", "out")
        assert rule in said
    assert not (here / "out").exists()


def test_the_front_matter_of_a_card_is_bounded(here: Path) -> None:
    card = here / "checkpoint" / "README.md"
    for front in (
        "license: " + "[" * 20_000,
        "license: !!timestamp x",
        "license: " + "9" * 5000,
        "? {a: b}\n: c",
    ):
        card.write_text(f"---\n{front}\n---\n")
        assert license_of(here / "checkpoint") == {}
    card.write_text("---\nlanguage: [en, no]\nlicense: mit\n---\n")
    assert license_of(here / "checkpoint") == {"license": "mit"}


def test_the_bytes_of_a_catalog_do_not_depend_on_how_its_directory_is_written(here: Path) -> None:
    shutil.copytree("export", "all/good")
    shutil.copytree("export", "all/bad")
    (here / "all" / "bad" / "export.json").write_text('{"zoo": "1"}')
    pages = set()
    for written in ("all", "./all/", str(here / "all"), "export/../all"):
        Path("catalog.html").unlink(missing_ok=True)
        assert invoke("catalog", written).exit_code == 1
        pages.add(Path("catalog.html").read_text())
    assert len(pages) == 1


@pytest.mark.parametrize(
    "data",
    [
        "[" * 100_000,
        '{"format": 1}',
        '{"format": 1, "specs": 5, "artefacts": {"all": 3}, "changes": 7}',
        '{"format": 1, "specs": [], "artefacts": {"export": {"spec": 9e99}}, "changes": []}',
        '{"format": 1, "specs": [], "artefacts": {}, "changes": [{"at": 1}]}',
    ],
)
def test_a_damaged_catalog_is_not_continued(here: Path, data: str) -> None:
    done("catalog", "export")
    page = Path("catalog.html").read_text()
    found = re.search(r"<script[^>]*application/json[^>]*>(.*?)</script>", page, re.DOTALL)
    assert found is not None
    Path("catalog.html").write_text(page[: found.start(1)] + data + page[found.end(1) :])
    said = refused("catalog", "export")
    assert "catalog" in said
    assert "remove it" in said


def test_text_of_a_spec_cannot_break_generated_code(here: Path) -> None:
    spec = zoo.load("tiny-gpt").model_copy(update={"summary": 'a\0b """ \\" \x1b[2J \u2028\nimport os'})
    zoo.convert(spec, "random", here / "out", remote_code=True)
    for path in (here / "out").glob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        names = [
            alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
        ]
        assert "os" not in names
