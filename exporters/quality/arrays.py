"""Inputs of a model in NumPy files."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from exporters.quality.examples import MASK
from specs.base.errors import UserError, reason_of
from zoo.files.reading import open_regular, unreadable
from zoo.record.integrity import sha256_of


@dataclass(frozen=True)
class ArrayFile:
    """A file of arrays: its name, its digest, and its number of examples."""

    name: str
    sha256: str
    rows: int


def read_ids(path: Path) -> tuple[Tensor, str]:
    """Token ids, N or rows x N, and the SHA-256 of their file.

    Raises :class:`specs.base.errors.UserError` for a file without token ids.
    """
    values = _loaded(path)
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iu" or values.ndim not in (1, 2):
        kind = f"{values.dtype} of {values.ndim} axes" if isinstance(values, np.ndarray) else "several arrays"
        raise UserError(
            f"{path}: token ids must be whole numbers in one or two axes (rows x tokens)\n  value: {kind}\n"
            "  Write them with numpy.save."
        )
    return torch.from_numpy(values.astype(np.int64)), sha256_of(path)


def read_named(path: Path, wanted: str, sizes: tuple[int | None, ...]) -> tuple[ArrayFile, dict[str, Tensor]]:
    """Read the array of the model's input ``wanted``, batch by ``sizes``, and its mask if the file has one.

    Raises :class:`specs.base.errors.UserError` for a file without it, or with other sizes.
    """
    loaded = _loaded(path)
    held = dict(loaded) if isinstance(loaded, Mapping) else {}
    if wanted not in held:
        raise UserError(
            f"{path}: must have an array {wanted}, the model's input\n"
            f"  value: {', '.join(held) or 'no named arrays'}\n  Save it under that name with numpy.savez."
        )
    array = held[wanted]
    masks = {MASK: held[MASK]} if wanted == "input_ids" and MASK in held else {}
    whole = wanted == "input_ids"
    shape = " x ".join("length" if size is None else str(size) for size in ("examples", *sizes))
    fits = array.ndim == 1 + len(sizes) and all(
        size is None or size == got for size, got in zip(sizes, array.shape[1:], strict=True)
    )
    if not fits or array.dtype.kind not in ("iu" if whole else "fiu"):
        raise UserError(
            f"{path}: {wanted} must be {'whole ' if whole else ''}numbers, {shape}\n"
            f"  value: {array.dtype}, {' x '.join(map(str, array.shape)) or 'one number'}\n"
            "  Prepare them with the model's own preprocessor."
        )
    if whole:
        masks.setdefault(MASK, np.ones(array.shape, np.int64))
        if masks[MASK].shape != array.shape:
            raise UserError(
                f"{path}: {MASK} must have the shape of {wanted}, {' x '.join(map(str, array.shape))}\n"
                f"  value: {' x '.join(map(str, masks[MASK].shape))}\n  Leave it out where there is no padding."
            )
    dtype: Any = np.int64 if whole else np.float32
    arrays = {wanted: array.astype(dtype), **{name: mask.astype(np.int64) for name, mask in masks.items()}}
    tensors = {name: torch.from_numpy(values) for name, values in arrays.items()}
    return ArrayFile(str(path), sha256_of(path), len(array)), tensors


def _loaded(path: Path) -> Any:
    try:
        with open_regular(path) as file:
            loaded = np.load(file, allow_pickle=False)
            named = isinstance(loaded, np.lib.npyio.NpzFile)
            return {name: loaded[name] for name in loaded.files} if named else loaded
    except OSError as error:
        raise UserError(unreadable(path, error)) from None
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(
            f"{path} is not a NumPy file: {reason_of(error)}\n  Write it with numpy.save or numpy.savez."
        ) from None
