"""Remotes by their addresses."""

from __future__ import annotations

import re
from pathlib import Path

from exporters.remotes.remote import Remote
from specs.base.errors import UserError

FORMS = "hf://ORG/NAME[@BRANCH], oci://REGISTRY/NAME:TAG, or a path"

_HUB = re.compile(r"(?P<repository>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@(?P<branch>[^@\s]+))?")
_PART = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_OCI = re.compile(
    r"(?P<registry>[A-Za-z0-9.-]*[.:][A-Za-z0-9.:-]*|localhost)/"
    rf"(?P<name>{_PART}(?:/{_PART})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{0,127})|@(?P<digest>sha256:[0-9a-f]{64}))"
)


def remote_of(address: str) -> Remote:
    """Return the remote at an address. Raises :class:`specs.base.errors.UserError` for invalid addresses."""
    scheme, separator, rest = address.partition("://")
    if not separator:
        from exporters.remotes.folder import Folder

        return Folder(Path(address))
    if scheme == "hf":
        match = _HUB.fullmatch(rest)
        if match is None:
            raise _wrong(address, "hf://ORG/NAME or hf://ORG/NAME@BRANCH")
        from exporters.remotes.hub import HubRepository

        return HubRepository(match["repository"], match["branch"])
    if scheme == "oci":
        match = _OCI.fullmatch(rest)
        if match is None:
            raise _wrong(address, "oci://REGISTRY/NAME:TAG, such as oci://ghcr.io/org/model:v1")
        from exporters.remotes.oci import OciArtifact

        return OciArtifact(match["registry"], match["name"], match["tag"] or match["digest"])
    raise _wrong(address, FORMS)


def _wrong(address: str, form: str) -> UserError:
    return UserError(f"The address of a remote must be {form}.\n  value: {address!r}")
