"""Every figure of the report's page is that of ``zoo report --json`` and ``zoo check --json``, for the whole model."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from html import unescape
from typing import Any

import pytest

from specs.files.device import device_names
from specs.language.load import load
from tests.zoo.tiny import BLOCK, gpt2
from zoo.builder import assemble
from zoo.checks.shapes import check_shapes
from zoo.pages.report_page import report_page
from zoo.pages.shapes import shapes_section
from zoo.reports.memory import DTYPES
from zoo.reports.report import Report, report

PRESETS = [
    "tiny-gpt", "gpt2", "bert-base", "t5-small", "gemma3-1b", "mamba-130m", "olmoe-1b-7b", "whisper-tiny",
    "clip-vit-b32", "vit-base-16", "smolvlm-256m",
]  # fmt: skip


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.slow) for name in PRESETS], scope="module")
def shown(request: pytest.FixtureRequest) -> tuple[Report, dict[str, Any], str]:
    """A report, the data of its page, and the page."""
    found = report(load(request.param), devices=device_names()[:1])
    page = report_page(found)
    start = page.index("const DATA = ") + len("const DATA = ")
    return found, json.JSONDecoder().raw_decode(page[start:])[0], page


def _at(terms: Sequence[Any], sizes: Mapping[str, int]) -> int:
    """The value of a polynomial as the page's script computes it."""
    return sum(
        int(coefficient) * math.prod(sizes[symbol] ** power for symbol, power in powers.items())
        for coefficient, powers in terms
    )


def _rows(page: str, caption: str) -> list[list[str]]:
    """The cells of a table of the page, as text."""
    table = re.search(rf'aria-label="{caption}".*?<tbody>(.*?)</tbody>', page, re.DOTALL)
    assert table is not None, caption
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", table[1], re.DOTALL)
    return [
        [unescape(re.sub(r"<[^>]+>", "", cell.replace("<br>", "\n"))) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL)]
        for row in rows
    ]  # fmt: skip


def test_counts(shown):
    found, data, page = shown
    told = found.as_dict()["parameters"]
    facts = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page))
    assert facts["parameters"] == f"{told['total']:,}"
    assert facts.get("active per token", facts["parameters"]) == f"{told['active']:,}"
    rows = {row[0]: row[1] for row in _rows(page, "Parameters by role")}
    expected = {role["name"]: f"{role['parameters']:,}" for role in told["roles"]}
    assert rows == {**expected, "total": f"{told['total']:,}"}
    assert data["parameters"]["count"] == told["total"]
    assert _leaves(data["parameters"]) == told["total"]


def _leaves(node: Mapping[str, Any]) -> int:
    return sum(map(_leaves, node["children"])) if "children" in node else node["count"]


def test_costs(shown):
    found, data, _ = shown
    stages = found.as_dict()["stages"]
    assert data["costs"]["stages"].keys() == stages.keys()
    for name, stage in data["costs"]["stages"].items():
        sizes, (whole, *inner) = found.lengths.symbols(name), stage["rows"]
        assert _at(whole["products"], sizes) == stages[name]["at"]["matmul"]
        assert _at(whole["elements"], sizes) == stages[name]["at"]["other"]
        tops = [row for row in inner if row["level"] == 1]
        assert sum(_at(row["products"], sizes) for row in tops) == stages[name]["at"]["matmul"]


def test_parts(shown):
    """The parts of the drawing cover the model: its parameters, its matrix products and its caches, each once."""
    found, data, _ = shown
    told = found.as_dict()
    parts = [part for part in data["parts"]["parts"] if part["role"]]  # frames repeat what is in them
    assert sum(part["parameters"] for part in parts) == told["parameters"]["total"]
    for name, stage in told["stages"].items():
        sizes = found.lengths.symbols(name)
        own = [_at(part["stages"].get(name, {}).get("products", ()), sizes) for part in parts]
        # Picking one token (BERT, CLIP) is a product of the head, of which no part has the weights.
        assert 0 <= stage["at"]["matmul"] - sum(own) < 2e-5 * stage["at"]["matmul"]
    caches = [part["cache"] for part in parts if part["cache"]]
    assert bool(caches) == ("cache" in told["memory"])
    if caches:
        itemsize, cache = DTYPES[found.precision].itemsize, told["memory"]["cache"]
        values = sum(int(values) for cached in caches for values, _ in cached["own"])
        assert values * itemsize == cache["bytes_per_token"]
        assert sum(int(each["encoder"]) for each in caches) * itemsize == cache["encoder_bytes_per_token"]
        assert sum(each["state"] for each in caches) == cache["state_bytes"]


def test_memory(shown):
    found, data, _ = shown
    told, budget = found.as_dict()["memory"], data["budget"]
    assert {name: int(each["bytes"]) for name, each in budget["precisions"].items()} == told["weights"]
    cache = budget["cache"]
    assert (cache is None) == ("cache" not in told)
    if cache is not None:
        itemsize = DTYPES[found.precision].itemsize
        assert sum(int(values) for values, _ in cache["own"]) * itemsize == told["cache"]["bytes_per_token"]
        assert int(cache["encoder"]) * itemsize == told["cache"]["encoder_bytes_per_token"]
        assert cache["state"] == told["cache"]["state_bytes"]


def test_training(shown):
    found, data, _ = shown
    told, budget = found.as_dict()["training"], data["budget"]["training"]
    sizes = found.lengths.symbols("train")
    passes = {name: _at(terms, sizes) for name, terms in budget["passes"].items()}
    assert passes["forward"] + passes["backward"] == told["at"]["matmul"]
    assert sum(passes.values()) == told["at"]["matmul_checkpointed"]
    step = budget["bytes"][str(found.dtype.itemsize)]
    assert sum(map(int, step["state"].values())) == told["state"]["total"]
    assert _at(step["activations"], sizes) == told["at"]["activations"]
    assert _at(step["unfused"], sizes) == told["at"]["activations_unfused"]


def test_shapes(shown):
    found, _, page = shown
    told = check_shapes(assemble(found.spec), found.spec)
    rows = _rows(page, "Shapes of modules")
    assert rows[0][2:] == ["\n".join(told.modules[0].inputs), "\n".join(told.modules[0].outputs)]
    everything = {(m.kind, "\n".join(m.inputs), "\n".join(m.outputs)) for m in told.modules}
    assert {tuple(row[1:]) for row in rows} == everything


def test_the_cache_is_that_of_all_layers():
    spec = gpt2(decoder={"layers": 5, "block": BLOCK})
    page = shapes_section(check_shapes(assemble(spec), spec))
    assert "5 x 2 x (B x 2 x P+T x " in page
    assert "blocks, all 5 layers" in page
