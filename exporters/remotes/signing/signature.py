"""Signing exports and checking their signatures, by OpenSSF Model Signing with a local key."""

from __future__ import annotations

import json
import os
import re
import tempfile
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exporters.remotes.artefact import Artefact
from exporters.remotes.signing.bill_of_materials import bill_of_materials
from specs.base.errors import UserError
from zoo.files.destination import MANIFEST
from zoo.files.ownership import BILL_OF_MATERIALS, SIGNATURE, own_files
from zoo.files.reading import check_regular, read_regular, unreadable
from zoo.files.whole import write_file

CURVES = "P-256, P-384 or P-521"

_MISMATCH = re.compile(r"Hash mismatch for \\?'(.+?)\\?': Expected")
"""A changed file in the library's message, which is a list as Python prints it."""


@dataclass(frozen=True)
class Signed:
    """The signed files, the signature, and the bill of materials, which is one of the files."""

    files: tuple[str, ...]
    signature: Path
    bill_of_materials: Path


@dataclass(frozen=True)
class SignatureCheck:
    """The result of checking a signature: the files that it covers, and the ``problem``, empty if it is valid."""

    files: tuple[str, ...]
    problem: str = ""

    @property
    def valid(self) -> bool:
        """Return whether the export is unchanged since the owner of the key signed it."""
        return not self.problem

    @property
    def fault(self) -> str:
        """Return the problem as a sentence, for an invalid signature."""
        return f"The signature does not hold: {self.problem}"

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {"valid": self.valid, "problem": self.problem, "files": list(self.files)}


def sign(artefact: Artefact, private_key: Path) -> Signed:
    """Write the bill of materials of an export and a signature of all its files.

    ``private_key`` is a PEM file with an elliptic-curve key. Raises :class:`specs.base.errors.UserError` for other keys.
    """
    directory = artefact.directory
    with _library():
        from model_signing.signing import Config
    with _key(private_key, "private"):
        config = Config().use_elliptic_key_signer(private_key=private_key)
    bill = directory / BILL_OF_MATERIALS
    write_file(bill, bill_of_materials(artefact))
    files = _signed_files(directory)
    if unsafe := _unsafe(directory, files):
        raise UserError(unsafe)
    config.set_hashing_config(_hashing(directory, files))
    with tempfile.TemporaryDirectory() as folder, _symbolic_links(directory):
        made = Path(folder, SIGNATURE)
        config.sign(directory, made)
        write_file(directory / SIGNATURE, made.read_bytes())
    return Signed(files, directory / SIGNATURE, bill)


def check_signature(directory: Path, public_key: Path) -> SignatureCheck:
    """Check that every file of an export is unchanged since the owner of a key signed it.

    The user's own files in the directory are ignored. Raises :class:`specs.base.errors.UserError` if the export, the
    signature or the key is missing.
    """
    if not os.path.lexists(directory / SIGNATURE):
        raise UserError(f"{directory} is not signed (no {SIGNATURE}).\n  Sign it with zoo sign.")
    with _library():
        from model_signing.verifying import Config
    with _key(public_key, "public"):
        config = Config().use_elliptic_key_verifier(public_key=public_key)
    wanted = _signed_files(directory)
    if unsafe := _unsafe(directory, (*wanted, SIGNATURE)):
        return SignatureCheck((), unsafe)
    config.set_ignore_unsigned_files(True)
    try:
        config.verify(directory, directory / SIGNATURE)
        files = _covered(directory / SIGNATURE)
    except Exception as error:  # raised by several libraries: the signature may be any file
        return SignatureCheck((), _reason(error))
    missing = sorted({*wanted} - {*files})
    return SignatureCheck(files, f"not signed: {', '.join(missing)}" if missing else "")


def _signed_files(directory: Path) -> tuple[str, ...]:
    own = own_files(directory, MANIFEST)
    if own is None:
        raise UserError(f"{directory} is not an export (no valid {MANIFEST}).\n  Export the model again.")
    return tuple(sorted(own - {SIGNATURE}))


def _unsafe(directory: Path, files: Sequence[str]) -> str:
    """Return why a file must not be read, as the library would wait for a pipe; empty if there is no such file."""
    for name in files:
        try:
            check_regular(directory / name, directory)
        except FileNotFoundError:
            continue
        except OSError as error:
            return unreadable(directory / name, error)
    return ""


def _hashing(directory: Path, files: tuple[str, ...]) -> Any:
    """Return the configuration that hashes only the given files of a directory."""
    from model_signing import hashing

    class Chosen(hashing.Config):  # type: ignore[misc, unused-ignore]
        def hash(self, model_path: Any, *, files_to_hash: Any = None) -> Any:
            return super().hash(model_path, files_to_hash=[directory / name for name in files])

    chosen = Chosen()
    chosen.set_ignored_paths(paths=[Path(SIGNATURE)], ignore_git_paths=False)
    return chosen


def _covered(signature: Path) -> tuple[str, ...]:
    """Return the files listed in a verified signature."""
    envelope = json.loads(read_regular(signature, signature.parent))["dsseEnvelope"]
    statement = json.loads(b64decode(envelope["payload"]))
    return tuple(resource["name"] for resource in statement["predicate"]["resources"])


def _reason(error: Exception) -> str:
    from cryptography.exceptions import InvalidSignature

    text = str(error)
    if isinstance(error, InvalidSignature):
        return "the signature was not made with this key"
    if text.startswith("Key mismatch"):
        return "the signature was made with another key"
    if text.startswith("Signature mismatch"):
        changed = _MISMATCH.findall(text)
        return f"files have changed since they were signed: {', '.join(changed) or text.partition(': ')[2]}"
    return f"{SIGNATURE} is damaged: {text or type(error).__name__}"


@contextmanager
def _library() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise UserError(
            f"Signatures need a library, and {error.name} is not installed.\n  Install it: pip install 'zoo[sign]'."
        ) from None


@contextmanager
def _key(path: Path, kind: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.\n  Check the path of the key.") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path} must be a {kind} key on an elliptic curve ({CURVES}), in PEM and not encrypted: {error}.\n"
            "  Make one with openssl ecparam -name prime256v1 -genkey -noout, and its public key with openssl ec -pubout."
        ) from None


@contextmanager
def _symbolic_links(directory: Path) -> Iterator[None]:
    try:
        yield
    except ValueError as error:  # linked files lie elsewhere and may change there
        raise UserError(
            f"{directory} cannot be signed: {error}.\n  Replace links by the files they name."
        ) from None
