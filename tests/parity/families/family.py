"""The tests that all families have: a family's class lists its configurations, refusals, and values to draw."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import pytest
import torch
import transformers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specs.forms.canonical import canonical
from specs.language.load import load as load_spec
from tests.parity.families import harness
from tests.parity.families.draws import drawn
from tests.parity.families.refusals import refused
from tests.thinned import one_in
from zoo.configs.exporting import NoFamilyError, write_config
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config

SPECIAL = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
"""Tokens within the vocabularies of tests; the usual ones are beyond."""

TABLES = {
    "test_other_class": "others",
    "test_refused": "refusals",
    "test_published_config": "published",
    "test_has_no_field": "no_field",
}
"""Test -> the table that it needs."""


class FamilyTests:
    """The tests of a family.

    - ``model_class``: the usual class.  ``heads`` are the ends of the names of other classes, ``others`` classes with values of
      their own; both are tried with the configurations that ``of_others`` names, by default the first.
    - ``configs``: configurations by name, on top of ``defaults``.
    - ``draws``: fields with strategies or values, for any configuration.  A family whose fields depend on each other has a
      method ``draw`` instead.  ``drawn`` are options of the check of such configurations.
    - ``refusals``: a field (``vision_config.hidden_act``), a value that is not supported, and what the message says; or several
      fields in a dict, and what the message says.  They are set in the configuration ``of_refusals``, by default the first, which is read
      strictly unless the reference writes fields that no family has.
    - ``published``: preset -> the published config that must import as it.
    - ``no_field``: changes of ``preset`` that no config can state, and what the message says.
    - ``options``: options of every check, and ``quick`` those of the quick one.  ``prepare`` changes a reference whose weights were drawn.
    """

    model_class: ClassVar[Any]
    defaults: ClassVar[Mapping[str, Any]] = SPECIAL
    configs: ClassVar[Mapping[str, Any]]
    heads: ClassVar[Sequence[str]] = ()
    others: ClassVar[Sequence[tuple[type, Mapping[str, Any]]]] = ()
    of_others: ClassVar[Sequence[str]] = ()
    draws: ClassVar[Mapping[str, Any]] = {}
    drawn: ClassVar[Mapping[str, Any]] = {}
    refusals: ClassVar[Sequence[tuple[Any, ...]]] = ()
    of_refusals: ClassVar[str] = ""
    strict: ClassVar[bool] = True
    published: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    no_field: ClassVar[Sequence[tuple[Any, str]]] = ()
    preset: ClassVar[str]
    options: ClassVar[Mapping[str, Any]] = {}
    quick: ClassVar[Mapping[str, Any]] = {}
    prepare: ClassVar[Any] = None
    run: ClassVar[Callable[..., Any]] = staticmethod(harness.check)

    def __init_subclass__(cls) -> None:
        """Add the classes that ``heads`` names, and leave out the tests whose tables are empty."""
        super().__init_subclass__()
        if not hasattr(cls, "model_class"):
            return
        prefix = cls.model_class.config_class.__name__.removesuffix("Config")
        classes = [getattr(transformers, f"{prefix}{name}") for name in cls.heads]
        cls.others = [*((each, labels(each)) for each in classes), *vars(cls).get("others", ())]
        has = {test: bool(getattr(cls, table)) for test, table in TABLES.items()}
        draws = getattr(cls.draw, "__func__", cls.draw) is not vars(FamilyTests)["draw"].__func__
        has["test_any_configuration"] = bool(cls.draws) or draws
        for test, present in has.items():
            setattr(cls, test, getattr(FamilyTests, test) if present else None)

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for every entry of the tables."""
        names = metafunc.fixturenames
        if "name" in names:
            metafunc.parametrize("name", self.configs)
        if "other" in names:
            chosen = self.of_others or [next(iter(self.configs))]
            cases = [(each, values, name) for name in chosen for each, values in self.others]
            ids = [
                each.__name__ if len(chosen) == 1 else f"{each.__name__}-{name}" for each, _, name in cases
            ]
            metafunc.parametrize("other", cases, ids=ids)
        if "refusal" in names:
            ids = [each[0] if isinstance(each[0], str) else " ".join(each[0]) for each in self.refusals]
            metafunc.parametrize("refusal", self.refusals, ids=ids)
        if "published_preset" in names:
            metafunc.parametrize("published_preset", self.published)
        if "inexpressible" in names:
            metafunc.parametrize("inexpressible", self.no_field, ids=[str(each[0]) for each in self.no_field])

    @classmethod
    def config(cls, **values: Any) -> Any:
        """A config with values; their dicts are copied, as configs change them."""
        return cls.model_class.config_class(**copy.deepcopy({**cls.defaults, **values}))

    @classmethod
    def configured(cls, name: str = "", **more: Any) -> Any:
        """The config of a name, by default of the first, with other values."""
        return cls.config(**{**cls.configs[name or next(iter(cls.configs))], **more})

    def check(self, model_class: type, config: Any, directory: Any, **options: Any) -> Any:
        """Compare a configuration with its reference."""
        return self.run(model_class, config, directory, prepare=self.prepare, **{**self.options, **options})

    @classmethod
    def draw(cls, data: st.DataObject) -> Mapping[str, Any]:
        """The fields of any configuration, with values or strategies."""
        return cls.draws

    def drawn_class(self, data: st.DataObject) -> type:
        """The class that is tried with any configuration."""
        return self.model_class

    @one_in(12)
    def test_configuration(self, name, tmp_path):
        """The first, which is quick, is compared with the reference alone."""
        options = self.quick if name == next(iter(self.configs)) else {"verify": True}
        self.check(self.model_class, self.configured(name), tmp_path, **options)

    @pytest.mark.slow
    def test_other_class(self, other, tmp_path):
        model_class, values, name = other
        self.check(model_class, self.configured(name, **values), tmp_path)

    @pytest.mark.slow
    @settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.differing_executors])
    @given(data=st.data())
    def test_any_configuration(self, data, tmp_path_factory):
        config = self.config(**drawn(data, self.draw(data)))
        directory, seed = tmp_path_factory.mktemp("drawn"), data.draw(st.integers(0, 99), "seed")
        options = {"seed": seed, "onnx": seed % 5 == 0, "verify": True, "fuzzed": True, **self.drawn}
        self.check(self.drawn_class(data), config, directory, **options)

    def test_refused(self, refusal):
        refused(self.model_class, self.configured(self.of_refusals), *refusal, strict=self.strict)

    def test_published_config(self, published_preset):
        spec = spec_of_config(Config(self.published[published_preset], "config.json"), name=published_preset)
        assert canonical(spec) == canonical(load_spec(published_preset))

    def test_has_no_field(self, inexpressible):
        changes, said = inexpressible
        spec = load_spec(self.preset, [changes] if isinstance(changes, str) else changes)
        with pytest.raises(NoFamilyError) as caught:
            write_config(spec, self.model_class.config_class.model_type)
        assert said in str(caught.value)


class RightPaddedTests(FamilyTests):
    """A family whose inputs are padded on the right alone, such as images, audio, and the texts of BART."""

    defaults = {}
    options = {"sides": ("right",)}

    def drawn_class(self, data: st.DataObject) -> type:
        return data.draw(st.sampled_from([self.model_class, *(each for each, _ in self.others)]), "class")


def labels(model_class: type) -> dict[str, Any]:
    """How many labels a head has: answers have a start and an end."""
    return {"num_labels": 2 if model_class.__name__.endswith("QuestionAnswering") else 5}


def halve_matrices(reference: Any, seed: int) -> None:
    """Scores of ordinary size, for a reference whose norms have no part in them."""
    with torch.no_grad():
        for parameter in reference.parameters():
            if parameter.dim() > 1:
                parameter.mul_(0.5)
