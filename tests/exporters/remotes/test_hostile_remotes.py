"""Remotes that lie: sizes, manifests and headers of a hostile registry, and links in a published directory."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import invoke, refused
from tests.exporters.remotes.files import contents

IMAGE = "application/vnd.oci.image.manifest.v1+json"
TITLE = "org.opencontainers.image.title"


class Registry:
    """A registry that answers as told: ``manifest`` is what it sends for a tag, ``blobs`` contents by digest."""

    def __init__(self) -> None:
        self.manifest: bytes | Callable[[], Iterator[bytes]] = b"{}"
        self.blobs: dict[str, Callable[[], Iterator[bytes]]] = {}
        self.status, self.headers = 200, dict[str, str]()
        self.sent = 0
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"

            def do_GET(self) -> None:
                self.send_response(registry.status)
                for name, value in registry.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Type", IMAGE)
                self.end_headers()
                digest = self.path.rpartition("/")[2]
                body = registry.blobs[digest]() if digest in registry.blobs else registry.body()
                try:
                    for block in body:
                        self.wfile.write(block)
                        registry.sent += len(block)
                except OSError:
                    pass  # the reader has left

            do_HEAD = do_GET  # noqa: N815

            def log_message(self, *arguments: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"oci://127.0.0.1:{self.server.server_port}/team/x:v1"

    def body(self) -> Iterator[bytes]:
        return iter([self.manifest]) if isinstance(self.manifest, bytes) else self.manifest()

    def serve(self, directory: Path) -> list[dict[str, Any]]:
        """Serve the files of an export; gives their layers."""
        layers = []
        for name, content in contents(directory).items():
            digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
            self.blobs[digest] = functools.partial(iter, [content])
            layers.append({"digest": digest, "size": len(content), "annotations": {TITLE: name}})
        self.manifest = json.dumps({"layers": layers}).encode()
        return layers


@pytest.fixture
def registry() -> Iterator[Registry]:
    found = Registry()
    thread = threading.Thread(target=found.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield found
    found.server.shutdown()
    thread.join()


def endless() -> Iterator[bytes]:
    while True:
        yield bytes(2**20)


def test_an_honest_one_serves(exports: Path, registry: Registry, tmp_path: Path) -> None:
    registry.serve(exports / "first")
    assert invoke("pull", registry.address, "-o", tmp_path / "out").exit_code == 0
    assert contents(tmp_path / "out") == contents(exports / "first")


@pytest.mark.parametrize("name", ["export.json", "spec.yaml", "model.onnx.data"])
def test_a_file_without_end_stops_at_its_stated_size(
    exports: Path, registry: Registry, tmp_path: Path, name: str
) -> None:
    layers = registry.serve(exports / "first")
    layer = next(each for each in layers if each["annotations"][TITLE] == name)
    registry.blobs[layer["digest"]] = endless
    said = refused("pull", registry.address, "-o", tmp_path / "out")
    assert f"it sends more than the stated {layer['size']:,} bytes of {name}" in said
    assert registry.sent < 32 * 2**20
    assert not any(tmp_path.glob("out*"))


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("spec.yaml", 10**12),
        ("model.onnx.data", 1),
        ("export.json", 10**12),
        ("README.md", 10**12),
        ("build.json", 2**62),
    ],
)
def test_a_stated_size_other_than_the_recorded_one_is_not_fetched(
    exports: Path, registry: Registry, tmp_path: Path, name: str, size: int
) -> None:
    layers = registry.serve(exports / "first")
    for layer in layers:
        if layer["annotations"][TITLE] == name:
            layer["size"] = size
            registry.blobs[layer["digest"]] = endless
    registry.manifest = json.dumps({"layers": layers}).encode()
    said = refused("pull", registry.address, "-o", tmp_path / "out")
    assert f"{registry.address} is damaged: {name} has {size:,} bytes, and " in said
    assert not any(tmp_path.glob("out*"))


LAYER = {"digest": f"sha256:{'0' * 64}", "size": 3, "annotations": {TITLE: "export.json"}}


@pytest.mark.parametrize(
    ("manifest", "rule"),
    [
        (endless, "it answers with more than 4 MiB"),
        (b"[" * 100_000, "is nested more than 64 levels deep"),
        (b'{"layers": [{"digest": "sha256:' + b"0" * 64 + b'", "size": 1e999}]}', "is not an artifact of files"),
        (json.dumps({"layers": [{**LAYER, "size": -1}]}).encode(), "is not an artifact of files"),
        (json.dumps({"layers": [{**LAYER, "size": 10**30}]}).encode(), "is not an artifact of files"),
        (json.dumps({"layers": [{**LAYER, "digest": "sha256:../../../x"}]}).encode(), "is not an artifact of files"),
        (json.dumps({"layers": [{**LAYER, "annotations": {TITLE: ["a"]}}]}).encode(), "is not an artifact of files"),
        (
            json.dumps({"layers": [{**LAYER, "annotations": {TITLE: "a\nb\x1b[2J"}}]}).encode(),
            "is not an artifact of files",
        ),
        (json.dumps({"layers": [{**LAYER, "annotations": 5}]}).encode(), "is not an artifact of files"),
        (json.dumps({"layers": [LAYER, LAYER]}).encode(), "has several files of one name"),
        (json.dumps({"layers": {"a": 3}}).encode(), "is not an artifact of files"),
        (b"\xff\xfe", "is not a JSON object\n  Choose another tag."),
        (b'{"layers": [' + b"9" * 5000 + b"]}", "is not"),
    ],
    ids=range(13),
)  # fmt: skip
def test_manifests(registry: Registry, tmp_path: Path, manifest: Any, rule: str) -> None:
    registry.manifest = manifest
    said = refused("pull", registry.address, "-o", tmp_path / "out")
    assert said.startswith(registry.address)
    assert rule in said
    assert registry.sent < 32 * 2**20


@pytest.mark.parametrize(
    "header",
    ["Bearer", "Bearer realm=", 'Bearer realm="', "Basic", "\x00", 'Bearer realm="ftp://x",service="y"', "," * 1000],
)  # fmt: skip
def test_headers_that_ask_for_credentials(registry: Registry, tmp_path: Path, header: str) -> None:
    registry.status, registry.headers = 401, {"WWW-Authenticate": header}
    said = refused("pull", registry.address, "-o", tmp_path / "out")
    assert said.startswith(registry.address)


def test_a_token_without_end(registry: Registry, tmp_path: Path) -> None:
    realm = registry.address.replace("oci://", "http://").rpartition("/team")[0]
    registry.status, registry.headers = 401, {"WWW-Authenticate": f'Bearer realm="{realm}/token",service="x"'}
    registry.manifest = endless
    assert "more than 4 MiB" in refused("pull", registry.address, "-o", tmp_path / "out")
    assert registry.sent < 64 * 2**20


@pytest.mark.parametrize(
    "name", ["model.onnx", "spec.yaml", "export.json", "README.md", "build.json", "probe.npz"]
)
@pytest.mark.parametrize("attack", ["link", "pipe"])
def test_a_published_directory_with_a_link_or_a_pipe(
    exports: Path, tmp_path: Path, name: str, attack: str
) -> None:
    shutil.copytree(exports / "first", tmp_path / "published")
    (tmp_path / "secret").write_text("a secret")
    (tmp_path / "published" / name).unlink()
    if attack == "link":
        (tmp_path / "published" / name).symlink_to("../secret")
    else:
        os.mkfifo(tmp_path / "published" / name)
    result = invoke("pull", tmp_path / "published", "-o", tmp_path / "out")
    if name == "README.md":  # not zoo's card, so that it is not part of the export
        assert not (tmp_path / "out" / name).exists()
    else:
        assert result.exit_code == 2, result.output
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "name",
    ["../x", "/etc/x", "a/../../x", "a\\b", "a\0b", ".", "", "a\nb", "model.onnx/", "./a", "a//b", "A" * 5000],
)  # fmt: skip
def test_names_that_lead_out_of_an_export(
    exports: Path, registry: Registry, tmp_path: Path, name: str
) -> None:
    shutil.copytree(exports / "first", tmp_path / "changed")
    manifest = json.loads((tmp_path / "changed" / "export.json").read_bytes())
    record = manifest["files"].pop("spec.yaml")
    manifest["files"][name] = record
    (tmp_path / "changed" / "export.json").write_text(json.dumps(manifest))
    layers = registry.serve(tmp_path / "changed")
    for layer in layers:
        if layer["annotations"][TITLE] == "spec.yaml":
            layer["annotations"][TITLE] = name
    registry.manifest = json.dumps({"layers": layers}).encode()
    for source in (registry.address, tmp_path / "changed"):
        refused("pull", source, "-o", tmp_path / "out")
        assert not any(tmp_path.glob("out*"))
    assert not (tmp_path / "x").exists()
    assert invoke("verify", tmp_path / "changed").exit_code == 2
