"""A tag of an OCI registry as a remote: an artifact with one layer for each file, which ``oras pull`` reads, too."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from exporters.remotes.artefact import Artefact, model_name
from exporters.remotes.remote import FileChange, RemoteFile
from specs.base.errors import UserError
from zoo.core.progress import Progress
from zoo.files.destination import MANIFEST
from zoo.files.json_values import parse_object
from zoo.files.ownership import BILL_OF_MATERIALS, BUILD, SIGNATURE
from zoo.record.integrity import sha256_of
from zoo.record.manifest import Manifest
from zoo.record.records import FileRecord

if TYPE_CHECKING:
    from oras.container import Container

    from exporters.remotes.oci_client import Client

ARTIFACT_TYPE: Final = "application/vnd.zoo.export.v1+json"
GRAPH, WEIGHTS, RECORD, FILE = (
    f"application/vnd.zoo.export.{kind}" for kind in ("graph.v1", "weights.v1", "record.v1+json", "file.v1")
)
"""The media types of layers: graphs, the files of their weights, export.json and build.json, and all other files."""

_STANDARD = {
    MANIFEST: RECORD,
    BUILD: RECORD,
    SIGNATURE: "application/vnd.dev.sigstore.bundle.v0.3+json",
    BILL_OF_MATERIALS: "application/vnd.cyclonedx+json",
}
_TITLE = "org.opencontainers.image.title"
_IMAGE = "application/vnd.oci.image.manifest.v1+json"
_ACCEPTED = ", ".join(
    (
        _IMAGE,
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
    )
)
"""The media types accepted for a tag, including foreign ones: without them, a registry would report that the tag does not
exist."""
_EMPTY = b"{}"
_EMPTY_TYPE = "application/vnd.oci.empty.v1+json"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_LOCAL = ("localhost", "127.0.0.1", "[::1]")


class OciArtifact:
    """A tag or digest of a repository in a registry. Local registries are accessed without TLS."""

    exclusive = True

    def __init__(self, registry: str, name: str, reference: str) -> None:
        self._registry, self._name, self._reference = registry, name, reference
        self._layers: dict[str, dict[str, Any]] = {}
        with self._explained():
            self._client, self._place = self._open()

    def __str__(self) -> str:
        separator = "@" if self._is_digest else ":"
        return f"oci://{self._registry}/{self._name}{separator}{self._reference}"

    @property
    def _is_digest(self) -> bool:
        return self._reference.startswith("sha256:")

    def listing(self) -> Mapping[str, RemoteFile]:
        """Return the layers by title, or by digest where they have none. Raises :class:`specs.base.errors.UserError`."""
        with self._explained():
            response = self._client.do_request(self._manifest_url, "GET", headers={"Accept": _ACCEPTED})
            if response.status_code == 404:
                return {}
            response.raise_for_status()
            content: bytes = response.content
        if self._is_digest and f"sha256:{hashlib.sha256(content).hexdigest()}" != self._reference:
            raise UserError(
                f"{self} is damaged: the registry's contents do not match the digest.\n  Pull from another registry."
            )
        layers = parse_object(content, str(self), UserError, "\n  Choose another tag.").get("layers")
        if not isinstance(layers, list) or not all(map(_is_layer, layers)):
            raise UserError(f"{self} is not an artifact of files.\n  Choose another tag.")
        self._layers = {
            (layer.get("annotations") or {}).get(_TITLE, layer["digest"]): layer for layer in layers
        }
        if len(self._layers) < len(layers):
            raise UserError(f"{self} has several files of one name.\n  Choose another tag.")
        return {
            name: RemoteFile(layer["size"], layer["digest"].removeprefix("sha256:"))
            for name, layer in self._layers.items()
        }

    def has_content(self, record: FileRecord) -> bool:
        with self._explained():
            return bool(self._client.blob_exists({"digest": f"sha256:{record.sha256}"}, self._place))

    def fetch(self, name: str, target: Path, progress: Progress) -> None:
        layer = self._layers[name]
        target.parent.mkdir(parents=True, exist_ok=True)
        with self._explained():
            self._client.download(layer["digest"], layer["size"], target, self._place, progress)
        if f"sha256:{sha256_of(target)}" != layer["digest"]:
            raise UserError(
                f"{self} is damaged: the contents of {name} do not match its digest.\n  Run the command again."
            )

    def send(self, artefact: Artefact, changes: Sequence[FileChange], progress: Progress) -> str:
        """Send the missing contents, then move the tag; return the address by digest.

        Contents from an interrupted push stay in the registry and are not sent again.
        """
        if self._is_digest:
            raise UserError(f"{self} names contents by digest.\n  Publish to a tag: oci://REGISTRY/NAME:TAG.")
        with self._explained():
            for change in changes:
                if change.sent:
                    path = artefact.directory / change.name
                    layer = layer_of(change.name, artefact.files[change.name], artefact.record.manifest)
                    self._client.upload(path, layer, self._place, progress)
            empty = _empty()
            if not self._client.blob_exists(empty, self._place):
                self._upload_empty(empty, progress)
            content = json.dumps(manifest_of(artefact), indent=2).encode()
            self._client.do_request(
                self._manifest_url, "PUT", data=content, headers={"Content-Type": _IMAGE}
            ).raise_for_status()
        return f"oci://{self._registry}/{self._name}@sha256:{hashlib.sha256(content).hexdigest()}"

    def _upload_empty(self, descriptor: dict[str, Any], progress: Progress) -> None:
        import tempfile

        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "config.json")
            path.write_bytes(_EMPTY)
            self._client.upload(path, descriptor, self._place, progress)

    @property
    def _manifest_url(self) -> str:
        return f"{self._client.prefix}://{self._place.manifest_url()}"

    def _open(self) -> tuple[Client, Container]:
        from oras.container import Container

        from exporters.remotes.oci_client import Client

        host = self._registry
        client = Client(host, insecure=host.rpartition(":")[0] in _LOCAL or host in _LOCAL)
        container = Container(
            f"{self._name}{'@' if self._is_digest else ':'}{self._reference}", registry=host
        )
        client.auth.load_configs(container)
        return client, container

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            import requests
            from oras.auth import AuthenticationException
        except ImportError:
            raise UserError(
                f"{self._registry}: registries need a library.\n  Install it: pip install 'zoo[oci]'."
            ) from None
        login = f"Check the name, or log in: docker login {self._registry}."
        try:
            yield
        except requests.HTTPError as error:
            status = error.response.status_code if error.response is not None else 0
            remedy = login if status in (401, 403, 404) else "Run the command again."
            raise UserError(f"{self}: the registry answers {status}.\n  {remedy}") from None
        except requests.RequestException as error:
            raise UserError(
                f"{self} cannot be reached: {error}.\n  Check the registry and the network."
            ) from None
        except (AuthenticationException, ValueError) as error:
            raise UserError(f"{self}: the registry refuses access: {error}\n  {login}") from None


def _is_layer(layer: Any) -> bool:
    """Whether a layer of a manifest has a digest, a size, and a title that can be shown, if any."""
    match layer:
        case {"digest": str(digest), "size": int(size)} if _DIGEST.fullmatch(digest) and 0 <= size < 2**63:
            annotations = layer.get("annotations") or {}
            title = annotations.get(_TITLE, digest) if isinstance(annotations, dict) else None
            return isinstance(title, str) and title.isprintable()
    return False


def manifest_of(artefact: Artefact) -> dict[str, Any]:
    """Return the OCI manifest of an artefact, a function of its files: equal artefacts have equal digests."""
    manifest = artefact.record.manifest
    return {
        "schemaVersion": 2,
        "mediaType": _IMAGE,
        "artifactType": ARTIFACT_TYPE,
        "config": _empty(),
        "layers": [layer_of(name, record, manifest) for name, record in artefact.files.items()],
        "annotations": {
            "org.opencontainers.image.title": model_name(artefact.directory),
            "vnd.zoo.export": artefact.digest,
            "vnd.zoo.target": manifest.target,
            "vnd.zoo.precision": manifest.precision,
            "vnd.zoo.layout": manifest.layout,
        },
    }


def layer_of(name: str, record: FileRecord, manifest: Manifest) -> dict[str, Any]:
    """Return the descriptor of a file."""
    media_type = _STANDARD.get(
        name, GRAPH if name in manifest.graphs else WEIGHTS if name in manifest.tensors else FILE
    )
    return {
        "mediaType": media_type,
        "digest": f"sha256:{record.sha256}",
        "size": record.size,
        "annotations": {_TITLE: name},
    }


def _empty() -> dict[str, Any]:
    return {
        "mediaType": _EMPTY_TYPE,
        "digest": f"sha256:{hashlib.sha256(_EMPTY).hexdigest()}",
        "size": len(_EMPTY),
    }
