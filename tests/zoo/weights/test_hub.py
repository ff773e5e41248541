"""The hub, by its own library: from a server that answers for one repository, and with nobody there to answer."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import torch
from safetensors.torch import save_file

from specs.language.load import load
from specs.language.reference import hub_file, is_hub_id
from tests.answering import Answering
from tests.cli.process import environment, zoo
from tests.thinned import one_in
from zoo.builder import assemble
from zoo.weights.names import INDEX, PICKLED_INDEX, PICKLED_SINGLE, SINGLE
from zoo.weights.random import RandomWeights

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(ThreadingHTTPServer):
    """Answers as the hub does, for the repository org/tiny whose files are given."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.refused = 0
        self.error: tuple[int, str] | None = None
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class Answer(Answering):
    server: Hub

    def do_GET(self) -> None:  # noqa: N802
        path = unquote(urlsplit(self.path).path)
        if self.server.error:
            self.server.refused += 1
            status, code = self.server.error
            return self.send(b"{}", status, {"X-Error-Code": code, "X-Error-Message": code})
        model, about = "/api/models/org/tiny", {"Content-Type": "application/json"}
        if path in (f"{model}/revision/main", f"{model}/revision/{COMMIT}", model):
            siblings = [{"rfilename": name} for name in self.server.files]
            return self.send(
                json.dumps({"id": "org/tiny", "sha": COMMIT, "siblings": siblings}).encode(), 200, about
            )
        if path.startswith(f"{model}/revision/"):
            return self.send(b"{}", 404, {"X-Error-Code": "RevisionNotFound"})
        if path.startswith(f"{model}/tree/{COMMIT}"):
            entries = [
                {"type": "file", "path": name, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
                for name, content in self.server.files.items()
            ]
            return self.send(json.dumps(entries).encode(), 200, about)
        name = path.removeprefix(f"/org/tiny/resolve/{COMMIT}/")
        if name not in self.server.files:
            return self.send(b"{}", 404, {"X-Error-Code": "RepoNotFound"})
        content = self.server.files[name]
        if self.command == "GET":
            self.server.asked.append(name)
        etag = hashlib.sha1(content).hexdigest()
        return self.send(content, 200, {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT})

    do_HEAD = do_GET  # noqa: N815


@pytest.fixture
def hub() -> Iterator[Hub]:
    server = Hub()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


CODE = """
import sys
from specs.base.errors import UserError
from zoo.weights.hub import fetch
try:
    print(fetch(sys.argv[1], weights=sys.argv[2] == "weights", revision=sys.argv[3] if sys.argv[3:] else None))
except UserError as error:
    sys.exit(f"{error}")
"""


class Machine:
    """A machine with a cache of its own."""

    def __init__(self, cache: Path, endpoint: str) -> None:
        proxies = {key: "" for key in os.environ if key.lower().endswith("_proxy")}
        self.environment = (
            environment()
            | proxies
            | {"HF_HOME": str(cache), "HF_ENDPOINT": endpoint, "HF_HUB_DISABLE_XET": "1"}
        )

    def fetch(self, *arguments: str) -> Path:
        done = self._run(*arguments)
        assert done.returncode == 0, done.stderr
        return Path(done.stdout.strip())

    def refused(self, *arguments: str) -> str:
        done = self._run(*arguments)
        assert (done.returncode, done.stdout) == (1, "")
        assert "Traceback" not in done.stderr
        return done.stderr.strip()

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", CODE, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
        )


@pytest.fixture
def machine(tmp_path: Path, hub: Hub) -> Machine:
    return Machine(tmp_path / "cache", hub.url)


NOBODY = "http://127.0.0.1:9"  # nothing listens there


def index(*shards: str) -> bytes:
    return json.dumps({"weight_map": {f"t{i}": shard for i, shard in enumerate(shards)}}).encode()


OTHERS = {
    "config.json": b"{}",
    "tokenizer.json": b"[]",
    "modeling.py": b"import os",
    "README.md": b"#",
    "training.md": b"#",
    "onnx/model.safetensors": b"x",
}
DESCRIPTION = {"README.md", "config.json", "tokenizer.json"}  # the card states the license


@one_in(6)
@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({SINGLE: b"a", PICKLED_SINGLE: b"b", "model.fp16.safetensors": b"c"}, {SINGLE}),
        ({INDEX: index("1.safetensors", "2.safetensors"), "1.safetensors": b"a", "2.safetensors": b"b",
          "consolidated.safetensors": b"c", PICKLED_SINGLE: b"d"}, {INDEX, "1.safetensors", "2.safetensors"}),
        ({"tiny.safetensors": b"a", PICKLED_SINGLE: b"b"}, {"tiny.safetensors"}),
        ({PICKLED_SINGLE: b"a", "training_args.bin": b"b", "optimizer.pt": b"c"}, {PICKLED_SINGLE}),
        ({PICKLED_INDEX: index("1.bin"), "1.bin": b"a", "2.bin": b"b"}, {PICKLED_INDEX, "1.bin"}),
        ({"tiny.Q8_0.gguf": b"GGUF"}, {"tiny.Q8_0.gguf"}),
    ],
    ids=["safetensors", "sharded", "other-name", "pickled", "pickled-sharded", "gguf"],
)  # fmt: skip
def test_only_needed_files_are_fetched(files, wanted, machine, hub):
    hub.files = OTHERS | files
    directory = machine.fetch("org/tiny", "weights")
    assert {path.name for path in directory.iterdir()} == DESCRIPTION | wanted
    assert all((directory / name).read_bytes() == hub.files[name] for name in wanted)
    assert sorted(hub.asked) == sorted(DESCRIPTION | wanted)  # each once


@pytest.mark.slow
def test_without_weights_the_description_alone(machine, hub):
    hub.files = OTHERS | {SINGLE: b"a"}
    assert {path.name for path in machine.fetch("org/tiny", "no").iterdir()} == DESCRIPTION


@pytest.mark.slow
def test_the_modules_of_a_sentence_encoder_are_fetched(machine, hub):
    modules = [{"type": f"sentence_transformers.models.{kind}", "path": path}
               for kind, path in (("Transformer", ""), ("Pooling", "1_Pooling"), ("Dense", "2_Dense"))]  # fmt: skip
    described = {
        "modules.json": json.dumps(modules).encode(),
        "sentence_bert_config.json": b"{}",
        "1_Pooling/config.json": b"{}",
        "2_Dense/config.json": b"{}",
    }
    weights = {SINGLE: b"a", "2_Dense/model.safetensors": b"b"}
    hub.files = OTHERS | described | weights
    directory = machine.fetch("org/tiny", "weights")
    found = {path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()}
    assert found == DESCRIPTION | set(described) | set(weights)


@pytest.mark.slow
def test_the_routes_of_a_router_are_fetched(machine, hub):
    places = {
        "query_0_SparseStaticEmbedding": "SparseStaticEmbedding",
        "document_0_Transformer": "Transformer",
    }
    routes = {
        "types": {place: f"sentence_transformers.models.{kind}" for place, kind in places.items()},
        "structure": {place.partition("_")[0]: [place] for place in places},
    }
    described = {
        "modules.json": json.dumps([{"type": "sentence_transformers.models.Router", "path": ""}]).encode(),
        "router_config.json": json.dumps(routes).encode(),
        **{f"{place}/{name}": b"{}" for place in places for name in ("config.json", "tokenizer.json")},
    }
    weights = {f"{place}/model.safetensors": b"a" for place in places}
    hub.files = described | weights
    directory = machine.fetch("org/tiny", "weights")
    found = {path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()}
    assert found == set(described) | set(weights)


@pytest.mark.slow
def test_cached_repositories_need_no_network(machine, hub, tmp_path):
    hub.files = OTHERS | {SINGLE: b"a"}
    directory = machine.fetch("org/tiny", "weights")
    assert machine.fetch("org/tiny", "weights", COMMIT) == directory
    assert len(hub.asked) == 4
    away = Machine(tmp_path / "cache", NOBODY)
    assert away.fetch("org/tiny", "weights") == directory
    away.environment["HF_HUB_OFFLINE"] = "1"
    assert away.fetch("org/tiny", "weights") == directory


def test_an_existing_path_is_not_a_repository_id(tmp_path):
    (tmp_path / "org" / "tiny").mkdir(parents=True)
    away = Machine(tmp_path / "cache", NOBODY)
    assert away.fetch(str(tmp_path / "org" / "tiny"), "weights") == tmp_path / "org" / "tiny"


@pytest.mark.slow
def test_an_unreachable_hub_is_reported(tmp_path):
    away = Machine(tmp_path / "cache", NOBODY)
    message = away.refused("org/tiny", "weights")
    assert message.startswith("org/tiny is not on this machine, and the hub cannot be reached: ")
    assert "refused" in message
    assert message.endswith("Check the network, or pass the path of a directory with the files.")
    away.environment["HF_HUB_OFFLINE"] = "1"
    assert "the hub cannot be reached: HF_HUB_OFFLINE is set\n" in away.refused("org/tiny", "weights")


@one_in(5)
@pytest.mark.parametrize(
    ("error", "said"),
    [
        ((404, "RepoNotFound"), "org/tiny is neither a path nor a public repository on the hub\n  Check the name, or log in"),
        ((401, ""), "org/tiny is neither a path nor a public repository on the hub\n  Check the name, or log in"),
        ((403, "GatedRepo"), "org/tiny is gated\n  Request access on its hub page, and log in with hf auth login."),
        ((404, "RevisionNotFound"), "org/tiny on the hub has no revision 'v9'"),
        ((400, ""), "org/tiny is not on this machine, and the hub cannot be reached: "),
    ],
)  # fmt: skip
def test_refusals_of_the_hub_are_explained(error, said, machine, hub):
    hub.error = error
    assert machine.refused("org/tiny", "weights", "v9").startswith(said)


def test_invalid_repository_ids_are_refused(machine):
    message = machine.refused("a/b/c", "weights")
    assert message.startswith("'a/b/c' is neither a path nor a repository id on the hub: ")


def test_a_repository_without_weights(machine, hub):
    hub.files = OTHERS
    assert machine.refused("org/tiny", "weights").startswith(
        f"org/tiny on the hub has no {SINGLE}, no {PICKLED_SINGLE} and no index of shards\n  value: README.md, config.json"
    )


def test_a_repository_with_several_files(machine, hub):
    hub.files = OTHERS | {"a.safetensors": b"a", "b.safetensors": b"b"}
    assert (
        "org/tiny on the hub has several .safetensors files and no index\n  Name one of them: a.safetensors, b.safetensors."
        in (machine.refused("org/tiny", "weights"))
    )


QUANTIZED = {
    "README.md": b"#",
    "tiny-Q4_K_M.gguf": b"4",
    "tiny-Q8_0.gguf": b"8",
    "mmproj-tiny.gguf": b"m",
    "imatrix.gguf": b"i",
}
CHOICE = "  Name one, by its file or by the end of its name, as in org/tiny:Q4_K_M\n    org/tiny/tiny-Q4_K_M.gguf\n    org/tiny/tiny-Q8_0.gguf"


@one_in(3)
@pytest.mark.parametrize("wanted", ["/tiny-Q8_0.gguf", ":Q8_0", ":q8_0"])
def test_a_gguf_file_is_fetched_by_its_name_or_the_end_of_it(wanted, machine, hub, tmp_path):
    hub.files = OTHERS | QUANTIZED | {SINGLE: b"a"}
    file = machine.fetch(f"org/tiny{wanted}", "no")
    assert (file.name, file.read_bytes()) == ("tiny-Q8_0.gguf", b"8")
    assert sorted(hub.asked) == sorted(DESCRIPTION | {"tiny-Q8_0.gguf"})
    away = Machine(tmp_path / "cache", NOBODY)
    assert away.fetch(f"org/tiny{wanted}", "weights") == file


@pytest.mark.slow
def test_a_cached_gguf_file_is_used_without_asking_a_hub_that_fails_again_and_again(machine, hub):
    hub.files = OTHERS | QUANTIZED
    file = machine.fetch("org/tiny:Q8_0", "no")
    hub.error = (503, "")
    assert machine.fetch("org/tiny:Q8_0", "no") == file
    assert hub.refused <= 3


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["no", "weights"])
def test_the_one_gguf_file_of_a_repository_without_a_config_is_fetched(weights, machine, hub):
    hub.files = {"tiny-Q8_0.gguf": b"8", "mmproj-tiny.gguf": b"m"}
    assert machine.fetch("org/tiny", weights).name == "tiny-Q8_0.gguf"
    assert hub.asked == ["tiny-Q8_0.gguf"]


@pytest.mark.slow
def test_one_of_several_gguf_files_is_to_be_named(machine, hub):
    hub.files = QUANTIZED
    for weights in ("no", "weights"):
        assert machine.refused("org/tiny", weights) == f"org/tiny on the hub has 2 GGUF files\n{CHOICE}"
    hub.files = OTHERS | QUANTIZED
    assert machine.refused("org/tiny", "weights") == f"org/tiny on the hub has 2 GGUF files\n{CHOICE}"
    assert machine.refused("org/tiny:Q9", "no") == (
        f"org/tiny on the hub has no such GGUF file\n  value: Q9\n{CHOICE}"
    )
    hub.files = {f"tiny-Q{bits}.gguf": b"g" for bits in range(10, 22)}
    assert machine.refused("org/tiny", "no").endswith("/tiny-Q17.gguf\n    and 4 more")


def test_an_index_that_points_elsewhere(machine, hub):
    hub.files = OTHERS | {INDEX: index("../config.json")}
    assert "names '../config.json', which is not a file next to it" in machine.refused("org/tiny", "weights")


def test_without_the_library(machine, tmp_path):
    (tmp_path / "huggingface_hub.py").write_text("raise ImportError")
    machine.environment["PYTHONPATH"] = f"{tmp_path}{os.pathsep}{machine.environment.get('PYTHONPATH', '')}"
    assert machine.refused("org/tiny", "weights") == (
        "org/tiny: fetching from the hub needs a library: pip install 'zoo[hub]'"
    )


def test_repository_ids_are_recognized(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "checkpoints").mkdir()
    assert is_hub_id("org/name-1.5_b")
    assert hub_file("org/name-1.5_b") == ("org/name-1.5_b", "")
    assert hub_file("org/name/a-Q4_K_M.gguf") == ("org/name", "a-Q4_K_M.gguf")
    assert hub_file("org/name:Q4_K_M") == ("org/name", "Q4_K_M")
    for other in (
        "name",
        "a/b/c",
        "./name",
        "../name",
        "/name",
        "org/",
        "org/x.safetensors",
        "org/x.gguf",
        "org/name/a.safetensors",
        "org/name/../a.gguf",
        "checkpoints/name/a.gguf",
        "checkpoints/name:Q4",
        "checkpoints/gone",
        "",
    ):
        assert not is_hub_id(other), other
        assert hub_file(other) == ("", ""), other


@pytest.mark.slow
def test_weights_of_a_repository(machine, hub, tmp_path):
    spec = load("tiny-gpt")
    model = assemble(spec)
    source = RandomWeights(model, spec, seed=3)
    tensors = {n: torch.cat(list(source.pieces(n))).view(p.shape) for n, p in model.named_parameters()}
    save_file(tensors, tmp_path / SINGLE)
    hub.files = {SINGLE: (tmp_path / SINGLE).read_bytes(), "config.json": b'{"model_type": "zoo"}'}
    done = zoo("check", "tiny-gpt", "--weights", "org/tiny", "--json", cwd=tmp_path, env=machine.environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["behaviour"]["weights"] == f"org/tiny@{COMMIT[:7]}"
    done = zoo("check", "tiny-gpt", "--weights", "org/gone", cwd=tmp_path, env=machine.environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("org/gone is neither a path nor a public repository on the hub")
