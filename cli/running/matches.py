"""Output of ``zoo run`` for dual encoders: how well each text fits each image."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cli.running.timing import tell_how
from cli.terminal.render import Column, print_json, print_table
from cli.terminal.screen import screen_width
from zoo.core.units import time_text

if TYPE_CHECKING:
    from cli.options.run_inputs import RunInputs
    from exporters.runtime.exported import Exported


def print_matches(
    exported: Exported, texts: RunInputs, images: RunInputs, *, as_json: bool, quiet: bool
) -> None:
    """Compare texts with images, and print the probability of each pair."""
    from exporters.runtime.matching import DualEncoderRunner

    runner = DualEncoderRunner(exported)
    begun = time.perf_counter()
    match = runner.match(texts.values, images.values)  # type: ignore[arg-type]
    took = time.perf_counter() - begun
    said = [name or ",".join(map(str, ids)) for name, ids in zip(texts.names, texts.values, strict=True)]
    if as_json:
        facts = {"name": exported.spec.name, "provider": runner.provider}
        times = {"load_seconds": runner.load_seconds, "seconds": took}
        scores = {"scores": match.scores.tolist(), "probabilities": match.probabilities.tolist()}
        print_json({**facts, **times, "images": images.names, "texts": said, **scores})
        return
    rows = [
        (image, text, f"{score:.3f}", f"{share:.2%}")
        for image, scores, shares in zip(images.names, match.scores, match.probabilities, strict=True)
        for text, score, share in sorted(zip(said, scores, shares, strict=True), key=lambda row: -row[1])
    ]
    columns = [Column("image", prose=20, pinned=True), Column("text", prose=24)]
    print_table(
        [*columns, Column("score", right=True), Column("probability", right=True)], rows, screen_width()
    )
    pairs = f"{len(said)} text{'s' * (len(said) > 1)} and {len(images.names)} image{'s' * (len(images.names) > 1)}"
    tell_how(runner.provider, runner.load_seconds, f"{pairs} in {time_text(took)}", quiet=quiet)
