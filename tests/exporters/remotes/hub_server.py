"""A stand-in for the Hugging Face hub: one repository with commits, branches and large files.

No server of the hub can be had to run locally, so this answers the requests that the hub's own library makes for listing,
uploading (preupload, Git LFS batch, commit) and downloading; it knows nothing of zoo.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.answering import Answering

Files = dict[str, bytes]


class Hub(ThreadingHTTPServer):
    """The repository org/tiny: its branches, its commits by their ids, and its large files by SHA-256.

    ``meanwhile`` is what someone else commits while files are uploaded.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.commits: dict[str, Files] = {}
        self.parents: dict[str, str | None] = {}
        self.branches: dict[str, str] = {}
        self.large: dict[str, bytes] = {}
        self.uploads: list[str] = []
        self.refuse_commits = False
        self.meanwhile: Files = {}
        self.writable = True
        self.commit("main", {".gitattributes": b"*.onnx filter=lfs\n"})

    def commit(self, branch: str, files: Files) -> str:
        """Make a commit with these files on a branch."""
        commit = hashlib.sha1(f"{len(self.commits)}".encode()).hexdigest()
        self.commits[commit], self.parents[commit] = files, self.branches.get(branch)
        self.branches[branch] = commit
        return commit

    def files(self, revision: str = "main") -> Files:
        """The files of a branch or a commit."""
        return self.commits[self.branches.get(revision, revision)]


@contextmanager
def running() -> Iterator[Hub]:
    """A server that answers until the block ends."""
    server = Hub()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def is_large(name: str, content: bytes) -> bool:
    """What the hub stores by Git LFS."""
    return name.endswith(".onnx") or len(content) > 10_000


def git_digest(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Answer(Answering):
    server: Hub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:  # noqa: N802
        path = unquote(urlsplit(self.path).path)
        api = "/api/models/org/tiny"
        if path == api or path.startswith(f"{api}/revision/"):
            revision = path.removeprefix(f"{api}/revision/") if path != api else "main"
            if revision not in {**self.server.branches, **self.server.commits}:
                return self._json({}, 404, {"X-Error-Code": "RevisionNotFound"})
            commit = self.server.branches.get(revision, revision)
            siblings = [{"rfilename": name} for name in self.server.files(commit)]
            return self._json({"id": "org/tiny", "sha": commit, "siblings": siblings})
        if path.startswith(f"{api}/tree/"):
            files = self.server.files(path.removeprefix(f"{api}/tree/"))
            return self._json([_entry(name, content) for name, content in files.items()])
        if path.startswith(f"{api}/commits/"):
            return self._json(list(self._history(path.removeprefix(f"{api}/commits/"))))
        if path.startswith("/org/tiny/resolve/"):
            commit, _, name = path.removeprefix("/org/tiny/resolve/").partition("/")
            content = self.server.files(commit)[name]
            etag = hashlib.sha256(content).hexdigest()
            return self.send(content, 200, {"ETag": f'"{etag}"', "X-Repo-Commit": commit})
        return self._json({}, 404, {"X-Error-Code": "RepoNotFound"})

    do_HEAD = do_GET  # noqa: N815

    def do_POST(self) -> None:  # noqa: N802
        path = unquote(urlsplit(self.path).path)
        body = self._body()
        api = "/api/models/org/tiny"
        if not self.server.writable:
            return self._json({"error": "Forbidden"}, 403)
        if path == "/api/validate-yaml":  # the front matter of a model card
            return self._json({"errors": [], "warnings": []})
        if path.startswith(f"{api}/preupload/"):
            found = [
                {
                    "path": file["path"],
                    "uploadMode": "lfs" if is_large(file["path"], b"x" * file["size"]) else "regular",
                    "shouldIgnore": False,
                    "oid": None,
                }
                for file in json.loads(body)["files"]
            ]
            return self._json({"files": found})
        if path == "/org/tiny.git/info/lfs/objects/batch":
            if self.server.meanwhile:
                self.server.commit("main", {**self.server.files(), **self.server.meanwhile})
                self.server.meanwhile = {}
            return self._json({"objects": [self._action(each) for each in json.loads(body)["objects"]]})
        if path.startswith(f"{api}/branch/"):
            self.server.branches[path.removeprefix(f"{api}/branch/")] = json.loads(body)["startingPoint"]
            return self._json({})
        if path.startswith(f"{api}/commit/"):
            return self._commit(path.removeprefix(f"{api}/commit/"), body)
        return self._json({}, 404)

    def do_PUT(self) -> None:  # noqa: N802
        digest = self.path.removeprefix("/lfs/")
        content = self._body()
        assert hashlib.sha256(content).hexdigest() == digest
        self.server.large[digest] = content
        self.server.uploads.append(digest)
        return self.send(b"", 200, {})

    def _action(self, wanted: dict[str, Any]) -> dict[str, Any]:
        if wanted["oid"] in self.server.large:
            return dict(wanted)
        return {**wanted, "actions": {"upload": {"href": f"{self.server.url}/lfs/{wanted['oid']}"}}}

    def _commit(self, branch: str, body: bytes) -> None:
        lines = [json.loads(line) for line in body.splitlines()]
        header = lines[0]["value"]
        if self.server.refuse_commits:
            return self._json({"error": "no"}, 400)
        if header.get("parentCommit") not in (None, self.server.branches[branch]):
            return self._json({"error": "A commit has happened since. Please refresh and try again."}, 412)
        files = dict(self.server.files(branch))
        for line in lines[1:]:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.server.large[value["oid"]]
            else:
                assert line["key"] == "deletedFile"
                del files[value["path"]]
        commit = self.server.commit(branch, files)
        url = f"{self.server.url}/org/tiny/commit/{commit}"
        return self._json({"success": True, "commitOid": commit, "commitUrl": url, "hookOutput": ""})

    def _history(self, revision: str) -> Iterator[dict[str, Any]]:
        commit: str | None = self.server.branches.get(revision, revision)
        while commit is not None:
            date = "2026-01-01T00:00:00.000Z"
            yield {"id": commit, "authors": [], "date": date, "title": "t", "message": ""}
            commit = self.server.parents[commit]

    def _body(self) -> bytes:
        if (length := self.headers.get("Content-Length")) is not None:
            return self.rfile.read(int(length))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _json(self, data: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.send(json.dumps(data).encode(), status, {"Content-Type": "application/json", **(headers or {})})


def _entry(name: str, content: bytes) -> dict[str, Any]:
    entry = {"type": "file", "path": name, "size": len(content), "oid": git_digest(content)}
    if is_large(name, content):
        digest = hashlib.sha256(content).hexdigest()
        entry["lfs"] = {"oid": digest, "size": len(content), "pointerSize": 130}
    return entry
