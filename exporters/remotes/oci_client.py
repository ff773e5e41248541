"""A client for OCI registries, based on the ORAS library; import it only where that is installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import requests
from oras.container import Container
from oras.provider import Registry
from oras.utils import append_url_params

from zoo.integrity import BLOCK
from zoo.progress import Progress, Stage

_SECONDS = (10, 300)
"""Timeouts in seconds for a connection, and for an answer."""

_BYTES = {"Content-Type": "application/octet-stream"}


class Client(Registry):  # type: ignore[misc, unused-ignore]
    """A client that streams blobs in constant memory and reports errors at once.

    The library's own client reads whole blobs into memory, and waits two minutes for a registry that does not answer.
    """

    def __init__(self, host: str, *, insecure: bool) -> None:
        super().__init__(hostname=host, insecure=insecure)
        ask = self.session.request
        self.session.request = lambda *args, **settings: ask(*args, **{"timeout": _SECONDS, **settings})

    def do_request(self, *arguments: Any, **settings: Any) -> requests.Response:
        """Send a request, and repeat it with credentials where the registry requires them or they have expired."""
        had_token = getattr(self.auth, "token", None) is not None
        response: requests.Response = Registry.do_request.__wrapped__(self, *arguments, **settings)
        if response.status_code == 401 and had_token:
            self.auth.token = None
            response = Registry.do_request.__wrapped__(self, *arguments, **settings)
        return response

    def upload(self, path: Path, descriptor: dict[str, Any], place: Container, progress: Progress) -> None:
        """Send a file as a blob.  Raises ``requests.HTTPError``."""
        begun = self.do_request(f"{self.prefix}://{place.upload_blob_url()}", "POST", headers=dict(_BYTES))
        begun.raise_for_status()
        session = urljoin(begun.url, begun.headers["Location"])
        address = append_url_params(session, {"digest": descriptor["digest"]})
        total = path.stat().st_size
        body: Any = _Body(path, total, progress) if total else b""
        self.do_request(address, "PUT", data=body, headers=dict(_BYTES)).raise_for_status()

    def download(self, digest: str, size: int, target: Path, place: Container, progress: Progress) -> None:
        """Write a blob to a new file.  Raises ``requests.HTTPError``."""
        done = 0
        with self.get_blob(place, digest, stream=True) as response, target.open("xb") as file:
            response.raise_for_status()
            for block in response.iter_content(BLOCK):
                file.write(block)
                done += len(block)
                progress(Stage(f"fetch {target.name}", done, size))


class _Body:
    """The blocks of a file, which start again with every request, and their total length for the request's header."""

    def __init__(self, path: Path, length: int, progress: Progress) -> None:
        self._path, self._length, self._progress = path, length, progress

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[bytes]:
        done = 0
        with self._path.open("rb") as file:
            while block := file.read(BLOCK):
                done += len(block)
                self._progress(Stage(f"send {self._path.name}", done, self._length))
                yield block
