"""The conditions of an answer: a local address, the page's own origin, the token, and a bounded body."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from types import MappingProxyType

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = 4_000_000
"""The most bytes of a request: a spec of 1 MB, escaped, and its base."""


class Guard:
    """Refuses requests of other pages and other programs.

    The token is the first part of every path.  ``Host`` must be the local address, which keeps out names that other sites
    point here; ``Origin``, where a browser sends one, must be the page's own.
    """

    def __init__(
        self,
        app: ASGIApp,
        token: str,
        port: int,
        nonce: str,
        binary: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """``binary``: the paths whose bodies are bytes, each with the most of them."""
        self.app, self.token, self.binary = app, token, binary
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self.headers = _headers(nonce)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        request = Request(scope)
        refusal = self._refusal(request)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [(name.encode(), value.encode()) for name, value in self.headers.items()]
                message = {**message, "headers": [*message["headers"], *headers]}
            await send(message)

        if refusal is not None:
            await refusal(scope, receive, send_with_headers)
            return
        path = self._inner(scope)
        bounded = _bounded(receive, self.binary.get(path, MAX_BODY))
        await self.app({**scope, "path": path}, bounded, send_with_headers)

    def _inner(self, scope: Scope) -> str:
        """The path after the token."""
        path: str = scope["path"][len(self.token) + 1 :]
        return path or "/"

    def _refusal(self, request: Request) -> Response | None:
        headers = request.headers
        host = headers.get("host", "")
        if host not in self.hosts:
            return PlainTextResponse("Another host: open the address that zoo studio printed.", 403)
        origin = headers.get("origin")
        if origin is not None and origin not in {f"http://{name}" for name in self.hosts}:
            return PlainTextResponse("Another origin: only the studio's own page may ask.", 403)
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return PlainTextResponse("Another site: open the address that zoo studio printed.", 403)
        token = request.scope["path"].split("/")[1] if "/" in request.scope["path"] else ""
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            return PlainTextResponse("No token: open the address that zoo studio printed.", 403)
        size, path = headers.get("content-length", "0"), self._inner(request.scope)
        most = self.binary.get(path, MAX_BODY)
        if not size.isdecimal() or int(size) > most:
            return PlainTextResponse(f"Too large: a request has at most {most:,} bytes.", 413)
        kind = "application/octet-stream" if path in self.binary else "application/json"
        if request.method == "POST" and not headers.get("content-type", "").startswith(kind):
            return PlainTextResponse(f"A request is {kind}.", 415)
        return None


def _headers(nonce: str) -> Mapping[str, str]:
    policy = (
        f"default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return {
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "cache-control": "no-store",
    }


class TooLargeError(Exception):
    """A body without a stated length that exceeds the limit."""


def _bounded(receive: Receive, most: int) -> Receive:
    """Receive at most some bytes of a body whose length is not stated."""
    size = 0

    async def bounded() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > most:
            raise TooLargeError
        return message

    return bounded
