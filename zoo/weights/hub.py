"""Repositories of the Hugging Face hub: the needed files, fetched once and cached by the hub's own library."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from specs.base.errors import UserError
from specs.language.reference import hub_file, is_hub_id
from zoo.files.reading import read_regular
from zoo.weights.hub_gguf import chosen_gguf, has_gguf_alone
from zoo.weights.modules import DOCUMENT, QUERY, ROUTER, ROUTES, SIDE_LAYERS, body_directory

_INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_DESCRIPTION = (
    "README.md", "config.json", "gliner_config.json", "hf_quant_config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "tokenizer.model", "special_tokens_map.json",
    "added_tokens.json", "vocab.json", "vocab.txt", "merges.txt", "spiece.model", "spm.model", "sentencepiece.bpe.model", *_INDEXES,
    "adapter_config.json", "modules.json", "sentence_bert_config.json", "config_sentence_transformers.json", "[0-9]_[A-Z]*/config.json",
    ROUTES, *(f"{route}_[0-9]_*/*.json" for route in (QUERY, DOCUMENT)), f"[0-9]_{ROUTER}/*.json", f"[0-9]_{ROUTER}/*/*.json",
    *(f"{layer}.pt" for layer in SIDE_LAYERS),
)  # fmt: skip


_REPOSITORY = "models--"
"""The beginning of the name of a repository's directory in the cache."""

FETCHING, PUBLISHING = ("fetching from", "fetched"), ("publishing to", "published")
"""The verb for an access to a repository, in messages."""


class HubError(UserError):
    """A repository is missing, may not be read, or cannot be reached."""


def located(reference: str, *, weights: bool) -> Path:
    """The path that a user named, or the directory of a repository that is none, fetched as by :func:`fetch`.

    For the hub's own directory of a repository, which holds snapshots, it is the snapshot in use. Raises :class:`HubError`.
    """
    return fetch(reference, weights=weights) if hub_file(reference)[0] else snapshot_of(Path(reference))


def snapshot_of(directory: Path) -> Path:
    """Return the snapshot of a repository's directory in the hub's cache; other paths are unchanged.

    Raises :class:`HubError` where there are several, and no branch main says which.
    """
    snapshots_directory = directory / "snapshots"
    if not os.path.isdir(snapshots_directory) or not directory.resolve().name.startswith(_REPOSITORY):
        return directory
    snapshots = sorted(entry.name for entry in snapshots_directory.iterdir() if entry.is_dir())
    if (main := _branch_main(directory)) in snapshots:
        return snapshots_directory / main
    if len(snapshots) != 1:
        listed = ", ".join(snapshots[:4]) or "none"
        raise HubError(
            f"{directory} is a repository in the hub's cache, and its snapshot in use is unknown\n  value: {listed}\n"
            + (
                f"  Pass one of them, such as {snapshots_directory / snapshots[0]}."
                if snapshots
                else "  Fetch the repository again."
            )
        )
    return snapshots_directory / snapshots[0]


def _branch_main(repository: Path) -> str:
    """The snapshot that the branch main of a repository in the hub's cache names; empty where there is none."""
    try:
        return read_regular(repository / "refs" / "main", repository).decode().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def repository_name(directory: Path) -> str | None:
    """The name of the repository whose snapshot in the hub's cache a directory is; None for others."""
    parent = directory.absolute().parent
    root = parent.parent.name
    return root.rpartition("--")[2] if parent.name == "snapshots" and root.startswith(_REPOSITORY) else None


def place_text(path: Path) -> str:
    """The repository and commit of a snapshot in the hub's cache, as in org/name@0123456, or of a file in one, with its name;
    other paths as they are."""
    if repository_name(path.parent) is not None:
        return f"{place_text(path.parent)}/{path.name}"
    repository = path.absolute().parent.parent.name
    if repository_name(path) is None:
        return str(path)
    return f"{repository.removeprefix(_REPOSITORY).replace('--', '/')}@{path.name[:7]}"


def fetch(reference: str, *, weights: bool, revision: str | None = None) -> Path:
    """The directory with a repository's config, its tokenizer and, where wanted, its weights; or a GGUF file of it, where the
    reference names one, or the repository has no config and no other weights.

    ``reference`` is the repository's id, ``org/name`` or ``name``, or names a file as in ``org/name:Q4_K_M``; an existing path is returned unchanged.
    Safetensors are preferred to pickles; code is never fetched. Cached files are not fetched again and need no
    network. Raises :class:`HubError` with a remedy.
    """
    if os.path.exists(reference):
        return Path(reference)
    repository, file = hub_file(reference)
    repository = repository or reference
    with explained(repository, revision):
        from huggingface_hub import snapshot_download
        from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined, unused-ignore]

        if not sys.stderr.isatty():
            disable_progress_bars()
        directory = Path(snapshot_download(repository, revision=revision, allow_patterns=[*_DESCRIPTION]))
        commit = directory.name
        described = (body_directory(directory) / "config.json", directory / "gliner_config.json")
        if file or not any(path.exists() for path in described):
            listed = _listed(repository, commit, directory)
            if file or has_gguf_alone(listed):
                name = chosen_gguf(repository, listed, file)
                snapshot_download(repository, revision=commit, allow_patterns=[name])
                return directory / name
        for names in _weight_files(repository, commit, directory) if weights else ():
            snapshot_download(repository, revision=commit, allow_patterns=names)
    return directory


def located_adapter(reference: str, revision: str | None = None) -> Path:
    """The directory of an adapter that a user named, or of a repository that has one, fetched. Raises :class:`HubError`."""
    if os.path.exists(reference) or not is_hub_id(reference):
        return Path(reference)
    with explained(reference, revision):
        from huggingface_hub import snapshot_download

        patterns = ["adapter_config.json", "adapter_model.*"]
        return Path(snapshot_download(reference, revision=revision, allow_patterns=patterns))


def commit_of(reference: str, revision: str | None) -> str:
    """The commit that a branch or tag of a repository is at (default: its main branch), or, where the hub is switched off, was
    at when it was cached.  Raises :class:`HubError`."""
    with explained(reference, revision):
        from huggingface_hub import HfApi, errors, snapshot_download

        try:
            return str(HfApi().model_info(reference, revision=revision).sha)
        except errors.OfflineModeIsEnabled:
            return Path(snapshot_download(reference, revision=revision, allow_patterns=["config.json"])).name


def _weight_files(reference: str, commit: str, directory: Path) -> Iterator[list[str]]:
    """The names of the files that hold a repository's weights, part by part."""
    from zoo.weights.modules import dense_modules, static_queries
    from zoo.weights.names import INDEX, PICKLED_SINGLE, SINGLE, file_among, lone_shards, read_index

    held = os.listdir(directory)
    listed = held if SINGLE in held or INDEX in held else _listed(reference, commit, directory)
    if (body := body_directory(directory)) != directory:
        folder = body.relative_to(directory).as_posix()
        yield [f"{folder}/*.safetensors", f"{folder}/{PICKLED_SINGLE}"]
    elif shards := lone_shards(listed):
        yield from ([name] for name in shards)
    else:
        if has_gguf_alone(listed):
            listed = [chosen_gguf(reference, listed)]
        main = file_among(listed, f"{reference} on the hub")
        for name in sorted(set(read_index(directory / main).values())) if main in _INDEXES else [main]:
            yield [name]
    for module in [*dense_modules(directory).values(), *filter(None, [static_queries(directory)])]:
        yield [f"{module.relative_to(directory).as_posix()}/{name}" for name in (SINGLE, PICKLED_SINGLE)]


def _listed(reference: str, commit: str, directory: Path) -> list[str]:
    """The files at the top of a repository; without a network, the cached ones."""
    from huggingface_hub import HfApi

    try:  # one request: a listing of the tree is retried for half a minute before it fails
        siblings = HfApi().model_info(reference, revision=commit).siblings or []
    except Exception:  # raised by several HTTP libraries, since the hub's client has changed its own
        return os.listdir(directory) if directory.is_dir() else []
    return [file.rfilename for file in siblings if "/" not in file.rfilename]


@contextmanager
def explained(reference: str, revision: str | None, action: tuple[str, str] = FETCHING) -> Iterator[None]:
    """Turn the errors of the hub's library, and its absence, into :class:`HubError` with what to do."""
    doing, done = action
    try:
        from huggingface_hub import errors
    except ImportError:
        raise HubError(f"{reference}: {doing} the hub needs a library: pip install 'zoo[hub]'") from None
    try:
        yield
    except UserError:
        raise
    except errors.HFValidationError as error:
        raise HubError(f"{reference!r} is neither a path nor a repository id on the hub: {error}") from None
    except errors.GatedRepoError:
        raise HubError(
            f"{reference} is gated\n  Request access on its hub page, and log in with hf auth login."
        ) from None
    except errors.RevisionNotFoundError:
        raise HubError(f"{reference} on the hub has no revision {revision!r}") from None
    except errors.LocalEntryNotFoundError as error:
        cause = error.__cause__
        reason = "HF_HUB_OFFLINE is set" if isinstance(cause, errors.OfflineModeIsEnabled) else cause or error
        raise HubError(
            f"{reference} is not on this machine, and the hub cannot be reached: {reason}\n"
            "  Check the network, or pass the path of a directory with the files."
        ) from None
    except errors.HfHubHTTPError as error:
        if error.response.status_code not in (401, 404):
            raise HubError(f"{reference} could not be {done}: {error}") from None
        raise HubError(
            f"{reference} is neither a path nor a public repository on the hub\n  Check the name, or log in with hf auth login."
        ) from None
    except (MemoryError, OSError):
        raise
    except Exception as error:  # a broken connection, raised by several libraries as above
        raise HubError(f"{reference} could not be {done}: {type(error).__name__}: {error}") from None
