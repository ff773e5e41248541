"""Output of ``zoo run`` for retrieval of pages: the images for each query, best first."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cli.running.retrieval import ranked, say_ranked
from cli.running.timing import tell_how
from cli.terminal.render import print_json
from zoo.core.units import time_text

if TYPE_CHECKING:
    from cli.options.run_inputs import GivenOptions
    from cli.running.output import RunContext
    from exporters.runtime.exported import Exported
    from exporters.runtime.text import TextTokenizer


def check_pages(
    arguments: GivenOptions,
    queries: Sequence[str] | None,
    exported: Exported,
    tokenizer: TextTokenizer | None,
) -> TextTokenizer:
    """Return the tokenizer.

    Raises :class:`specs.base.errors.UserError` without one, and unless there are queries and images alone.
    """
    from specs.base.errors import UserError

    if wrong := next((name for name in arguments.options if name != "--image"), None):
        raise UserError(
            f"{exported.spec.name} compares queries with images, which {wrong} does not give\n  Pass --query and --image."
        )
    if not arguments.images or not queries:
        missing = "--query" if arguments.images else "--image"
        raise UserError(
            f"{exported.spec.name} compares queries with images, and {missing} is missing\n  Pass both."
        )
    if tokenizer is None:
        raise UserError(
            "--query needs a tokenizer, and there is no tokenizer.json beside the model.\n  Pass --tokenizer PATH."
        )
    return tokenizer


def print_pages(shown: RunContext, queries: Sequence[str], tokenizer: TextTokenizer) -> None:
    """Print the images of a context for each query, best first, by late interaction."""
    from exporters.runtime.encoding import late_interaction
    from exporters.runtime.page_retrieval import PagePrompts, PageRunner, images_apart

    runner, images, spec = PageRunner(shown.exported), shown.inputs.images, shown.exported.spec
    assert images is not None
    prompts = PagePrompts.beside(shown.exported.directory, spec, tokenizer)
    begun = time.perf_counter()
    of_images = [list[int](ids) for ids in shown.inputs.values]
    vectors = 1 if spec.packs_images else spec.vectors_per_image
    tiles = [ids.count(spec.image_connector.token) // vectors for ids in of_images]
    pages = [
        runner.vectors(prompts.page_ids(ids), image)
        for ids, image in zip(of_images, images_apart(images, tiles), strict=True)
    ]
    asked = [runner.vectors(prompts.query_ids(query)) for query in queries]
    scores = late_interaction(asked, pages)
    took = time.perf_counter() - begun
    answers = [ranked(row, {}, []) for row in scores]
    if shown.as_json:
        facts = {"name": shown.exported.spec.name, "provider": runner.provider}
        times = {"load_seconds": runner.load_seconds, "seconds": took}
        results = [{"query": query, "images": answer} for query, answer in zip(queries, answers, strict=True)]
        print_json({**facts, **times, **shown.inputs.data, "queries": results})
        return
    for query, answer in zip(queries, answers, strict=True):
        say_ranked(shown, query, answer, [])
    count = f"{len(queries)} {'query' if len(queries) == 1 else 'queries'} and {len(pages)} image{'s' * (len(pages) > 1)}"
    tell_how(runner.provider, runner.load_seconds, f"{count} in {time_text(took)}", quiet=shown.quiet)
