"""The tokenizer of a GGUF file against the one that it was made of, and against transformers' own reading of the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import pytest
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer

from exporters.quality.texts import corpus
from exporters.runtime.text import find_text
from zoo.checkpoints.carried import carry_files, special_tokens
from zoo.checkpoints.gguf_tokenizer import gguf_tokenizer

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6
SPECIAL = ["<unk>", "<s>", "</s>"]
TEXT = "In 1845, the blight came: it's  here!\n\n\tThey'll pay 90 euros — 12,345 of them. Ünïcode ✓ 日本語 <s>tail"
LLAMA_3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False)
SPLITS = {
    "gpt-2": BYTES,
    "smollm": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), BYTES]),
    "llama-bpe": pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA_3), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ]),
}  # fmt: skip


def byte_level(pre: str) -> Tokenizer:
    """Byte pairs learned from the corpus, with words split as in a file whose ``pre`` says so."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = SPLITS[pre], decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator([corpus()["prose"]], trainer)
    return made


def write(path: Path, model: str, **fields: Any) -> Path:
    """A GGUF file with a tokenizer alone."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(model)
    for key, value in fields.items():
        adders: dict[type, Any] = {
            bool: writer.add_bool,
            int: writer.add_uint32,
            str: writer.add_string,
            list: writer.add_array,
        }
        add = adders[type(value)]
        add(key if key == "tokenizer.chat_template" else f"tokenizer.ggml.{key}", value)
    for method in ("header", "kv_data", "tensors"):
        getattr(writer, f"write_{method}_to_file")()
    writer.close()
    return path


def write_byte_level(path: Path, tokenizer: Tokenizer, pre: str, **fields: Any) -> Path:
    data = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(data["vocab"], key=data["vocab"].get)
    types = [CONTROL if token in SPECIAL else NORMAL for token in tokens]
    merges = [" ".join(merge) for merge in data["merges"]]
    ids = {"bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0}
    return write(path, "gpt2", pre=pre, tokens=tokens, token_type=types, merges=merges, **ids, **fields)


@pytest.mark.parametrize("pre", SPLITS)
def test_byte_pairs_are_those_of_the_original(tmp_path: Path, pre: str) -> None:
    original = byte_level(pre)
    path = write_byte_level(tmp_path / "model.gguf", original, pre, add_bos_token=False)
    text = find_text(path, None, needed=True)
    assert text is not None
    for each in (TEXT, corpus()["prose"][:5000]):
        assert text.plain(each) == original.encode(each, add_special_tokens=False).ids
    assert text.plain("12,345 of them") == original.encode("12,345 of them").ids
    assert text.text(text.plain(corpus()["prose"][:500])) == corpus()["prose"][:500]


def test_digits_are_split_as_the_file_says(tmp_path: Path) -> None:
    found = {}
    for pre in ("gpt-2", "smollm"):
        path = write_byte_level(tmp_path / f"{pre}.gguf", byte_level("gpt-2"), pre)
        text = find_text(path, None, needed=True)
        assert text is not None
        found[pre] = [text.token(token) for token in text.plain(" 12")]
    assert found["smollm"][-2:] == ["1", "2"]


@pytest.mark.parametrize(("begins", "prefix"), [(True, [1]), (False, [])])
def test_a_text_begins_as_the_file_says(tmp_path: Path, begins: bool, prefix: list[int]) -> None:
    path = write_byte_level(tmp_path / "model.gguf", byte_level("gpt-2"), "gpt-2", add_bos_token=begins)
    text = find_text(path, None, needed=True)
    assert text is not None
    assert text.prefix == prefix
    assert text.ids(["Bread"])[0] == [*prefix, *text.plain("Bread")]


def test_the_begin_is_usual_of_llama_3(tmp_path: Path) -> None:
    path = write_byte_level(tmp_path / "model.gguf", byte_level("llama-bpe"), "llama-bpe")
    text = find_text(path, None, needed=True)
    assert text is not None
    assert text.prefix == [1]


def test_both_ends(tmp_path: Path) -> None:
    path = write_byte_level(
        tmp_path / "model.gguf", byte_level("gpt-2"), "gpt-2", add_bos_token=True, add_eos_token=True
    )
    text = find_text(path, None, needed=True)
    assert text is not None
    ids, _ = text.pair("a", "b")
    a, b = text.plain("a"), text.plain("b")
    assert text.ids(["a"])[0] == [1, *a, 2]
    assert ids == [1, *a, 2, 1, *b, 2]


def sentencepiece(path: Path, **fields: Any) -> Path:
    """A vocabulary as SentencePiece's BPE makes it: bytes, then pieces by the order of their merges, then letters."""
    space = "\N{LOWER ONE EIGHTH BLOCK}"
    made = Tokenizer(models.BPE())
    made.normalizer = normalizers.Sequence([normalizers.Prepend(space), normalizers.Replace(" ", space)])
    made.pre_tokenizer = pre_tokenizers.Split(space, "merged_with_next")
    made.train_from_iterator([corpus()["prose"]], trainers.BpeTrainer(vocab_size=500, show_progress=False))
    data = json.loads(made.to_str())["model"]
    merged = ["".join(merge) for merge in data["merges"]]
    letters = [token for token in data["vocab"] if token not in set(merged) and len(token) == 1]
    byte_tokens = [f"<0x{value:02X}>" for value in range(256)]
    tokens = [*SPECIAL, *byte_tokens, *merged, *letters]
    scores = [0.0] * 259 + [-float(rank) for rank in range(len(merged) + len(letters))]
    types = [UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256, *[NORMAL] * (len(tokens) - 259)]
    ids = {"bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0}
    return write(path, "llama", tokens=tokens, scores=scores, token_type=types, **ids, **fields)


def test_sentencepiece_is_as_transformers_reads_it(tmp_path: Path) -> None:
    path = sentencepiece(tmp_path / "model.gguf")
    text = find_text(path, None, needed=True)
    assert text is not None
    theirs = AutoTokenizer.from_pretrained(tmp_path, gguf_file=path.name)
    for each in (corpus()["prose"][:3000], "It's 90 euros, 日本語."):
        assert text.plain(each) == theirs(each, add_special_tokens=False)["input_ids"]
        assert text.text(text.plain(each)) == each
    assert text.prefix == [1]
    assert text.token(text.plain("日")[-1]) == "<0xA5>"


def test_tokenizers_of_unsupported_kinds_are_omitted(tmp_path: Path) -> None:
    original = byte_level("gpt-2")
    unknown = write_byte_level(tmp_path / "unknown.gguf", original, "a-rule-of-its-own")
    assert gguf_tokenizer(unknown).keys() == {"generation_config.json"}
    assert find_text(unknown, None, needed=True) is None
    other = write(tmp_path / "other.gguf", "bert", tokens=["a", "b"])
    twice = write(tmp_path / "twice.gguf", "gpt2", pre="gpt-2", tokens=["a", "a"], merges=["a a"])
    none = write(tmp_path / "none.gguf", "gpt2", pre="gpt-2")
    for path in (other, twice, none):
        assert gguf_tokenizer(path) == {}


def test_a_file_that_is_written_again_is_read_again(tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf", "gpt2", bos_token_id=1)
    assert special_tokens(path) == {"bos_token_id": 1}
    write(path, "gpt2", bos_token_id=2, eos_token_id=3)
    assert special_tokens(path) == {"bos_token_id": 2, "eos_token_id": 3}


def test_it_comes_along(tmp_path: Path) -> None:
    path = write_byte_level(
        tmp_path / "model.gguf", byte_level("smollm"), "smollm", **{"tokenizer.chat_template": "{{ x }}"}
    )
    (tmp_path / "out").mkdir()
    carry_files(path, tmp_path / "out")
    names = {"tokenizer.json", "tokenizer_config.json", "generation_config.json"}
    assert {each.name for each in (tmp_path / "out").iterdir()} == names
    theirs = AutoTokenizer.from_pretrained(tmp_path / "out")
    ours = find_text(path, None, needed=True)
    assert ours is not None
    assert theirs(TEXT, add_special_tokens=False)["input_ids"] == ours.plain(TEXT)
    assert (theirs.bos_token, theirs.eos_token, theirs.chat_template) == ("<s>", "</s>", "{{ x }}")
    assert json.loads((tmp_path / "out" / "generation_config.json").read_text()) == {
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
