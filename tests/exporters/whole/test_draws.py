"""Whole random specs, exported with random options: each is refused before anything is done, or exported and verified.

``make test-slow`` draws fifty.  ``ZOO_DRAWS=1000`` draws more, ``--hypothesis-seed=N`` others; with ``CI=true`` the draws
are always the same.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st

from exporters.export import export
from exporters.graph.precisions import PRECISIONS
from exporters.layouts import LAYOUTS
from exporters.steps.options import ExportOptions
from exporters.steps.request import Request
from exporters.target.targets import TARGETS
from specs.base.errors import UserError
from specs.model.model import Model
from tests.strategies import Data, model_data

DRAWS = int(os.environ.get("ZOO_DRAWS", "50"))

PRECISE = ["fp32", "fp32", "fp16"]
"""Half of the draws round nothing: what differs there is the graph's."""


@st.composite
def options(draw: st.DrawFn, data: Data) -> Data:
    """How to export a model of this data; one in ten is as likely as not refused."""
    chosen: Data = {"target": draw(st.sampled_from([*TARGETS]))}
    chosen["precision"] = draw(st.sampled_from([*PRECISE, *PRECISIONS]))
    anything, decodes = draw(st.integers(0, 9)) == 0, data["architecture"] != "encoder"
    if anything:
        chosen["layout"] = draw(st.sampled_from([*LAYOUTS]))
    if anything or (decodes and "language_modeling" in data["head"]["kind"]):
        chosen["logits"] = draw(st.sampled_from(["all", "last"]))
    if anything or (decodes and TARGETS[chosen["target"]].static_cache):
        chosen["cache_length"] = draw(st.sampled_from([None, 3, 5, 8]))
    if chosen["precision"] == "int4":
        chosen["block_size"], chosen["asymmetric"] = draw(st.sampled_from([32, 64])), draw(st.booleans())
        chosen["head_precision"] = draw(st.sampled_from(["int4", "int8"]))
    return chosen


@st.composite
def exports(draw: st.DrawFn) -> tuple[Data, Data]:
    """A spec and how to export it."""
    data = draw(model_data())
    return data, draw(options(data))


def exported_or_refused(data: Data, chosen: Data, directory: Path) -> str:
    """Export a spec, or assert that it is refused at once: which of the two it is, and why."""
    shutil.rmtree(directory, ignore_errors=True)
    spec = Model.model_validate(data)
    try:
        given = ExportOptions(**chosen)
        Request.of_spec(spec, given, directory)
    except UserError as error:
        reason = str(error)
    else:
        reason = ""
    if reason:
        with pytest.raises(UserError) as raised:
            export(spec, directory, ExportOptions(**chosen))
        assert str(raised.value) == reason
        assert not directory.exists()
        return f"refused: {reason.splitlines()[0]}"
    result = export(spec, directory, given)
    assert result.verification is not None
    assert result.verification.passed
    return "exported"


@pytest.mark.slow
@pytest.mark.timeout(60 * 60)
@settings(max_examples=DRAWS, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn=exports())
def test_every_drawn_spec_is_refused_or_exported_and_verified(
    drawn: tuple[Data, Data], tmp_path_factory: Any
) -> None:
    data, chosen = drawn
    note(f"zoo export with {chosen} of {data}")
    event(exported_or_refused(data, chosen, tmp_path_factory.getbasetemp() / "drawn").split(":")[0])
