"""Proof that the written files compute what the PyTorch model computes.

The files are loaded in ONNX Runtime as a client would load them, and every output of every case is compared with
the model's full forward pass.  Cached decoding is compared with the full pass too, never with itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from exporters.cases import Batch, Case, cases
from exporters.targets import Target
from exporters.tasks import Task
from specs.errors import UserError
from specs.model import Model

TOLERANCE = {torch.float32: 2e-5}
"""The largest difference allowed, relative to the largest output (and absolute below 1), per precision."""


ENCODED = "encoder last_hidden_state"
"""The name under which an encoder-decoder's first graph's result is reported."""


class VerificationError(UserError):
    """An export that does not compute what its model computes; nothing was kept of it."""

    def __init__(self, verification: Verification) -> None:
        self.verification = verification
        worst = max((c for c in verification.comparisons if not c.passed), key=lambda c: c.max_abs)
        super().__init__(
            f"the export differs from the PyTorch model: {worst.case}, {worst.output}: {worst.max_abs:.2e} where "
            f"{worst.tolerance:.1e} is allowed"
        )


@dataclass(frozen=True)
class Comparison:
    """One output of one case: the largest difference, absolute and relative to the largest value there.

    ``top_token`` is the share of positions whose highest score is the same token, for scores of a vocabulary.
    """

    case: str
    shape: str
    output: str
    max_abs: float
    max_rel: float
    tolerance: float
    top_token: float | None
    passed: bool


@dataclass(frozen=True)
class Verification:
    """All comparisons, what they ran on, and what was compared (the model, or a smaller twin of it)."""

    provider: str
    runtime: str
    subject: str
    comparisons: tuple[Comparison, ...] = field(default=())

    @property
    def passed(self) -> bool:
        """Whether every comparison passed."""
        return bool(self.comparisons) and all(comparison.passed for comparison in self.comparisons)

    @property
    def max_abs(self) -> float:
        """The largest difference of all."""
        return max(comparison.max_abs for comparison in self.comparisons)

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {**asdict(self), "comparisons": [asdict(c) for c in self.comparisons], "passed": self.passed}


def verify(
    directory: Path,
    model: nn.Module,
    spec: Model,
    tasks: Sequence[Task],
    target: Target,
    subject: str,
    progress: Callable[[str], None],
) -> Verification:
    """Compare the graphs in a directory with a model that has its weights.

    Raises :class:`VerificationError` on a breach, with the whole table.
    """
    import onnxruntime

    found: list[Comparison] = []
    with ThreadPoolExecutor(1) as loader, torch.inference_mode():
        # Loading the files leaves the interpreter free: the model runs meanwhile.
        loading = loader.submit(lambda: [_session(onnxruntime, directory / f"{t.name}.onnx", target) for t in tasks])
        expected = {}
        for case in cases(spec):
            progress(f"{case.name}, PyTorch")
            expected[case] = _full_pass(model, case)
        sessions = loading.result()
        for case, outputs in expected.items():
            progress(f"{case.name}, ONNX Runtime")
            for output, got in _run(sessions, tasks, case).items():
                found.append(_compare(case, output, got, outputs[output]))
    provider = sessions[0].get_providers()[0]
    result = Verification(provider, f"onnxruntime {onnxruntime.__version__}", subject, tuple(found))
    if not result.passed:
        raise VerificationError(result)
    return result


def _session(onnxruntime: Any, path: Path, target: Target) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    available = onnxruntime.get_available_providers()
    providers = [provider for provider in target.providers if provider in available] or ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(path, options, providers=providers)


def _full_pass(model: Any, case: Case) -> dict[str, Tensor]:
    if case.encoder is None:
        return dict(model(case.batch.ids, case.batch.mask))
    encoded = model.encode(case.encoder.ids, case.encoder.mask)
    outputs = model(case.encoder.ids, case.batch.ids, case.encoder.mask)
    return {ENCODED: encoded["last_hidden_state"], **outputs}


def _run(sessions: Sequence[Any], tasks: Sequence[Task], case: Case) -> dict[str, Tensor]:
    """The outputs of the graphs, in pieces along the sequence where the case decodes in steps."""
    feeds: dict[str, Tensor] = {}
    results: dict[str, Tensor] = {}
    if case.encoder is not None:
        outputs = _call(sessions[0], _tokens(case.encoder, tasks[0]))
        feeds = {name.replace("present", "past_key_values"): v for name, v in outputs.items() if _is_cache(name)}
        feeds["encoder_attention_mask"] = case.encoder.mask
        results[ENCODED] = outputs["last_hidden_state"]
    session, task = sessions[-1], tasks[-1]
    length = case.batch.ids.shape[1]
    cache = _empty_cache(task, case.batch, feeds)
    pieces: dict[str, list[Tensor]] = {}
    start = 0
    for end in range(length - case.steps, length + 1):
        tokens = Batch(case.batch.ids[:, start:end], case.batch.mask[:, :end])
        outputs = _call(session, {**feeds, **cache, **_tokens(tokens, task)})
        cache = {name.replace("present", "past_key_values"): v for name, v in outputs.items() if _is_cache(name)}
        for name, value in outputs.items():
            if not _is_cache(name):
                pieces.setdefault(name, []).append(value)
        start = end
    for name, parts in pieces.items():
        if parts[0].dim() == 3:
            results[name] = torch.cat(parts, 1)
        elif not case.steps:  # one vector per sequence is of all its tokens, never of the last few
            results[name] = parts[0]
    return results


def _is_cache(name: str) -> bool:
    return name.startswith("present.")


def _tokens(batch: Batch, task: Task) -> dict[str, Tensor]:
    given = {"input_ids": batch.ids, "attention_mask": batch.mask, "token_type_ids": torch.zeros_like(batch.ids)}
    return {placeholder.name: given[placeholder.name] for placeholder in task.inputs if placeholder.name in given}


def _empty_cache(task: Task, batch: Batch, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
    sizes = {"batch_size": batch.ids.shape[0]}
    return {
        placeholder.name: torch.empty([d if isinstance(d, int) else sizes.get(d, 0) for d in placeholder.dims])
        for placeholder in task.inputs
        if placeholder.name.startswith("past_key_values") and placeholder.name not in given
    }


def _call(session: Any, feeds: Mapping[str, Tensor]) -> dict[str, Tensor]:
    names = [output.name for output in session.get_outputs()]
    arrays = {name: np.ascontiguousarray(tensor.numpy()) for name, tensor in feeds.items()}
    return dict(zip(names, map(torch.from_numpy, session.run(names, arrays)), strict=True))


def _compare(case: Case, output: str, got: Tensor, expected: Tensor) -> Comparison:
    shape = case.batch.shape if case.encoder is None else f"{case.encoder.shape} -> {case.batch.shape}"
    steps = f" + {case.steps} steps" if case.steps else ""
    if got.shape != expected.shape:
        raise AssertionError(f"{output} has shape {tuple(got.shape)}, and the model's {tuple(expected.shape)}")
    finite = bool(torch.isfinite(got).all())
    per_token = expected.dim() == 3
    if per_token:  # what stands at padding means nothing
        batch = case.encoder if output == ENCODED and case.encoder is not None else case.batch
        got, expected = got[batch.mask == 1], expected[batch.mask == 1]
    scale = float(expected.abs().max())
    difference = float((got - expected).abs().max())
    tolerance = TOLERANCE[expected.dtype] * max(1.0, scale)
    top = float((got.argmax(-1) == expected.argmax(-1)).float().mean()) if output == "logits" and per_token else None
    passed = finite and difference <= tolerance
    return Comparison(case.name, shape + steps, output, difference, difference / (scale or 1.0), tolerance, top, passed)
