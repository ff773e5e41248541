"""Handlers of small servers that stand in for services."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler


class Answering(BaseHTTPRequestHandler):
    """Sends whole answers, and logs nothing."""

    def send(self, content: bytes, status: int, headers: dict[str, str]) -> None:
        """Answer with a content, of which HEAD has the length alone."""
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""
