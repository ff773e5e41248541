"""The words and spans of a runtime without PyTorch are those that a model computes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from exporters.runtime.tokens import word_inputs
from zoo.components.spans import words_of


@pytest.mark.parametrize("numbers", [[[0, 1, 0, 2, 3], [1, 2, 0, 0, 0]], [[0, 0]], [[1]]])
@pytest.mark.parametrize("width", [1, 3, 12])
def test_spans_are_those_of_the_model(numbers: list[list[int]], width: int) -> None:
    found = word_inputs(np.array(numbers, np.int64), width)
    expected = words_of(torch.tensor(numbers), max(1, int(np.max(numbers))), width).inputs
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values.numpy())
