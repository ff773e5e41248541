"""The facts that a module may state about itself, as attributes or methods of these names.

Any module of a model may have them: zoo's own, PyTorch's and those of plugins. A module that states none gets the defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

    from zoo.core.initialization import Distribution
    from zoo.core.sharding import Sharding

Value = TypeVar("Value")


@dataclass(frozen=True)
class Fact(Generic[Value]):
    """A fact by the name of its attribute, with its default."""

    name: str
    default: Value

    def of(self, module: object) -> Value:
        """The fact as a module states it, or the default."""
        value: Value = getattr(module, self.name, self.default)
        return value


KIND: Fact[str | None] = Fact("component_kind", None)
"""The kind of the spec that the module is built from; ``zoo.registry.build_component`` sets it."""

PARAMETER_ROLE: Fact[str | None] = Fact("parameter_role", None)
"""The role of its parameters in reports, whatever holds the module: one of :data:`zoo.core.roles.ROLES`."""

ACTIVE_SHARE: Fact[tuple[int, int] | None] = Fact("active_share", None)
"""For a module of which each token uses a part: the number of experts chosen for it, and their total."""

FANS: Fact[tuple[int, int] | None] = Fact("fans", None)
"""The widths that its matrix maps between, for several matrices in one tensor, such as one per expert."""

HEAD_WIDTH: Fact[int] = Fact("head_width", 1)
"""Width of a head of an attention, for recipes that draw its query projection."""

UNIT_OFFSET: Fact[bool] = Fact("unit_offset", False)
"""Whether its weight is stored minus 1."""

UNSTORED_ZEROS: Fact[tuple[str, ...]] = Fact("zero_weights", ())
"""The weights that exports leave out, because they are zeros."""

STREAM_METHODS: Fact[Mapping[str, str]] = Fact("stream_methods", MappingProxyType({}))
"""The methods that are parts of their own in a drawing, with their titles."""

CONSTRUCTED: Fact[Mapping[str, Tensor]] = Fact("constructed_values", MappingProxyType({}))
"""The values that the constructor of a plugin's module set, by weight; ``zoo.core.constructed_values`` notes them."""

INITIAL: Fact[Callable[[str], Distribution | None]] = Fact("initial", lambda leaf: None)
"""``initial(leaf)``: the distribution of a weight, or None to draw it by the recipe of the spec."""

FIXED: Fact[Callable[[str], Tensor | None]] = Fact("fixed", lambda leaf: None)
"""``fixed(leaf)``: the values of a weight that is neither drawn nor read, such as a table of sinusoids, or None."""

SHARDING: Fact[Callable[[], Sharding | None]] = Fact("sharding", lambda: None)
"""``sharding()``: how processes divide the module, or None if each holds it whole."""

WITHOUT_GRADIENT: Fact[Callable[[], Mapping[str, str]]] = Fact("without_gradient", dict)
"""``without_gradient()``: why a parameter, or all parameters of a module below, get no gradient, by name: no output depends on them, or later
layers undo their changes."""
