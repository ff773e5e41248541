"""Representative inputs: disjoint parts, and clear errors for what gives none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from exporters.quality.inputs import random_inputs, representative
from exporters.quality.parts import NoInputsError
from exporters.quality.texts import KINDS, LANGUAGES, corpus
from exporters.runtime.text import TextTokenizer
from specs.base.errors import UserError, with_flags
from specs.language.load import load
from specs.model.model import Model
from tests.exporters.quality.checkpoints import BOS, VOCABULARY, tokenizer

Refused = Callable[..., str]


@pytest.fixture(scope="module")
def text() -> TextTokenizer:
    return TextTokenizer(tokenizer(), Path("tokenizer.json"))


@pytest.fixture(scope="module")
def decoder() -> Model:
    return load("tiny-gpt", [f"vocab_size={VOCABULARY}", "context_length=64"])


@pytest.fixture(scope="module")
def encoder() -> Model:
    return load("bert-tiny", [f"vocab_size={VOCABULARY}", "context_length=64"])


@pytest.fixture(scope="module")
def images() -> Model:
    return load("vit-base-16", ["embedding.image_size=32"])


def refused(spec: Model, given: Path | None, text: TextTokenizer | None = None) -> str:
    with pytest.raises(UserError) as caught:
        representative(spec, given, text)
    return str(caught.value)


def saved(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def test_the_corpus_is_long_enough_for_its_windows(text: TextTokenizer) -> None:
    spec = load("tiny-gpt", [f"vocab_size={VOCABULARY}", "context_length=256"])
    found = representative(spec, None, text)
    assert [window["input_ids"].shape for window in found.judged] == [(1, 256)] * 12
    assert len(found.calibration) >= 6
    assert found.description == "the corpus of zoo, 12 x 256 tokens of 7 kinds"
    assert [found.kinds.count(kind) for kind in KINDS] == [6, 1, 1, 1, 1, 1, 1, *[0] * len(LANGUAGES)]
    assert len(corpus()["prose"].split()) > 4000


def test_languages_are_judged_with_a_tokenizer_that_reads_them() -> None:
    made = Tokenizer(models.BPE(unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=4000, special_tokens=["[UNK]"], show_progress=False)
    made.train_from_iterator([corpus()["prose"], corpus()["german"], corpus()["russian"]], trainer)
    spec = load("tiny-gpt", ["vocab_size=4000", "context_length=64"])
    kinds = representative(spec, None, TextTokenizer(made, Path("tokenizer.json"))).kinds
    assert {"german", "russian"} <= set(kinds)
    assert not {"chinese", "japanese", "arabic", "hindi"} & set(kinds)  # unknown characters


def test_every_kind_of_text_has_an_equal_part_of_an_encoders_sentences(
    encoder: Model, text: TextTokenizer
) -> None:
    found = representative(encoder, None, text)
    counts = {
        kind: sum(
            len(batch["input_ids"]) for batch, of in zip(found.judged, found.kinds, strict=True) if of == kind
        )
        for kind in dict.fromkeys(found.kinds)
    }
    assert [*counts] == [*KINDS[: -len(LANGUAGES)]]
    assert counts["prose"] > max(counts[kind] for kind in [*counts][1:])
    assert min(counts.values()) >= 12
    assert sum(counts.values()) <= 200


def test_calibration_inputs_are_never_judged(decoder: Model, text: TextTokenizer, tmp_path: Path) -> None:
    ids = np.arange(64 * 30) % VOCABULARY
    np.save(tmp_path / "ids.npy", ids)
    for given in (tmp_path / "ids.npy", None):
        found = representative(decoder, given, text)
        texts = (
            [ids] if given else [np.array(text.plain(corpus()[kind])) for kind in dict.fromkeys(found.kinds)]
        )
        borders = [len(whole) // 3 for whole in texts]
        for part, stretches in (
            (found.calibration, [whole[:border] for whole, border in zip(texts, borders, strict=True)]),
            (found.judged, [whole[border:] for whole, border in zip(texts, borders, strict=True)]),
        ):
            joined = " | ".join(f" {' '.join(map(str, stretch))} " for stretch in stretches)
            assert part
            for window in part:
                assert f" {' '.join(map(str, window['input_ids'][0].tolist()))} " in joined


def test_windows_begin_as_the_tokenizer_begins_a_text(decoder: Model) -> None:
    begins = TextTokenizer(tokenizer(begins=True), Path("tokenizer.json"))
    found = representative(decoder, None, begins)
    first = begins.id_of(BOS)
    assert all(window["input_ids"][0, 0] == first for window in found.judged)
    assert all(window["input_ids"].shape == (1, 64) for window in found.judged)
    assert all((window["input_ids"][0, 1:] != first).all() for window in found.judged)


def test_sentences_of_an_encoder(encoder: Model, text: TextTokenizer, tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text("One is here. Two is there! Is three? Four. " * 20)
    found = representative(encoder, file, text)
    sentences = sum(len(batch["input_ids"]) for batch in found.judged)
    assert (sum(len(batch["input_ids"]) for batch in found.calibration), sentences) == (26, 54)
    ids = text.ids(["Two is there!"])[0]
    rows = [row[mask == 1].tolist() for batch in found.judged
            for row, mask in zip(batch["input_ids"], batch["attention_mask"], strict=True)]  # fmt: skip
    assert ids in rows


def test_without_calibration_all_is_judged(encoder: Model, text: TextTokenizer, tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text("One is here. Two is there! Is three?")
    found = representative(encoder, file, text, calibrates=False)
    assert not found.calibration
    assert sum(len(batch["input_ids"]) for batch in found.judged) == 3


def test_arrays_by_the_name_of_the_input(images: Model, tmp_path: Path) -> None:
    values = np.random.default_rng(1).random((6, 3, 32, 32), np.float32)
    found = representative(images, saved(tmp_path / "images.npz", pixel_values=values), None)
    assert [len(part) for part in (found.calibration, found.judged)] == [2, 4]
    assert torch.equal(found.judged[0]["pixel_values"], torch.from_numpy(values[2:3]))
    assert found.sha256 is not None


def test_random_inputs_are_within_the_vocabulary(decoder: Model) -> None:
    found = random_inputs(decoder)
    assert found.description == "random token ids, seed 0"
    assert max(int(window["input_ids"].max()) for window in found.judged) == VOCABULARY - 1


def test_a_text_that_is_too_short(
    decoder: Model, encoder: Model, text: TextTokenizer, tmp_path: Path
) -> None:
    file = tmp_path / "short.txt"
    file.write_text("Too short.")
    count = len(text.plain("Too short."))
    assert refused(decoder, file, text) == (
        f"{file}: must have at least 128 tokens for {decoder.name}: one window of 64 calibrates, and another is judged\n"
        f"  value: {count} tokens\n  Give a longer text."
    )
    assert refused(encoder, file, text) == (
        f"{file}: must have at least 3 sentences: one calibrates, and two are judged\n  value: 1 sentences\n  Give more."
    )


def test_a_tokenizer_of_another_model_is_refused(text: TextTokenizer, tmp_path: Path) -> None:
    spec = load("tiny-gpt", ["vocab_size=100", "context_length=64"])
    message = refused(spec, None, text)
    assert message.startswith(
        "tokenizer.json on the corpus of zoo: token ids must be below the vocab_size of"
    )
    assert ", which is 100\n  value: 299\n" in message
    assert message.endswith("\n  Give the tokenizer that came with the model.")


def test_no_tokenizer(decoder: Model, encoder: Model, tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text("A text.")
    assert refused(encoder, file) == (
        f"{file}: text needs a tokenizer, and there is no tokenizer.json next to the weights of {encoder.name}\n"
        "  Put its tokenizer.json there, or give token ids as whole numbers in a .npy file."
    )
    with pytest.raises(NoInputsError, match=r"^the corpus of zoo: text needs a tokenizer"):
        representative(encoder, None, None)
    for architecture in (decoder, encoder):
        with pytest.raises(NoInputsError) as refusal:
            representative(architecture, None, None, option="data")
        largest = (architecture.vocab_size or 0) - 1
        assert with_flags(refusal.value.text) == (
            "the corpus of zoo: text needs a tokenizer, and there is no tokenizer.json next to the weights of "
            f"{architecture.name}\n  Put its tokenizer.json there, or give token ids as whole numbers in a .npy file: "
            f"--data FILE.npy, with ids from 0 to {largest}."
        )


def test_images_are_not_made_of_text(images: Model, tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text("A text.")
    assert refused(images, file) == (
        f"{file}: {images.name} takes pixel_values, which text cannot provide\n  value: .txt\n"
        "  Give images, or a .npz file with an array pixel_values."
    )
    with pytest.raises(NoInputsError, match="takes pixel_values, which text cannot provide"):
        representative(images, None, None)


def test_arrays_that_do_not_fit(images: Model, decoder: Model, encoder: Model, tmp_path: Path) -> None:
    path = tmp_path / "given.npz"
    saved(path, pixels=np.zeros((4, 3, 32, 32), np.float32))
    assert refused(images, path) == (
        f"{path}: must have an array pixel_values, the model's input\n  value: pixels\n"
        "  Save it under that name with numpy.savez."
    )
    saved(path, pixel_values=np.zeros((4, 3, 16, 16), np.float32))
    assert refused(images, path).startswith(
        f"{path}: pixel_values must be numbers, examples x 3 x 32 x 32\n  value: float32, 4 x 3 x 16 x 16\n"
    )
    saved(path, input_ids=np.zeros((4, 8), np.float32))
    assert "input_ids must be whole numbers, examples x length\n  value: float32, 4 x 8\n" in refused(
        encoder, path
    )
    saved(path, input_ids=np.zeros((4, 8), np.int64), attention_mask=np.ones((4, 7), np.int64))
    assert "attention_mask must have the shape of input_ids, 4 x 8\n  value: 4 x 7\n" in refused(
        encoder, path
    )
    saved(path, input_ids=np.full((4, 8), VOCABULARY))
    assert f"which is {VOCABULARY}\n  value: {VOCABULARY}\n" in refused(encoder, path)
    saved(path, input_ids=np.zeros((4, 65), np.int64))
    assert f"rows must fit the context of {encoder.name}, which is 64 tokens\n  value: 65 tokens" in refused(
        encoder, path
    )
    with path.open("wb") as file:
        np.save(file, np.zeros((4, 8), np.int64))
    assert "must have an array input_ids, the model's input\n  value: no named arrays" in refused(
        encoder, path
    )
    saved(path, input_ids=np.array([None]))
    assert f"{path} is not a NumPy file: Object arrays cannot be loaded" in refused(encoder, path)
    saved(path, input_ids=np.zeros((2, 8), np.int64))
    assert "must have at least 3 examples" in refused(decoder, path)


def test_ids_that_are_none(decoder: Model, tmp_path: Path) -> None:
    path = tmp_path / "ids.npy"
    np.save(path, np.zeros(10))
    assert refused(decoder, path) == (
        f"{path}: token ids must be whole numbers in one or two axes (rows x tokens)\n  value: float64 of 1 axes\n"
        "  Write them with numpy.save."
    )
    np.save(path, np.zeros((4, 65), np.int64))
    assert "which is 64 tokens\n  value: 65 tokens" in refused(decoder, path)
    np.save(path, np.full(1000, -1))
    assert "token ids must be below the vocab_size" in refused(decoder, path)
    path.write_bytes(b"nothing")
    assert f"{path} is not a NumPy file: " in refused(decoder, path)
    assert "cannot be read: No such file or directory.\n  Check the path." in refused(
        decoder, tmp_path / "x.npy"
    )


def test_a_text_that_is_not_utf8_is_refused(decoder: Model, text: TextTokenizer, tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_bytes(b"abc\xff")
    assert refused(decoder, file, text) == (
        f"{file}: text must be UTF-8, and byte 3 is 0xff\n  Save the file as UTF-8, or give token ids in a .npy file."
    )
    assert "cannot be read: No such file or directory" in refused(decoder, tmp_path / "gone.txt", text)
