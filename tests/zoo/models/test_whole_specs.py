"""Whatever is valid can be built, counted, costed and shown, and does what its architecture must do."""

from __future__ import annotations

import pytest

from specs.base.errors import SpecError
from specs.forms.resolved import resolved
from specs.language.named_blocks import with_named_blocks
from specs.language.reading import read_text
from specs.language.validation import validate
from specs.language.writing import dump
from tests.specs.language.mutation import DRAWS, model_of
from tests.specs.language.test_mutation import random_of
from tests.whole_specs import specs_of_seed
from zoo.builder import assemble
from zoo.checks import check_behaviour, check_shapes
from zoo.reports.costs import costs
from zoo.reports.folding import Folded
from zoo.reports.parameters import built_tree, module_tree


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(5))
def test_whole_specs(seed: int) -> None:
    for number, spec in enumerate(specs_of_seed(seed, 20)):
        where, model = f"spec {number} of seed {seed}", assemble(spec)
        assert validate(with_named_blocks(read_text(dump(resolved(spec)), where))) == spec, where
        assert module_tree(Folded.of(spec)) == built_tree(model), where
        assert check_shapes(model, spec).passed, where
        report = check_behaviour(spec)
        assert report.passed, (where, [check for check in report.checks if check.status == "failed"])


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", DRAWS)
def test_damaged_specs_that_are_valid_can_be_built_and_costed(kind: str) -> None:
    built = 0
    for number in range(500):
        try:
            spec = model_of(DRAWS[kind](random_of(kind, number)))
        except SpecError:
            continue
        assert module_tree(Folded.of(spec)).parameters > 0, (kind, number)
        assert costs(spec).stages, (kind, number)
        built += 1
    assert built
