"""``zoo bench``: what it measures, as a table and as data, and what it refuses."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.process import ZOO, environment, wait_for_end
from tests.cli.program import as_json, done, invoke
from tests.exporters.quality import checkpoints

QUICK = ["--seconds", "0.05", "--threads", "1", "--lengths", "8", "--pasts", "4"]


@pytest.fixture(autouse=True)
def _less_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measuring the bandwidth of the memory takes half a gigabyte, which no test here needs."""
    monkeypatch.setattr("zoo.machine.bandwidth.SIZE", 8_000_000)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("exported") / "out"
    done("export", "tiny-gpt", "--no-verify", "-o", place)
    return place


@pytest.mark.slow
def test_quality_is_printed_with_speed(exported: Path, tmp_path: Path) -> None:
    origin, out = checkpoints.llama(tmp_path / "origin"), tmp_path / "int8"
    done("import", origin, "-o", tmp_path / "tiny.yaml")
    arguments = ["export", tmp_path / "tiny.yaml", "--weights", origin, "--precision", "int8", "-o", out]
    done(*arguments)
    figures = json.loads((out / "build.json").read_text())["quality"]["figures"]
    data = as_json("bench", out, exported, *QUICK)
    assert [each["quality"] for each in data["variants"]] == [figures, {}]
    table = invoke("bench", out, exported, *QUICK).stdout
    assert "quality" in table
    assert f"KL {figures['kl']:.2e}" in table
    assert "quality" not in invoke("bench", exported, *QUICK).stdout


@pytest.mark.slow
def test_targets_and_pytorch_side_by_side() -> None:
    result = done("bench", "tiny-gpt", "--targets", "portable,cpu", "--baselines", "eager", *QUICK, "--json")
    data = json.loads(result)
    names = [
        "tiny-gpt: portable fp32", "tiny-gpt: cpu fp32", "tiny-gpt: PyTorch eager",
    ]  # fmt: skip
    assert [each["name"] for each in data["variants"]] == names
    assert [each["provider"] for each in data["variants"]] == [
        "PyTorch" if "PyTorch" in name else "CPUExecutionProvider" for name in names
    ]
    for each in data["variants"]:
        assert each["fault"] is None
        assert each["load_seconds"] > 0
        assert each["peak_bytes"] > 30e6
        assert each["bytes"] == pytest.approx(4 * 223_616, rel=0.1)
    assert [each["workload"] for each in data["timings"]] == ["prompt 1 x 8"] * 3 + ["step 1 @ 4"] * 3
    assert [each["name"] for each in data["timings"]] == names * 2
    first = data["timings"][3]
    for each in data["timings"][3:]:
        took = each["seconds"]
        assert 0 < took["p50"] <= took["p90"] <= took["p99"]
        assert each["calls"] >= 5
        assert each["sequences_per_second"] == pytest.approx(1 / took["p50"])
        assert each["speed_against_first"] == pytest.approx(first["seconds"]["p50"] / took["p50"])
        assert each["share_of_bound"] == pytest.approx(
            each["bytes_read"] / data["bandwidth"]["read"] / took["p50"]
        )
    assert data["threads"] == 1


@pytest.mark.slow
def test_the_table(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    result = done("bench", exported, *QUICK, "--batches", "1,2", "-v")
    title, *lines = result.splitlines()
    assert title.startswith("Medians  on ")
    assert lines[0].split() == [
        "workload", "variant", "p50", "ms", "p90", "ms", "p99", "ms", "seq/s", "tokens/s", "speed", "of", "bound",
    ]  # fmt: skip
    labels = [line[:15].strip() for line in lines[2:6]]
    assert labels == ["prompt 1 x 8", "prompt 2 x 8", "step 1 @ 4", "step 2 @ 4"]
    assert lines[4].rstrip().endswith("%")
    assert "1 thread; memory bandwidth " in result


@pytest.mark.slow
def test_a_variant_that_cannot_be_loaded_leaves_the_others(exported: Path, tmp_path: Path) -> None:
    done("export", "tiny-gpt", "--no-verify", "-o", tmp_path / "out")
    graph = tmp_path / "out" / "model.onnx"
    graph.write_bytes(b"\xff" * graph.stat().st_size)
    result = invoke("bench", tmp_path / "out", exported, *QUICK, "--json")
    assert result.exit_code == 1
    data = json.loads(result.stdout)
    broken, whole = data["variants"]
    assert "model.onnx: ONNX Runtime cannot load it" in broken["fault"]
    assert whole["fault"] is None
    assert {each["name"] for each in data["timings"]} == {whole["name"]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gptt2"], "A model must be a preset, a file, a checkpoint or a hub repository\n  value: 'gptt2'\n  Did you mean 'gpt2'?"),
        (["tiny-gpt", "--targets", "portable,cdua"], "--targets 'cdua' is unknown\n  Did you mean 'cuda'?"),
        (["tiny-gpt", "--precisions", "fp33"], "--precisions 'fp33' is unknown\n  Did you mean 'fp32'?"),
        (["tiny-gpt", "--provider", "cdua"], "--provider must be the name of a provider.\n  value: 'cdua'\n  Did you mean 'cuda'?"),
        (["tiny-gpt", "--baselines", "eagre"], "--baselines 'eagre' is unknown\n  Did you mean 'eager'?"),
        (["tiny-gpt", "--batches", "0"], "--batches must be comma-separated whole numbers of at least 1.\n  value: '0'\n  Pass a list such as 1,8."),
        (["tiny-gpt", "--batches", "1;2"], "--batches must be comma-separated whole numbers of at least 1.\n  value: '1;2'\n"),
        (["tiny-gpt", "--pasts", "-1"], "--pasts must be comma-separated whole numbers of at least 0.\n  value: '-1'\n"),
        (["tiny-gpt", "--pasts", "128"], "--pasts must fit the context of tiny-gpt\n  value: 128\n  Use 127 or less."),
        (["whisper-tiny"], "whisper-tiny cannot be timed: "),
        (["bert-base", "--new-tokens", "3"], "--new-tokens applies only to decoders, and bert-base is an encoder."),
    ],
)  # fmt: skip
def test_models_that_cannot_be_timed_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result, data = invoke("bench", *arguments), invoke("bench", *arguments, "--json")
    assert (result.exit_code, result.stdout, data.exit_code) == (2, "", 2)
    assert message in result.stderr
    assert message in json.loads(data.stdout)["errors"][0]["message"]
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_ctrl_c_ends_the_workers_too(exported: Path) -> None:
    command = [*ZOO, "bench", str(exported), "--seconds", "600"]
    process = subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )

    def workers() -> list[str]:
        found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        return [pid for pid in found if b"exporters.benchmark.worker" in command_line(pid)]

    def command_line(pid: str) -> bytes:
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:  # it has ended meanwhile
            return b""

    while not (under_way := workers()):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate()
    assert (process.returncode, output, errors) == (130, b"", b"interrupted\n")
    for pid in under_way:
        wait_for_end(int(pid))
