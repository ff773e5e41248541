"""What commands cost, as ratios within one run, so that a busy or slow machine changes little."""

import pytest

from benchmarks import exporting, start


@pytest.mark.slow
def test_light_commands_take_twice_the_imports_at_most() -> None:
    late = [(result.name, result.ratio) for result in start.results() if not result.met]
    assert late == []


@pytest.mark.slow
def test_a_verified_export_takes_a_quarter_of_the_exporter_of_pytorch_at_most() -> None:
    result = exporting.beside_torch()
    assert result.met, (result.figure, result.baseline)
