"""A gate before a registry that lets requests with a token through, as hosted registries do."""

from __future__ import annotations

import http.client
import json
import threading
from http.server import ThreadingHTTPServer
from typing import Any

from tests.answering import Answering

USES = 4
"""How many requests a token is good for."""


class TokenGate(ThreadingHTTPServer):
    """Gives tokens to anyone while it ``issues`` them, and passes requests on to a registry."""

    def __init__(self, registry: str) -> None:
        super().__init__(("127.0.0.1", 0), Gate)
        self.registry = registry
        self.host = f"127.0.0.1:{self.server_address[1]}"
        self.issues = True
        self.issued = 0
        self.uses = USES

    def __enter__(self) -> TokenGate:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.shutdown()
        self.server_close()


class Gate(Answering):
    server: TokenGate

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.startswith("/token"):
            return self._token()
        self.server.uses += 1
        given = self.headers.get("Authorization")
        if given != f"Bearer {self.server.issued}" or self.server.uses > USES:
            realm = f'Bearer realm="http://{self.server.host}/token",service="test"'
            return self.send(b"{}", 401, {"Www-Authenticate": realm})
        registry = http.client.HTTPConnection(self.server.registry, timeout=200)
        passed = {
            key: value for key, value in self.headers.items() if key.lower() not in ("host", "authorization")
        }
        registry.request(self.command, self.path, body or None, {**passed, "Host": self.server.host})
        response = registry.getresponse()
        content = response.read()
        headers = {key: value for key, value in response.getheaders() if key.lower() != "content-length"}
        return self.send(content, response.status, headers)

    do_GET = do_HEAD = do_POST = do_PUT = _answer  # noqa: N815

    def _token(self) -> None:
        if not self.server.issues:
            return self.send(b"{}", 403, {})
        self.server.issued += 1
        self.server.uses = 0
        return self.send(json.dumps({"token": str(self.server.issued)}).encode(), 200, {})
