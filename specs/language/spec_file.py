"""Reading of spec files."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from specs.base.errors import Mark, Problem, SpecError
from specs.base.suggest import nearest, suggestion
from specs.language.document import MAX_BYTES, Document
from specs.language.reading import TOO_LARGE, read_text, refuse


def read_file(path: str | os.PathLike[str]) -> Document:
    """Read a YAML file of at most 1 MB of UTF-8, with or without a byte order mark.

    A pipe is read to its end; a pipe without a writer is refused. Raises `SpecError`, also for unreadable files.
    """
    source, file = os.fspath(path), Path(path)
    try:
        content = _content(source)
    except FileNotFoundError:
        refuse(source, "the file must exist", _near(file) or "Check the path.")
    except IsADirectoryError:
        names = ", ".join(_specs_in(file)[:5] or ["my-model.yaml"])
        refuse(source, "a spec must be a file, but this is a directory", f"Pass a file in it: {names}.")
    except PermissionError:
        rule = "the file must be readable, but permission is denied"
        refuse(source, rule, "Grant it, for example with chmod u+r.")
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        refuse(source, f"the file must be readable: {reason}", "Check the path.")
    if len(content) > MAX_BYTES:
        refuse(source, *TOO_LARGE)
    return read_text(_decoded(content, source), source)


def _content(source: str) -> bytes:
    """The first bytes of a file, up to one more than the limit."""
    # Without O_NONBLOCK, opening a named pipe blocks until it has a writer.
    descriptor = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError
        if not stat.S_ISREG(kind) and not stat.S_ISFIFO(kind):
            rule = "a spec must be a file or a pipe, but this is a device or a socket"
            refuse(source, rule, "Pass the path of a YAML file.")
        written = _first_written(source, descriptor) if stat.S_ISFIFO(kind) else b""
        with open(descriptor, "rb", closefd=False) as stream:
            return written + stream.read(MAX_BYTES + 1)
    finally:
        os.close(descriptor)


def _first_written(source: str, descriptor: int) -> bytes:
    """The bytes already in a pipe. Later reads block until its writers close it."""
    try:
        written = os.read(descriptor, MAX_BYTES)
    except BlockingIOError:  # a writer has opened it but not written yet
        written = b""
    else:
        if not written:
            refuse(source, "a pipe must have a writer", "Pass the path of a YAML file.")
    os.set_blocking(descriptor, True)
    return written


def _decoded(content: bytes, source: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        lines = content[: error.start].split(b"\n")
        mark = Mark(source, len(lines), len(lines[-1].decode("utf-8-sig")) + 1)
        utf16 = content[:2] in (b"\xff\xfe", b"\xfe\xff")
        content_kind = "UTF-16" if utf16 else f"the byte 0x{content[error.start]:02x}"
        rule = f"a spec must be UTF-8 text, but it contains {content_kind}"
        raise SpecError([Problem(rule, remedy="Save the file as UTF-8.", mark=mark)]) from None


def _near(file: Path) -> str:
    """A remedy for a missing file: the spec beside it with a similar name, whatever the suffix, or all of them."""
    by_stem = {Path(name).stem: name for name in _specs_in(file.parent)}
    near = nearest(file.stem, by_stem)
    return suggestion(by_stem[near] if near else "", by_stem.values())


def _specs_in(directory: Path) -> list[str]:
    try:
        return sorted(name for name in os.listdir(directory) if name.endswith((".yaml", ".yml")))
    except (OSError, ValueError):
        return []
