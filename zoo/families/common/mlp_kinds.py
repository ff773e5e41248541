"""The layers without a mixture, as ``mlp_layer_types`` lists them."""

from __future__ import annotations

from collections.abc import Sequence

from specs.base.suggest import suggestion
from zoo.families.common.config import Config
from zoo.families.common.mixtures import FirstLayers
from zoo.families.common.template import Data, FieldContext

_NAME, _KINDS = "mlp_layer_types", {"dense": True, "sparse": False}


class MlpKinds(FirstLayers):
    """The layers that ``mlp_layer_types`` calls dense; without that field, the first ones."""

    def read(self, config: Config, depth: int) -> list[bool]:
        kinds = config.list(_NAME)
        if kinds is None:
            return super().read(config, depth)
        config.ignore(self.first.names[0])
        if len(kinds) != depth:
            config.refuse_entries(_NAME, depth)
        for kind in kinds:
            if not isinstance(kind, str) or kind not in _KINDS:
                config.refuse(_NAME, "must have supported kinds only", suggestion(str(kind), _KINDS))
        return [_KINDS[kind] for kind in kinds]

    def write(self, where: Sequence[bool], context: FieldContext) -> Data:
        return {_NAME: ["dense" if dense else "sparse" for dense in where]}
