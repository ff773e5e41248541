"""Settings of all tests, and the summary of what the families' tests have compared: largest differences, draws fuzzed."""

from __future__ import annotations

import gc
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.parity.families.recorded import RECORDED, Parity
from tests.thinned import TABLES, mark_slow

# As many processes as processors run at once: threads of PyTorch that spin while they wait would take them from each other.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# What is printed to a pipe is as wide as it is, whatever the terminal that the tests are started from says.
os.environ.pop("COLUMNS", None)

# A draw that fails is shown as it was drawn: to shrink one that builds and exports models takes minutes.  How long it takes
# to draw, or to test what was drawn, says how busy the machine is.
settings.register_profile(
    "as drawn",
    parent=settings(),
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("as drawn")


@pytest.fixture(autouse=True, scope="session")
def _without_flushing() -> Iterator[None]:
    """Write files without waiting until they are on the disk: a machine that loses power loses nothing of worth here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


_RESUME: list[Path] = []
"""The file of ``--resume``, if it was given."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep the garbage collector from the millions of objects that are imported and collected, and never freed.

    Afterwards it looks for garbage less often: the models of tests are small.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(20_000)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--until", type=float, metavar="SECONDS", help="begin no test after this Unix time")
    parser.addoption(
        "--resume", type=Path, metavar="FILE", help="run no test that FILE names, and add what passes"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.stash[TABLES] = mark_slow(items)
    if (passed := config.getoption("--resume")) and passed.is_file():
        known = set(passed.read_text(encoding="utf-8").splitlines())
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in known])
        items[:] = [item for item in items if item.nodeid not in known]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add a test that passed to the file of ``--resume``."""
    if _RESUME and report.when == "call" and report.passed:
        with _RESUME[0].open("a", encoding="utf-8") as file:
            file.write(f"{report.nodeid}\n")


def pytest_configure(config: pytest.Config) -> None:
    if (passed := config.getoption("--resume")) and not hasattr(config, "workerinput"):
        _RESUME.append(passed)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    until = item.config.getoption("--until")
    if until is not None and time.time() > until:
        pytest.skip("NOT RUN: the time of this run is over")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    RECORDED.results.clear()
    yield
    item.user_properties += [("parity", asdict(result)) for result in RECORDED.results]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    families: dict[str, list[Parity]] = defaultdict(list)
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties if report.when == "call" else ():
            if name == "parity":
                families[value["family"]].append(Parity(**value))
    if not families:
        return
    terminalreporter.section("parity with transformers")
    terminalreporter.write_line(
        f"{'family':<18}{'configurations':>15}{'fuzzed':>8}{'PyTorch':>10}{'ONNX':>10}"
    )
    for family, results in sorted(families.items()):
        fuzzed = sum(result.fuzzed for result in results)
        pytorch, onnx = (max(getattr(result, kind) for result in results) for kind in ("pytorch", "onnx"))
        terminalreporter.write_line(
            f"{family:<18}{len(results) - fuzzed:>15}{fuzzed:>8}{pytorch:>10.1e}{onnx:>10.1e}"
        )
