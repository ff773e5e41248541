"""A client for OCI registries, based on the ORAS library; import it only if that is installed."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import requests
from oras.container import Container
from oras.provider import Registry
from oras.utils import append_url_params

from zoo.core.progress import Progress, Stage
from zoo.files.reading import open_regular
from zoo.record.integrity import BLOCK

logging.getLogger("oras.logger").addHandler(logging.NullHandler())  # its warnings are in our messages

_SECONDS = (10, 300)
"""Timeouts in seconds for a connection, and for an answer."""

_LONGEST = 4 * 2**20
"""The longest answer in bytes, other than a blob: the limit that the distribution specification recommends for manifests."""

_BLOCK = 2**16
_BYTES = {"Content-Type": "application/octet-stream"}


class Client(Registry):  # type: ignore[misc, unused-ignore]
    """A client that streams blobs in constant memory and reports errors at once.

    The library's own client reads whole blobs into memory, and waits two minutes for a registry that does not answer.
    """

    def __init__(self, host: str, *, insecure: bool) -> None:
        super().__init__(hostname=host, insecure=insecure)
        for session in (self.session, self.auth.session):
            session.request = functools.partial(_request, session.request)

    def do_request(self, *arguments: Any, **settings: Any) -> requests.Response:
        """Send a request, and repeat it with credentials if the registry requires them or they have expired."""
        had_token = getattr(self.auth, "token", None) is not None
        response = self._asked(*arguments, **settings)
        if response.status_code == 401 and had_token:
            self.auth.token = None
            response = self._asked(*arguments, **settings)
        return response

    def _asked(self, *arguments: Any, **settings: Any) -> requests.Response:
        try:
            response: requests.Response = Registry.do_request.__wrapped__(self, *arguments, **settings)
        except (AttributeError, TypeError, KeyError, IndexError):  # the library expects a well-formed header
            raise ValueError("its request for authentication cannot be understood") from None
        return response

    def upload(
        self, path: Path, descriptor: dict[str, Any], container: Container, progress: Progress
    ) -> None:
        """Send a file as a blob.  Raises ``requests.HTTPError``."""
        begun = self.do_request(
            f"{self.prefix}://{container.upload_blob_url()}", "POST", headers=dict(_BYTES)
        )
        begun.raise_for_status()
        if "Location" not in begun.headers:
            raise requests.RequestException("it does not say where to upload to")
        session = urljoin(begun.url, begun.headers["Location"])
        address = append_url_params(session, {"digest": descriptor["digest"]})
        total = path.stat().st_size
        body: Any = _Body(path, total, progress) if total else b""
        self.do_request(address, "PUT", data=body, headers=dict(_BYTES)).raise_for_status()

    def download(
        self, digest: str, size: int, target: Path, container: Container, progress: Progress
    ) -> None:
        """Write a blob of a stated size to a new file.  Raises ``requests.RequestException``, also if it is larger."""
        done = 0
        with self.get_blob(container, digest, stream=True) as response, target.open("xb") as file:
            response.raise_for_status()
            for block in response.iter_content(BLOCK):
                done += len(block)
                if done > size:
                    raise requests.RequestException(
                        f"it sends more than the stated {size:,} bytes of {target.name}"
                    )
                file.write(block)
                progress(Stage(f"fetch {target.name}", done, size))


def _request(ask: Callable[..., requests.Response], *arguments: Any, **settings: Any) -> requests.Response:
    """Send a request with time limits; an answer that is not streamed has a limited length."""
    streamed = settings.pop("stream", False)
    response = ask(*arguments, **{"timeout": _SECONDS, **settings, "stream": True})
    if not streamed:
        with response:
            content = b""
            for block in response.iter_content(_BLOCK):
                content += block
                if len(content) > _LONGEST:
                    raise requests.RequestException(f"it answers with more than {_LONGEST // 2**20} MiB")
        response._content = content
    return response


class _Body:
    """The blocks of a file, which start again with every request, and their total length for the request's header."""

    def __init__(self, path: Path, length: int, progress: Progress) -> None:
        self._path, self._length, self._progress = path, length, progress

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[bytes]:
        done = 0
        with open_regular(self._path, self._path.parent) as file:
            while block := file.read(min(BLOCK, self._length - done)):
                done += len(block)
                self._progress(Stage(f"send {self._path.name}", done, self._length))
                yield block
