"""How mixers whose state decays begin: rates of decay, and step sizes (Mamba; Gu and Dao, 2023)."""

from __future__ import annotations

import math

from zoo.initialization import Distribution

RATES = Distribution(bound=math.log(16))
"""Logarithms of rates between 1/16 and 16."""

STEPS = Distribution(constant=math.log(math.expm1(0.01)))
"""Biases of step sizes near 0.01, which are the softplus of what is projected."""
