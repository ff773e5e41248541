"""Drafts from the command line: ``zoo run --draft``, ``zoo eval --draft``, and a draft by depth of a trained checkpoint."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from exporters.benchmark.exported_subject import DraftedSubject
from exporters.benchmark.workload import Workload
from exporters.quality.texts import corpus
from specs.base.errors import UserError
from tests.cli.program import invoke, refused
from tests.exporters.quality.checkpoints import VOCABULARY, tokenizer


def done(*arguments: Any) -> Any:
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Exports of tiny-gpt and of its first three layers, with random weights, and one in int8."""
    place = tmp_path_factory.mktemp("drafts")
    done("export", "tiny-gpt", "--no-verify", "-o", place / "target")
    decisive = ["--set", "initialization={kind: normal, std: 0.5}", "--set", "head.tie_embeddings=false"]
    done("export", "tiny-gpt", *decisive, "--precision", "int8", "--no-verify", "-o", place / "int8")
    done("export", "tiny-gpt", "--set", "decoder.layers=3", "--no-verify", "-o", place / "draft")
    done("export", "bert-tiny", "--no-verify", "-o", place / "encoder")
    return place


def test_speed_and_acceptance_go_to_stderr(place: Path) -> None:
    prompts = ["--ids", "1,2,3", "--max-new-tokens", "24"]
    alone = done("run", place / "target", *prompts)
    result = done("run", place / "target", *prompts, "--draft", place / "draft", "--draft-tokens", "3")
    assert result.stdout == alone.stdout
    first, second, third = result.stderr.splitlines()
    assert re.fullmatch(
        r"draft: \d+% of \d+ proposed tokens accepted, \d\.\d\d tokens per call of tiny-gpt", first
    )
    assert second == "24 tokens, stopped at --max-new-tokens (24)"
    assert re.fullmatch(
        r"first token after .*, then [\d,.]+ tokens/s \([\d,.]+ without the draft\); loaded in .* on CPU",
        third,
    )
    quiet = done("run", place / "target", *prompts, "--draft", place / "draft", "-q")
    assert (quiet.stdout, quiet.stderr) == (alone.stdout, "")


def test_json_has_the_counts(place: Path) -> None:
    prompts = ["--ids", "1,2,3", "--ids", "9", "--max-new-tokens", "12", "--json"]
    sequences = [
        json.loads(done("run", place / "target", "--ids", ids, "--max-new-tokens", "12", "--json").stdout)["sequences"][0]
        for ids in ("1,2,3", "9")
    ]  # fmt: skip
    data = json.loads(done("run", place / "target", *prompts, "--draft", place / "draft").stdout)
    assert data["sequences"] == sequences
    draft = data["draft"]
    assert draft["name"] == "tiny-gpt+decoder.layers=3"
    assert 0 < draft["accepted"] <= draft["proposed"]
    assert draft["tokens_per_call"] == 22 / draft["calls"]
    assert draft["tokens_per_second_without"] > 0
    assert draft["first_difference"] is None
    drawn = [*prompts, "--temperature", "1", "--seed", "3", "--draft", place / "draft"]
    first, second = (json.loads(done("run", place / "target", *drawn).stdout) for _ in range(2))
    assert first["sequences"] == second["sequences"] != sequences


@pytest.mark.slow
def test_tokens_that_rounding_changes_are_reported(place: Path) -> None:
    """8-bit inputs of a call share one scale, so several tokens at once are rounded differently than one by one."""
    prompts = [part for token in range(20) for part in ("--ids", f"{token},7")]
    arguments = ["run", place / "int8", *prompts, "--draft", place / "draft"]
    difference = json.loads(done(*arguments, "--json").stdout)["draft"]["first_difference"]
    assert difference is not None
    assert done(*arguments).stderr.splitlines()[-1] == (
        f"Without the draft, token {difference + 1} differs: int8 rounds the inputs of all tokens of a call with one scale. "
        "Export in int4 or a float precision to avoid it."
    )


@pytest.mark.parametrize("command", ["run", "eval"])
@pytest.mark.parametrize(
    ("target", "arguments", "message"),
    [
        ("target", ["--draft-tokens", "3"], "--draft-tokens applies only to a draft.\n  Add --draft, or remove the option.\n"),
        ("target", ["--draft", "gone"], "gone is not an export (no export.json)\n"),
        ("target", ["--draft", "encoder"], "A draft must be a decoder with a head of kind language_modeling.\n  value: encoder, encoder, head pooler\n  Leave out --draft, or choose another export.\n"),
        ("target", ["--draft", "draft", "--draft-tokens", "0"], "--draft-tokens"),
    ],
)  # fmt: skip
def test_drafts_that_do_not_fit_are_refused(
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    target: str,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(place)
    inputs = ["--ids", "1"] if command == "run" else []
    assert message in refused(command, target, *inputs, *arguments)


def test_eval_compares_with_one_model_at_a_time(place: Path) -> None:
    for option in (["--against", place / "draft"], ["--per-layer"]):
        message = refused("eval", place / "target", "--draft", place / "draft", *option)
        assert f"--draft and {option[0]} are mutually exclusive.\n  Use one of them at a time.\n" in message
    result = invoke("run", place / "encoder", "--ids", "1", "--draft", place / "draft")
    assert "--draft applies only to decoders, and bert-tiny is an encoder.\n" in result.stderr


def test_eval_predicts_acceptance(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    arguments = ["eval", "target", "--draft", "draft", "--draft-tokens", "2"]
    result = done(*arguments)
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[5] == "inputs random token ids, seed 0"
    assert lines[6] == "against draft, which drafts 2 tokens at a time"
    assert lines[-1] == "zoo run target --draft draft --draft-tokens 2 # the speed"
    figures = json.loads(done(*arguments, "--json").stdout)["figures"]
    assert lines[1] == f"quality accepted in greedy decoding {figures['greedy_acceptance']:.2%}"
    assert lines[4] == f"tokens per call in sampling {figures['sampling_tokens_per_call']:.2f}"
    own = json.loads(done("eval", "target", "--draft", "target", "--json").stdout)["figures"]
    assert own == pytest.approx(
        {
            "greedy_acceptance": 1.0,
            "greedy_tokens_per_call": 5.0,
            "sampling_acceptance": 1.0,
            "sampling_tokens_per_call": 5.0,
        }
    )


def trained(directory: Path) -> Path:
    """A decoder of four layers, trained a little on the corpus, with some layers left out at random in each step."""
    torch.manual_seed(7)
    random.seed(7)
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=64, intermediate_size=96, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config)
    tokenizer().save(str(directory / "tokenizer.json"))
    ids = torch.tensor(tokenizer().encode(corpus()["prose"][:40_000]).ids)
    layers, optimizer = model.model.layers, torch.optim.AdamW(model.parameters(), 3e-3)
    for _ in range(300):
        starts = torch.randint(len(ids) - 64, (8, 1))
        rows = ids[starts + torch.arange(64)]
        kept = [layer for index, layer in enumerate(layers) if index in (0, 3) or random.random() < 0.5]
        model.model.layers = torch.nn.ModuleList(kept)
        optimizer.zero_grad()
        model(rows, labels=rows, use_cache=False).loss.backward()
        optimizer.step()
    model.model.layers = layers
    model.eval().save_pretrained(directory)
    return directory


@pytest.mark.slow
def test_a_draft_by_depth_of_a_trained_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of the guide, on a checkpoint that tolerates missing layers."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "checkpoint").mkdir()
    trained(tmp_path / "checkpoint")
    done("adapt", "checkpoint", "--set", "decoder.layers=2", "--layers", "0,3", "-o", "shallow")
    for source, output in (("checkpoint", "target"), ("shallow", "draft")):
        done("export", source, "--target", "cpu", "-o", output)
    quality = json.loads(done("eval", "target", "--draft", "draft", "--json").stdout)
    assert quality["figures"]["greedy_acceptance"] > 0.4
    assert quality["figures"]["greedy_tokens_per_call"] > 1.8
    text = ["--text", "The history of ", "--max-new-tokens", "100"]
    alone = done("run", "target", *text)
    result = done("run", "target", *text, "--draft", "draft")
    assert result.stdout == alone.stdout
    share = int(re.match(r"draft: (\d+)% of", result.stderr)[1])  # type: ignore[index]
    assert share > 30


@pytest.mark.slow
def test_bench_compares_with_the_target_alone(place: Path) -> None:
    quick = ["--seconds", "0.05", "--threads", "1", "--lengths", "8", "--pasts", "4", "--new-tokens", "8"]
    arguments = ["bench", place / "target", "--draft", place / "draft", "--draft-tokens", "3", *quick]
    data = json.loads(done(*arguments, "--json").stdout)
    rows = [(row["kind"], row["name"].partition(", ")[2]) for row in data["timings"]]
    assert rows == [("prompt", ""), ("step", ""), ("generate", ""), ("generate", "draft draft")]
    *alone, drafted = data["timings"]
    assert {row["accepted_share"] for row in alone} == {None}
    assert 0 < drafted["accepted_share"] < 1
    assert "accepted" in done(*arguments).stdout


@pytest.mark.slow
def test_bench_asserts_the_same_tokens_and_tells_the_share(place: Path) -> None:
    work = Workload("generate", (2,), new=9, rows=((1, 2),))
    same = DraftedSubject(place / "target", place / "target", 3, "cpu", 1)
    same.call(work)()
    assert same.acceptance == 1
    rows = tuple((token, 7) for token in range(20))
    differing = DraftedSubject(place / "int8", place / "draft", 4, "cpu", 1)
    with pytest.raises(UserError, match=r"without the draft, token \d+ differs: int8 rounds the inputs"):
        differing.call(Workload("generate", (2,) * 20, new=64, rows=rows))


def test_bench_takes_drafts_of_exports_alone(place: Path) -> None:
    result = invoke("bench", "tiny-gpt", "--draft", place / "draft")
    assert (result.exit_code, result.stderr.partition("\n")[0]) == (
        2,
        "--draft applies only to directories of exports",
    )
    assert invoke("bench", place / "target", "--draft", place / "encoder").exit_code == 2
    assert invoke("bench", place / "target", "--draft-tokens", 2).exit_code == 2


def test_prompts_of_a_text_follow_one_another() -> None:
    work = Workload("generate", (3, 2)).beginning((1, 2, 3, 4))
    assert work.rows == ((1, 2, 3), (4, 1))
    assert Workload("generate", (3, 2)).beginning(()).prompts(9) == [[0, 7, 5], [1, 8]]
