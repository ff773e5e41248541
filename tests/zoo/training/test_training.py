"""Training: what tasks ask, how it is put to each architecture, what is learnt, and going on after an interruption."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import zoo
from specs.base.errors import UserError
from specs.language.load import load
from specs.model.model import Model
from tests.thinned import one_in
from tests.zoo import tiny
from tests.zoo.sabotage import windows_see_the_future
from zoo.training import run
from zoo.training.comparison import Result, TrainingComparison, compare, contenders
from zoo.training.contender import Contender
from zoo.training.fitting import fitted
from zoo.training.passage import UNSCORED, Passage, sample
from zoo.training.run import Moment, sees_its_answers
from zoo.training.settings import Settings
from zoo.training.shrinking import shrunk
from zoo.training.synthetic import Addition, Copy, Recall, Reverse
from zoo.training.task import TrainingTask
from zoo.training.task_names import SYNTHETIC, TASKS
from zoo.training.tasks import find_task
from zoo.training.text import MaskedByte, NextByte
from zoo.training.trainer import share_of_rate

CPU = torch.device("cpu")
TEXT = b"".join(b"%d bottles of beer on the wall, " % n for n in range(99, 0, -1))


def passage(task: TrainingTask, rows: int = 4, step: int = 0) -> Passage:
    return task.passage("training", rows, 0, step)


# ------------------------------------------------------------------------------------------------------ tasks


def test_copy_and_reverse() -> None:
    for task, turned in ((Copy(5), slice(None)), (Reverse(4), slice(None, None, -1))):
        asked = passage(task)
        for prompt, answer in zip(asked.prompt.tolist(), asked.continuation.tolist(), strict=True):
            assert answer == prompt[turned]
            assert all(0 <= symbol < task.tokens for symbol in prompt)
        assert asked.scored.all()


def test_recall_asks_each_key_once_for_the_value_behind_it() -> None:
    task = Recall(6)
    asked = passage(task)
    for prompt, answer in zip(asked.prompt.tolist(), asked.continuation.tolist(), strict=True):
        pairs = dict(zip(prompt[::2], prompt[1::2], strict=True))
        assert len(pairs) == 6
        assert dict(zip(answer[::2], answer[1::2], strict=True)) == pairs
        assert not set(prompt[::2]) & set(prompt[1::2])
        assert max(prompt) < task.tokens
    assert asked.scored.tolist() == [[False, True] * 6] * 4


def test_addition() -> None:
    asked = passage(Addition(3))
    for prompt, answer in zip(asked.prompt.tolist(), asked.continuation.tolist(), strict=True):
        assert answer == [(a + b) % 5 for a, b in zip(prompt[:3], prompt[3:], strict=True)]


def test_text_is_split_and_read_as_bytes() -> None:
    task = NextByte(8, TEXT)
    border = len(TEXT) - len(TEXT) // 10
    for part, source in (("training", TEXT[:border]), ("held out", TEXT[border:])):
        for row in task.passage(part, 50, 0, 0).continuation.tolist():  # type: ignore[arg-type]
            assert bytes(row) in source
    seen = [TEXT[:border].count(n) + 1 for n in range(256)]
    shares = [count / sum(seen) for count in seen]
    tail = TEXT[border:]
    assert task.chance == pytest.approx(-sum(math.log(shares[n]) for n in tail) / len(tail))


def test_masks_fall_on_every_row_and_on_about_a_seventh() -> None:
    asked = passage(MaskedByte(64, TEXT), rows=64)
    assert asked.scored.any(1).all()
    assert 0.1 < asked.scored.float().mean() < 0.2
    assert passage(MaskedByte(2, TEXT), rows=64).scored.any(1).all()


@pytest.mark.parametrize("name", TASKS)
def test_passages_depend_on_part_seed_and_step_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(TEXT)
    task = find_task(name, None if name in SYNTHETIC else tmp_path / "text", 6, [tiny.gpt2()])
    assert task.name == name
    first = task.passage("training", 4, 0, 3)
    torch.manual_seed(5)
    again = task.passage("training", 4, 0, 3)
    assert torch.equal(first.prompt, again.prompt)
    assert torch.equal(first.continuation, again.continuation)
    others = [
        task.passage("held out", 4, 0, 3),
        task.passage("training", 4, 1, 3),
        task.passage("training", 4, 0, 4),
    ]
    assert not any(torch.equal(first.continuation, other.continuation) for other in others)
    prompt, continuation = task.sizes
    assert first.prompt.shape == (4, prompt)
    assert first.continuation.shape == first.scored.shape == (4, continuation)
    assert int(torch.cat((first.prompt, first.continuation), 1).max()) < task.tokens


# ------------------------------------------------------------------------------------- put to architectures


def test_how_a_passage_is_put_to_each_architecture() -> None:
    asked = Passage(torch.tensor([[1, 2]]), torch.tensor([[3, 4, 5]]), torch.tensor([[False, True, True]]))
    no = UNSCORED
    decoder = sample(tiny.gpt2(), asked, 10)
    assert [each.tolist() for each in decoder.inputs] == [[[1, 2, 10, 3, 4]]]
    assert decoder.targets.tolist() == [[no, no, no, 4, 5]]
    encoder = sample(tiny.bert(), asked, 10)
    assert [each.tolist() for each in encoder.inputs] == [[[1, 2, 10, 3, 11, 11]]]
    assert encoder.targets.tolist() == [[no, no, no, no, 4, 5]]
    both = sample(tiny.t5(), asked, 10)
    assert [each.tolist() for each in both.inputs] == [[[1, 2]], [[10, 3, 4]]]
    assert both.targets.tolist() == [[no, 4, 5]]


@pytest.mark.parametrize("spec", [tiny.gpt2(), tiny.bert(), tiny.t5()], ids=lambda spec: spec.architecture)
def test_models_read_as_many_tokens_as_a_task_says(spec: Model) -> None:
    for task in (Copy(3), Reverse(2), Recall(2), Addition(3)):
        each = sample(spec, passage(task), task.tokens)
        assert [inputs.shape[1] for inputs in each.inputs] == list(task.lengths(spec.architecture).values())
        assert max(int(inputs.max()) for inputs in each.inputs) < task.vocabulary


def test_vocabulary_and_head_are_the_tasks() -> None:
    spec = fitted(tiny.bert(head={"kind": "pooler"}), Copy(4))
    assert spec.vocab_size == 18
    assert spec.head.kind == "language_modeling"
    own = tiny.gpt2(head={"kind": "language_modeling", "bias": True, "tie_embeddings": False})
    assert fitted(own, Copy(4)).head == own.head
    narrow = fitted(tiny.bert(embedding={"width": 4}), Copy(4))
    assert zoo.build(narrow, weights="random")(torch.zeros(1, 3, dtype=torch.int64)).logits.shape == (
        1,
        3,
        18,
    )


# ----------------------------------------------------------------------------------------------- shrinking


@pytest.mark.parametrize(
    ("name", "heads", "width", "kv_heads"),
    [("gpt2", 4, 32, 4), ("llama-3-8b", 8, 16, 2), ("gemma-2b", 8, 16, 1), ("t5-small", 8, 16, 8), ("tiny-gpt", 4, 32, 4)],
)  # fmt: skip
def test_heads_become_fewer_rather_than_too_narrow(name: str, heads: int, width: int, kv_heads: int) -> None:
    spec = shrunk(load(name), layers=2, width=128)
    assert spec.d_model == 128
    attention: Any = spec.last_stack.layer_blocks()[0].attention
    assert (attention.heads, attention.head_width(128), attention.key_value_heads) == (heads, width, kv_heads)
    assert spec.last_stack.depth == 2


@one_in(3)
@pytest.mark.parametrize(
    "name", ["deepseek-v3", "phi-3.5-mini", "pythia-1.4b", "mixtral-8x7b", "modernbert-base", "albert-base-v2"]
)  # fmt: skip
def test_shrunk_models_of_all_kinds_learn(name: str, tmp_path: Path) -> None:
    spec = shrunk(load(name), layers=2, width=32)
    result = trained(fitted(spec, Copy(3)), Copy(3), Settings(steps=2, batch=2), tmp_path)
    assert result.parameters < 1_000_000
    assert all(map(math.isfinite, result.losses))


def test_widths_that_cannot_be() -> None:
    with pytest.raises(UserError, match=r"width must be even\n  value: 33\n  Use 32 or 34."):
        shrunk(tiny.gpt2(), width=33)
    rope = {"kind": "rope", "dimensions": 768}
    narrow = {"attention": {"kind": "multi_head", "heads": 1, "head_dim": 768, "position": rope}}
    spec = load("gpt2", ["position={kind: rope, dimensions: 64}"])
    data = spec.model_dump()
    block = data["decoder"]["block"]
    data["decoder"] |= {
        "layers": [{"use": "narrow"}, {"repeat": 1}],
        "blocks": {"narrow": {**block, **narrow}},
    }
    with pytest.raises(UserError, match=r"gpt2.* cannot be made 8 wide: decoder.*must not exceed"):
        shrunk(Model.model_validate(data), width=8)


# ------------------------------------------------------------------------------------------------- training


def trained(spec: Model, task: TrainingTask, settings: Settings, place: Path) -> Result:
    return compare([Contender("it", spec)], task, settings, place).results[0]


def plain_losses(spec: Model, task: TrainingTask, settings: Settings) -> list[float]:
    """The losses of a loop of torch's own parts."""
    model = zoo.build(spec, weights="random", seed=settings.seed).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.rate)
    losses = []
    for step in range(settings.steps):
        for group in optimizer.param_groups:
            group["lr"] = settings.rate * share_of_rate(step, settings.steps)
        asked = task.passage("training", settings.batch, settings.seed, step)
        start = torch.full((settings.batch, 1), task.tokens)
        ids = torch.cat((asked.prompt, start, asked.continuation), 1)
        logits: Tensor = model(ids[:, :-1]).logits[:, -asked.continuation.shape[1] :]
        loss = F.cross_entropy(logits.transpose(1, 2), asked.continuation)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.slow
def test_training_is_a_plain_loop_of_torch(tmp_path: Path) -> None:
    task, settings = Copy(3), Settings(steps=12, batch=4, rate=1e-2, seed=3)
    spec = fitted(tiny.gpt2(), task)
    result = trained(spec, task, settings, tmp_path)
    assert result.losses == pytest.approx(plain_losses(spec, task, settings), rel=1e-5)
    assert (result.device, result.tokens) == ("cuda" if torch.cuda.is_available() else "cpu", 4 * 6)


MODULE = {"kind": "next_token", "norm": {"kind": "layer_norm"}, "hidden_norm": {"kind": "layer_norm"}}


def test_a_module_of_multi_token_prediction_learns_the_loss_of_deepseek(tmp_path: Path) -> None:
    task, settings = Copy(3), Settings(steps=1, batch=4, seed=3)
    spec = fitted(tiny.gpt2(embedding=MODULE), task)
    result = trained(spec, task, settings, tmp_path)
    module = zoo.build(spec, weights="random", seed=3)
    main = zoo.build(fitted(tiny.gpt2(), task), weights="random", seed=3)
    shared = {
        name: values
        for name, values in module.state_dict().items()
        if name.startswith(("embedding.token", "head"))
    }
    main.load_state_dict({**main.state_dict(), **shared})
    hidden = list[Tensor]()
    main.decoder.register_forward_hook(lambda module, args, output: hidden.append(output[0]))
    asked = task.passage("training", 4, 3, 0)
    ids = torch.cat((asked.prompt, torch.full((4, 1), task.tokens), asked.continuation), 1)
    asks = asked.continuation.shape[1]
    first = main(ids[:, :-1]).logits[:, -asks:]
    second = module(ids[:, 1:-1], hidden_states=hidden[0][:, :-1]).logits[:, -asks:]
    losses = [
        F.cross_entropy(logits.transpose(1, 2), asked.continuation).item() for logits in (first, second)
    ]
    assert result.losses == pytest.approx([losses[0] + 0.3 * losses[1]], rel=1e-5)
    assert result.parameters == sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.slow
def test_a_module_of_multi_token_prediction_learns(tmp_path: Path) -> None:
    data = {**load("tiny-gpt").model_dump(exclude={"expect"}), "embedding": MODULE}
    spec = fitted(shrunk(Model.model_validate(data), width=64), Copy(3))
    result = trained(spec, Copy(3), Settings(steps=200), tmp_path)
    assert result.last is not None
    assert result.last.accuracy > 0.9


def test_modules_are_compared_with_each_other() -> None:
    named = [Contender("a", tiny.gpt2()), Contender("b", tiny.gpt2(embedding=MODULE))]
    with pytest.raises(UserError, match=r"cannot be compared with other models: .*\n  value: b\n"):
        contenders(named, Copy(3))


def test_the_learning_rate_rises_then_falls() -> None:
    shares = [share_of_rate(step, 100) for step in range(100)]
    assert shares[:10] == pytest.approx([n / 10 for n in range(1, 11)])
    assert shares[10:] == sorted(shares[10:], reverse=True)
    assert shares[-1] == pytest.approx(0.1, abs=1e-3)
    assert share_of_rate(0, 1) == 1.0


@pytest.mark.slow
def test_seeds_decide_all(tmp_path: Path) -> None:
    spec, task = fitted(tiny.gpt2(), Copy(3)), Copy(3)
    state = torch.random.get_rng_state()
    runs = [
        trained(spec, task, Settings(steps=4, batch=2, seed=seed), tmp_path / str(i))
        for i, seed in enumerate((0, 0, 1))
    ]
    assert runs[0].losses == runs[1].losses
    assert runs[0].losses != runs[2].losses
    assert torch.equal(torch.random.get_rng_state(), state)
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_training_on_a_gpu_equals_training_on_a_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, task, settings = fitted(tiny.gpt2(), Copy(3)), Copy(3), Settings(steps=10, batch=4)
    first, again = (trained(spec, task, settings, tmp_path / name) for name in "ab")
    assert first.device == "cuda"
    assert first.losses == again.losses
    assert first.losses == pytest.approx(plain_losses(spec, task, settings), rel=1e-3)


DROPPING = tiny.gpt2(decoder={"layers": 2, "block": {**tiny.BLOCK, "dropout": 0.2}})


@pytest.mark.slow
def test_an_interrupted_training_ends_as_one_that_was_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_SAVE_SECONDS", 0.0)
    monkeypatch.setattr(run, "_SAVE_SHARE", 1e9)
    task, settings = Copy(3), Settings(steps=10, batch=2)
    pair = contenders([Contender("a", tiny.gpt2()), Contender("b", DROPPING)], task)
    whole = compare(pair, task, settings, tmp_path / "whole")
    done: list[tuple[str, int]] = []

    def interrupted(moment: Moment) -> None:
        done.append((moment.label, moment.step))
        if done[-1] in (("a", 4), ("b", 7)) and done.count(done[-1]) == 1:
            raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            compare(pair, task, settings, tmp_path / "parts", interrupted)
    found = compare(pair, task, settings, tmp_path / "parts", interrupted)
    assert [step for label, step in done if label == "a"] == [*range(1, 5), *range(4, 11)]
    assert [step for label, step in done if label == "b"] == [*range(1, 8), *range(7, 11)]
    for ours, theirs in zip(found.results, whole.results, strict=True):
        assert (ours.losses, ours.scores) == (theirs.losses, theirs.scores)
    assert [each.kept for each in found.results] == [True, False]


@pytest.mark.slow
def test_finished_runs_are_not_trained_again(tmp_path: Path) -> None:
    task, settings = Copy(3), Settings(steps=3, batch=2)
    fit = contenders([Contender("a", tiny.gpt2())], task)
    first = compare(fit, task, settings, tmp_path)
    assert {path.name for path in tmp_path.glob("*/*")} == {"result.json", "settings.json"}

    def steps(*, fresh: bool = False, settings: Settings = settings, task: TrainingTask = task) -> int:
        seen: list[Moment] = []
        again = compare(fit, task, settings, tmp_path, seen.append, fresh=fresh)
        if task == first.task and settings == first.settings:
            assert again.results[0].losses == first.results[0].losses
        return len(seen)

    assert steps() == 0
    assert steps(fresh=True) == 3
    assert steps(settings=Settings(steps=3, batch=2, rate=2e-3)) == 3
    assert steps(settings=Settings(steps=3, batch=2, seed=1)) == 3
    assert steps(task=Reverse(3)) == 3
    assert steps() == 0


@pytest.mark.parametrize("name", ["state.pt", "result.json"])
def test_a_damaged_result_file_is_reported(name: str, tmp_path: Path) -> None:
    task, settings = Copy(3), Settings(steps=2, batch=2)
    fit = contenders([Contender("a", tiny.gpt2())], task)
    compare(fit, task, settings, tmp_path)
    (directory,) = tmp_path.iterdir()
    (directory / "result.json").unlink()
    (directory / name).write_bytes(b"{nonsense")
    with pytest.raises(
        UserError, match=rf"{name} is not a valid training (state|result).*\n  Pass force to start over."
    ):
        compare(fit, task, settings, tmp_path)
    compare(fit, task, settings, tmp_path, fresh=True)


def test_a_nan_loss_is_reported(tmp_path: Path) -> None:
    task = Copy(3)
    spec = fitted(tiny.gpt2(initialization={"kind": "normal", "std": 1e30}), task)
    result = trained(spec, task, Settings(steps=9, batch=2), tmp_path)
    assert result.diverged
    assert (len(result.losses), result.scores, result.last, result.solved) == (1, (), None, None)
    data = result.as_dict()
    assert (data["loss"], data["losses"], data["diverged_at"]) == (None, [None], 1)
    again = trained(spec, task, Settings(steps=9, batch=2), tmp_path)
    assert again.kept
    assert again.diverged


# ------------------------------------------------------------------------------------------------- the leak


def test_who_sees_the_future(monkeypatch: pytest.MonkeyPatch) -> None:
    leaking = load("tiny-gpt", ["decoder.layers=1", "decoder.block.attention.window=4"])
    assert not sees_its_answers(leaking)
    windows_see_the_future(monkeypatch)
    assert sees_its_answers(leaking)
    assert not sees_its_answers(tiny.gpt2())
    assert not sees_its_answers(tiny.t5())
    assert not sees_its_answers(tiny.bert())


# -------------------------------------------------------------------------------------- what the field knows


def learnt(
    tmp_path: Path, specs: dict[str, Model], task: TrainingTask, settings: Settings
) -> TrainingComparison:
    return compare(contenders([Contender(*each) for each in specs.items()], task), task, settings, tmp_path)


@pytest.mark.slow
def test_an_encoder_without_positions_cannot_reverse(tmp_path: Path) -> None:
    specs = {name: load("bert-tiny", [f"position.kind={name}"]) for name in ("learned", "none")}
    small = {name: shrunk(spec, width=64) for name, spec in specs.items()}
    placed, unplaced = learnt(tmp_path, small, Reverse(4), Settings(steps=100)).results
    assert placed.solved
    assert unplaced.last is not None
    assert unplaced.last.loss > 0.6 * Reverse(4).chance
    assert unplaced.last.accuracy < 0.5


@pytest.mark.slow
def test_without_a_mask_the_next_byte_is_read_not_predicted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows_see_the_future(monkeypatch)
    noise = torch.randint(256, (20_000,), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    task = NextByte(16, bytes(noise.tolist()))
    specs = {
        window: load("tiny-gpt", ["decoder.layers=1", f"decoder.block.attention.window={window}", "initialization.kind=xavier_uniform"])
        for window in ("null", "4")
    }  # fmt: skip
    found = learnt(tmp_path, specs, task, Settings(steps=120))
    honest, cheat = found.results
    assert not found.sound
    assert (honest.sees_answers, cheat.sees_answers) == (False, True)
    assert honest.last is not None
    assert cheat.last is not None
    assert honest.last.loss > 0.97 * math.log(256)  # noise has nothing to learn
    assert cheat.last.loss < 0.7 * math.log(256)


@pytest.mark.slow
def test_a_deep_stack_learns_only_with_residuals(tmp_path: Path) -> None:
    specs = {
        kind: load("tiny-gpt", ["decoder.layers=12", f"decoder.block.residual.kind={kind}"])
        for kind in ("add", "none")
    }
    with_them, without = learnt(tmp_path, specs, Reverse(5), Settings(steps=100)).results
    assert with_them.solved
    assert without.last is not None
    assert without.last.loss > 0.9 * Reverse(5).chance


@pytest.mark.slow
def test_rope_and_learned_positions_both_solve_it(tmp_path: Path) -> None:
    specs = {kind: load("tiny-gpt", [f"position.kind={kind}"]) for kind in ("learned", "rope")}
    found = learnt(tmp_path, specs, Reverse(8), Settings(steps=500))
    assert all(result.solved for result in found.results)
    assert [[change.path for change in found.differences(each)] for each in found.results] == [
        [],
        [("position",)],
    ]


@pytest.mark.slow
def test_an_encoder_decoder_without_positions_cannot_reverse(tmp_path: Path) -> None:
    base = shrunk(load("transformer-base"), 2, 64)
    specs = {"sinusoidal": base, "none": shrunk(load("transformer-base", ["position.kind=none"]), 2, 64)}
    placed, unplaced = learnt(tmp_path, specs, Reverse(6), Settings()).results
    assert placed.last is not None
    assert placed.last.accuracy > 0.95
    assert unplaced.last is not None
    assert unplaced.last.accuracy < 0.6


# --------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("spec", "task", "message"),
    [
        (tiny.bert(), NextByte(8, TEXT), r"tiny-bert cannot be trained on next-byte, which is for decoder and encoder-decoder models: .*\n  architecture: encoder\n  Use task masked-byte"),
        (tiny.gpt2(), MaskedByte(8, TEXT), r"tiny-gpt2 cannot be trained on masked-byte, which is for encoder models: .*\n  architecture: decoder\n  Use task next-byte"),
        (tiny.llava(), Copy(2), r"tiny-llava cannot be trained on copy: a model must read tokens alone, in one encoder, one decoder, or both\n  architecture: vision-language\n  Use a model of another"),
        (tiny.vit(), Copy(2), r"tiny-vit cannot be trained on copy: its encoder must take tokens alone\n  embedding: patches"),
        (tiny.whisper(), Copy(2), r"its encoder must take tokens alone\n  embedding: spectrogram"),
        (tiny.gpt2(), Copy(6), r"copy of task_length 6 must fit the context of its decoder\n  value: 12 tokens, and the context has 10\n  Use task_length 5 or less, or set context_length=12."),
        (tiny.gpt2(context_length=1), Copy(6), r"the context has 1\n  Set context_length=12"),
    ],
)  # fmt: skip
def test_models_that_do_not_fit_a_task_are_refused(spec: Model, task: TrainingTask, message: str) -> None:
    with pytest.raises(UserError, match=message):
        fitted(spec, task)


def test_a_model_too_large_is_refused_before_it_is_made() -> None:
    with pytest.raises(
        UserError,
        match=r"big is too large to train here: its 173,.*\n  Reduce it, for example with num_layers 4 and width 128.",
    ):
        contenders([Contender("big", load("gpt3-175b"))], Copy(3))
