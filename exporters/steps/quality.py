"""The quality of an export's files, and of its adapters, which are verified with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from exporters.data.stored_weights import stored_weights
from exporters.quality.parts import Representative
from exporters.quality.quality import Quality
from exporters.quality.quality_inputs import RoundedFiles, UserLimits
from exporters.steps.adapters import VerifiedAdapter, with_adapter, write_adapters
from exporters.steps.verify import ModelFiles, Verified, verification_request
from exporters.verification.compare import verify
from exporters.verification.reference import reference_of
from zoo.checkpoints.low_rank import add_changes
from zoo.core.progress import Progress, Stage


def held(
    files: ModelFiles,
    inputs: Representative | None,
    progress: Progress,
    adapter: str = "",
    matrices: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[Quality, Representative]:
    """The quality of files, and its inputs, which the request has unless the caller passes others.

    Raises :class:`exporters.quality.quality.QualityError`.
    """
    plan, regions, quality_inputs = files.weights.plan, files.weights.regions, files.weights.quality_inputs
    assert quality_inputs is not None
    if inputs is not None:
        quality_inputs = replace(quality_inputs, representative=inputs)
    rounded = RoundedFiles(
        {files.directory / name: task for name, task in plan.graph_paths.items()},
        plan.target,
        plan.precision,
        UserLimits(plan.options.max_kl, plan.options.min_cosine),
        plan.options.cache_precision,
        adapter,
        matrices,
    )
    return quality_inputs.hold(
        files.reference.model,
        rounded,
        lambda model: stored_weights(model, files.directory / plan.data_paths[0], regions),
        progress,
    )


def with_verified_adapters(verified: Verified, directory: Path, progress: Progress) -> Verified:
    """Write the adapters of an export, and verify and judge the files with each of them switched on.

    Raises :class:`exporters.verification.result.VerificationError` and :class:`exporters.quality.quality.QualityError`.
    """
    weights, plan = verified.weights, verified.weights.plan
    written = write_adapters(directory, plan.adapters, plan.precision.dtype_on(plan.target))
    model = weights.verified_model
    if verified.verification is None or model is None or model.is_reduced:
        return replace(verified, adapters=dict.fromkeys(written, VerifiedAdapter()))
    done: dict[str, VerifiedAdapter] = {}
    for adapter in plan.adapters:
        progress(Stage(f"verify with the adapter {adapter.name}"))
        files = ModelFiles(weights, directory, reference_of(model, progress))
        request = with_adapter(
            verification_request(files, progress, main_only=True), adapter, written[adapter.name]
        )
        largest, quality = verify(request).max_abs, None
        if verified.quality is not None:
            files = replace(files, reference=reference_of(model, progress))
            add_changes(files.reference.model, adapter.pairs)
            quality, _ = held(files, verified.judged_on, progress, adapter.name, written[adapter.name])
        done[adapter.name] = VerifiedAdapter(largest, quality)
    return replace(verified, adapters=done)
