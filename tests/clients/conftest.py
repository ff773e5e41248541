"""What the tests of all clients share: texts, checkpoints, and exports of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from sklearn.datasets import load_sample_images

from exporters.export import export
from exporters.steps.options import ExportOptions
from specs.language.load import load
from tests.clients.checkpoints import SEEDS, Checkpoint, checkpoint, maker
from tests.clients.client import KEPT, Client
from tests.parity.minilm import SENTENCES, SPEC, load_minilm
from tests.parity.speech import generated, moonshine_of
from zoo import import_checkpoint

TEXTS = ["The quick brown fox jumps over", "A sentence"]
NEW_TOKENS = 32

Agree = Callable[..., None]
Near = Callable[..., None]
Hears = Callable[..., None]
Fits = Callable[..., None]


def photos(side: int) -> torch.Tensor:
    """A temple and a flower as ViT reads them: B 3 H W, from -1 to 1."""
    resized = [Image.fromarray(each).resize((side, side)) for each in load_sample_images().images]
    pixels = torch.stack([torch.frombuffer(bytearray(each.tobytes()), dtype=torch.uint8) for each in resized])
    return pixels.view(-1, side, side, 3).permute(0, 3, 1, 2) / 127.5 - 1


@pytest.fixture(autouse=True, scope="session")
def _end_clients() -> Iterator[None]:
    """End what the tests share."""
    with KEPT:
        yield


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Checkpoint]:
    """Checkpoints by the names of what makes them, each made once."""
    known: dict[str, Checkpoint] = {}

    def get(name: str) -> Checkpoint:
        if name not in known:
            known[name] = checkpoint(maker(name), tmp_path_factory.mktemp(name), SEEDS.get(name, 7))
        return known[name]

    return get


@pytest.fixture
def agrees(made: Callable[[str], Checkpoint], tmp_path: Path) -> Agree:
    """Whether a client generates from an export what the reference does from the checkpoint: for one text, and for
    texts of two lengths at once."""

    def check(
        client: Client,
        name: str,
        layout: str,
        target: str = "portable",
        logits: str = "all",
        verify: bool = True,
        outputs: Sequence[str] = (),
        **request: Any,
    ) -> None:
        origin = made(name)
        spec = import_checkpoint(origin.directory)
        options = ExportOptions.of(
            weights=str(origin.directory), layout=layout, target=target, logits=logits, verify=verify,
            outputs=outputs,
        )  # fmt: skip
        export(spec, tmp_path / "deployed", options)
        expected = origin.greedy(TEXTS, NEW_TOKENS)
        request |= {"options": {"no_repeat_ngram_size": origin.no_repeat}} if origin.no_repeat else {}
        alone, together = client(
            tmp_path / "deployed", batches=[TEXTS[:1], TEXTS], new_tokens=NEW_TOKENS, **request
        )
        for kind, answer in (("alone", alone), ("in a padded batch", together)):
            for text, got, tokens in zip(TEXTS, answer["tokens"], expected, strict=False):
                print(
                    f"{name} for {target}, {text!r} {kind}\n  {layout:<16}{got}\n  {'transformers':<16}{tokens}"
                )
        assert alone["tokens"] == expected[:1]
        assert alone["echo"] == TEXTS[0]
        assert together["tokens"] == expected

    return check


@pytest.fixture
def near(tmp_path: Path) -> Near:
    """Whether a client gets from an export of the real MiniLM the vectors of the reference.

    ``head`` is pooler, BERT's own, or pooled, that of the sentence encoder which the checkpoint is.
    """

    def check(client: Client, layout: str, target: str, head: str = "pooler", **request: Any) -> None:
        minilm = load_minilm()
        options = ExportOptions(weights=str(minilm.directory), layout=layout, target=target)
        spec = load(SPEC) if head == "pooler" else import_checkpoint(minilm.directory)
        assert spec.head.kind == head
        export(spec, tmp_path / "deployed", options)
        (answer,) = client(tmp_path / "deployed", batches=[list(SENTENCES)], **request)
        real = minilm.attention_mask == 1
        difference = float((torch.tensor(answer["vectors"]) - minilm.hidden_states())[real].abs().max())
        print(
            f"MiniLM, {len(SENTENCES)} sentences: {layout} differs from transformers by at most {difference:.1e}"
        )
        assert difference < 1e-5

    return check


@pytest.fixture
def hears(tmp_path: Path) -> Hears:
    """Whether a client generates from an export of Moonshine what the reference does for each of two recordings."""

    def check(client: Client, layout: str, target: str, **request: Any) -> None:
        origin = tmp_path / "reference"
        origin.mkdir()
        reference = moonshine_of(origin)
        options = ExportOptions(weights=str(origin), layout=layout, target=target)
        export(import_checkpoint(origin), tmp_path / "deployed", options)
        generator = torch.Generator().manual_seed(2)
        recordings = [torch.randn(count, generator=generator) * 0.1 for count in (5000, 9000)]
        expected = [generated(reference, samples, NEW_TOKENS) for samples in recordings]
        heard = [samples.tolist() for samples in recordings]
        answers = client(tmp_path / "deployed", heard=heard, new_tokens=NEW_TOKENS, **request)
        found = [tokens for each in answers for tokens in each["tokens"]]
        print(f"Moonshine for {target}\n  {layout:<16}{found}\n  {'transformers':<16}{expected}")
        assert found == expected
        assert expected[0] != expected[1]

    return check


@pytest.fixture
def fits(made: Callable[[str], Checkpoint], tmp_path: Path) -> Fits:
    """Whether a client gives two texts for two photographs the scores of the reference, from an export of a CLIP."""

    def check(client: Client, layout: str, target: str, **request: Any) -> None:
        origin, images = made("clip"), photos(32)
        options = ExportOptions(weights=str(origin.directory), layout=layout, target=target)
        export(import_checkpoint(origin.directory), tmp_path / "deployed", options)
        texts = ["A sentence of words", "The quick brown fox has words"]
        rows = [origin.tokenizer(text).input_ids for text in texts]
        longest = max(map(len, rows))
        ids = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
        with torch.no_grad():
            expected = origin.model(input_ids=ids, attention_mask=mask, pixel_values=images).logits_per_image
        pairs = {"texts": texts, "sizes": list(images.shape), "values": images.flatten().tolist()}
        (answer,) = client(tmp_path / "deployed", pairs=pairs, **request)
        print(
            f"CLIP for {target}\n  {layout:<16}{answer['scores']}\n  {'transformers':<16}{expected.tolist()}"
        )
        assert torch.allclose(torch.tensor(answer["scores"]), expected, atol=1e-4)
        assert float((expected[0] - expected[1]).abs().max()) > 1e-2

    return check
