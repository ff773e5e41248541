"""Specs are opened from presets, files, checkpoints, GGUF heads, configs and hub ids, and refused in the words of the commands."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from cli.studio.dropped import LARGEST, MOST_HEAD, opened_head
from cli.studio.opened_spec import opened, opened_below
from specs.base.errors import UserError
from tests.cli.program import refused
from tests.cli.studio.conftest import Page

CONFIG = {"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "vocab_size": 100}


def string(text: str) -> bytes:
    return len(text.encode()).to_bytes(8, "little") + text.encode()


def number(value: int, size: int = 4) -> bytes:
    return value.to_bytes(size, "little")


FIELDS = {
    "context_length": 256, "embedding_length": 64, "block_count": 3, "feed_forward_length": 128,
    "attention.head_count": 4, "attention.head_count_kv": 2, "vocab_size": 1000,
}  # fmt: skip


def gguf(*extra: bytes, tensors: bytes = b"", count: int = 0) -> bytes:
    """The head of a GGUF file of a small Llama."""
    entries = [string("general.architecture") + number(8) + string("llama")]
    entries += [string(f"llama.{key}") + number(4) + number(value) for key, value in FIELDS.items()]
    entries += [
        string("llama.attention.layer_norm_rms_epsilon") + number(6) + bytes.fromhex("acc52737"),
        *extra,
    ]
    head = b"GGUF" + number(3) + number(count, 8) + number(len(entries), 8) + b"".join(entries) + tensors
    return head + bytes(-len(head) % 32)


def send(page: Page, head: bytes, size: Any, name: str = "m.gguf") -> Any:
    return page.client.post(
        page.url("api/gguf"), params={"size": size, "name": name}, content=head,
        headers={"content-type": "application/octet-stream"},
    )  # fmt: skip


def command_refuses(*arguments: str) -> str:
    """The words in which a command refuses."""
    return " ".join(refused(*arguments).split())


def test_a_gguf_head_is_opened_as_the_whole_file_would_be(page: Page, tmp_path: Path) -> None:
    head = gguf()
    (tmp_path / "small-llama.gguf").write_bytes(head + bytes(1000))
    answer = send(page, head, 40_000_000_000, "small-llama.gguf").json()
    assert answer["text"] == opened(str(tmp_path / "small-llama.gguf")).text
    assert answer["label"] == "small-llama.gguf"
    assert page.answer(answer["text"])["counts"]["parameters"] > 0


def test_factors_in_the_head_are_read_and_those_beyond_it_refused(page: Page) -> None:
    factors = number(0x41000000) * 8  # 8.0, as a float
    info = string("rope_freqs.weight") + number(1) + number(8, 8) + number(0) + number(0, 8)
    head = gguf(tensors=info, count=1)
    inside = send(page, head + factors, 10_000_000)
    assert "other than the divisors of llama3" in inside.json()["error"]  # they were read: 8 for each
    beyond = send(page, head, 10_000_000)
    assert beyond.status_code == 422
    assert f"rope_freqs.weight is beyond the first {len(head):,} bytes" in beyond.json()["error"]


@pytest.mark.parametrize(
    "name", ["<img src=x>.gguf", "../../x.gguf", "a\tb.gguf", "ü.gguf", ".gguf", "C:\\x\\y.gguf"]
)
def test_a_name_of_a_dropped_file_is_only_a_name(page: Page, name: str, tmp_path: Path) -> None:
    answer = send(page, gguf(), 100_000, name)
    if answer.status_code == 400:
        assert "\t" in name
        return
    label = answer.json()["label"]
    assert answer.status_code == 200
    assert not set(label) & set("<>/\\ \t")
    assert label.endswith(".gguf")


def test_claims_of_a_gguf_header_end_quickly(page: Page) -> None:
    key = string("x.list")
    bombs = {
        "strings": gguf(key + number(9) + number(8) + number(2**60, 8)),
        "bytes": gguf(key + number(9) + number(0) + number(2**40, 8)),
        "nested": gguf(key + (number(9) + number(9) + number(1, 8)) * 1000),
        "tensors": gguf(count=2**60),
        "dims": gguf(tensors=string("t") + number(2**31) + bytes(64), count=1),
        "huge": gguf(
            tensors=string("t") + number(4) + number(2**40, 8) * 4 + number(0) + number(0, 8), count=1
        ),
        "magic": b"GGUF" + bytes(1000),
        "other": b"PK" + bytes(1000),
        "empty": b"",
    }
    for name, head in bombs.items():
        began = time.process_time()
        answer = send(page, head, 2**43)
        assert answer.status_code == 422, name
        assert "zoo-studio-" not in answer.json()["error"]
        assert "m.gguf" in answer.json()["error"], name
        assert time.process_time() - began < 3, name


def test_a_header_of_many_small_lists_is_bounded_in_all(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zoo.weights.gguf_header._MOST_READS", 10_000)
    lists = [string(f"x.{i}") + number(9) + number(0) + number(2000, 8) + bytes(2000) for i in range(10)]
    answer = send(page, gguf(*lists), 2**40)
    assert answer.status_code == 422
    assert "its header has more than 10,000 values" in answer.json()["error"]


def test_a_gguf_request_has_a_size_that_is_true(page: Page) -> None:
    head = gguf()
    for size in ("", "x", "-1", "1e9", "9" * 30, "٣"):
        assert send(page, head, size).status_code == 400, size
    for untrue in (len(head) - 1, LARGEST + 1):
        assert send(page, head, untrue).status_code == 422, untrue
    assert MOST_HEAD < 2**25
    with pytest.raises(UserError, match="from 0 to"):
        opened_head(b"", LARGEST + 1, "x")


def test_a_config_is_imported_or_refused_in_the_words_of_the_command(page: Page, tmp_path: Path) -> None:
    wrong = {**CONFIG, "n_head": 5}
    unknown = {**CONFIG, "model_type": "gtp2"}
    odd = {**CONFIG, "activation_function": "odd"}
    for config in (wrong, unknown, odd):
        (tmp_path / "config.json").write_text(json.dumps(config))
        told = page.post("import", config=json.dumps(config))
        assert told.status_code == 422
        words = " ".join(told.json()["error"].split())
        theirs = command_refuses("show", str(tmp_path / "config.json"))
        assert words in theirs.replace(str(tmp_path / "config.json"), "config.json"), (words, theirs)
    assert page.post("import", config="[" * 50_000).status_code == 422
    assert page.post("import", config=json.dumps({**CONFIG, "unheard_of": 7})).json()["skipped"] == [
        "unheard_of"
    ]


def test_checkpoints_below_the_folder_are_opened_with_their_weights(
    page: Page, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (folder / "alone").mkdir(exist_ok=True)
    (folder / "alone/config.json").write_text(json.dumps(CONFIG))
    for reference in ("alone", "alone/config.json"):
        answer = page.post("open", reference=reference).json()
        assert answer["weights"] == ""
        assert "d_model: 64" in answer["text"]
    (folder / "alone/model.safetensors").write_bytes(bytes(8))
    assert page.post("open", reference="alone").json()["weights"] == "alone"
    assert "alone" in page.client.get(page.url("api/start")).json()["weights"]
    (folder / "small.gguf").write_bytes(gguf())
    assert page.post("open", reference="small.gguf").json()["weights"] == "small.gguf"


def test_references_are_refused_in_the_words_of_the_command(
    page: Page, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (folder / "empty").mkdir(exist_ok=True)
    (folder / "lone.safetensors").write_bytes(bytes(8))
    for reference in ("gtp2", "empty", "lone.safetensors", "no.gguf"):
        words = " ".join(page.post("open", reference=reference).json()["error"].split())
        assert words in command_refuses("show", reference), reference


def test_a_preset_is_opened_for_words_that_name_nothing_and_not_for_a_checkpoint_that_is_wrong(
    page: Page, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert page.post("open", reference="tiny gpt", otherwise="tiny-gpt").json()["preset"] == "tiny-gpt"
    (folder / "tiny").mkdir(exist_ok=True)
    (folder / "tiny/config.json").write_text(json.dumps({**CONFIG, "n_head": 7}))
    words = " ".join(page.post("open", reference="tiny", otherwise="tiny-gpt").json()["error"].split())
    assert "n_head: must divide n_embd" in words
    assert "no preset" in page.post("open", reference="no preset", otherwise="none").json()["error"]


def test_a_hub_id_is_resolved_by_the_resolver_of_all_commands(
    page: Page, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = tmp_path / "models--org--small" / "snapshots" / "0123456789"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text(json.dumps(CONFIG))
    asked: list[tuple[str, bool]] = []

    def fetch(reference: str, *, weights: bool, revision: str | None = None) -> Path:
        asked.append((reference, weights))
        return snapshot

    monkeypatch.setattr("zoo.weights.hub.fetch", fetch)
    answer = page.post("open", reference="org/small").json()
    assert (answer["label"], answer["weights"]) == ("small", "org/small")
    assert "d_model: 64" in answer["text"]
    assert set(asked) == {("org/small", False)}  # the config alone
    (folder / "org").mkdir(exist_ok=True)
    with pytest.raises(UserError):  # a path of an existing directory is no hub id
        opened_below("org/small", folder)
    (folder / "org").rmdir()


def test_a_hub_that_cannot_be_reached_is_refused_in_the_words_of_the_command(
    page: Page, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub.constants

    monkeypatch.chdir(folder)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    words = " ".join(page.post("open", reference="org/not-here").json()["error"].split())
    assert "org/not-here is not on this machine" in words
    assert words in command_refuses("show", "org/not-here")
