"""The tests that every family of decoders and encoders has alike: a family's file lists its configurations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.parity.families.harness import check
from tests.parity.families.refusals import refused
from tests.thinned import one_in


class FamilyTests:
    """A family: its config class and usual class, configurations by name, other classes with their values, a strategy, and refusals.

    ``config`` makes a config of values.  ``others`` are tried with the configuration ``of_others`` and the values beside
    them.  ``draw`` gives the values of any configuration.  ``refusals`` are fields with a value that is not supported and what
    the message says; they are set in ``of_refusals``.  Both configurations are by default the first.  ``drawn`` are options of
    ``check`` for any configuration.
    """

    model_class: ClassVar[type]
    config: ClassVar[Callable[..., Any]]
    configs: ClassVar[Mapping[str, Mapping[str, Any]]]
    others: ClassVar[Sequence[tuple[type, Mapping[str, Any]]]] = ()
    of_others: ClassVar[str] = ""
    refusals: ClassVar[Sequence[tuple[str, Any, str]]] = ()
    of_refusals: ClassVar[str] = ""
    drawn: ClassVar[Mapping[str, Any]] = {}
    check: ClassVar[Callable[..., Any]] = staticmethod(check)

    @staticmethod
    def draw(data: st.DataObject) -> dict[str, Any]:
        """The values of any configuration."""
        raise NotImplementedError

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for every entry of the tables."""
        if "name" in metafunc.fixturenames:
            metafunc.parametrize("name", self.configs)
        if "other" in metafunc.fixturenames:
            metafunc.parametrize("other", self.others, ids=[each.__name__ for each, _ in self.others])
        if "refusal" in metafunc.fixturenames:
            metafunc.parametrize("refusal", self.refusals, ids=[f"{each[0]}" for each in self.refusals])

    def drawn_class(self, data: st.DataObject) -> type:
        """The class that is tried with any configuration."""
        return self.model_class

    def values(self, name: str) -> Mapping[str, Any]:
        """The values of a configuration."""
        return self.configs[name or next(iter(self.configs))]

    @one_in(12)
    def test_configuration(self, name, tmp_path):
        self.check(self.model_class, type(self).config(**self.configs[name]), tmp_path)

    @pytest.mark.slow
    def test_other_heads(self, other, tmp_path):
        model_class, values = other
        config = type(self).config(**{**self.values(self.of_others), **values})
        self.check(model_class, config, tmp_path)

    @pytest.mark.slow
    @settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.differing_executors])
    @given(data=st.data())
    def test_any_configuration(self, data, tmp_path_factory):
        config = type(self).config(**type(self).draw(data))
        directory, seed = tmp_path_factory.mktemp("drawn"), data.draw(st.integers(0, 99), "seed")
        options = {"seed": seed, "onnx": seed % 5 == 0, "fuzzed": True, **self.drawn}
        self.check(self.drawn_class(data), config, directory, **options)

    def test_refused(self, refusal):
        refused(type(self).config(**self.values(self.of_refusals)), *refusal)
