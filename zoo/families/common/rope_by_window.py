"""Rotary positions of stacks whose layers with a window rotate by other frequencies than the others."""

from __future__ import annotations

from specs.position import PositionKind
from specs.position import Rope as RopeSpec
from zoo.families.common.config import Config
from zoo.families.common.layers import FULL, SLIDING
from zoo.families.common.rope import RopeField
from zoo.families.common.template import Data, Place

_OF_HEADS = ("head_dim", "hidden_size", "num_attention_heads", "max_position_embeddings")


class RopeByWindow(RopeField):
    """The position of the layers without a window, written together with the windowed layers' position.

    ``rope_parameters`` state both by kind of layer; otherwise ``rope_scaling`` is that of the layers without a window.
    """

    def local_theta(self, config: Config) -> float:
        """The base of the windowed layers in a config without ``rope_parameters`` of theirs."""
        theta: float = config.float("rope_theta", default=self.theta)
        return theta

    def read(self, config: Config) -> Data:
        if config.has("rope_parameters") and config.has("rope_scaling"):
            config.refuse(
                "rope_scaling",
                "must not be combined with rope_parameters, which hold it for each kind of layer",
            )
        parameters = config.part("rope_parameters") or Config({}, config.where)
        whole = parameters.part(FULL) or config.part("rope_scaling") or Config({}, config.where)
        parameters.ignore(SLIDING)
        parameters.finish()
        return self.read_parameters(config, whole)

    def read_local(self, config: Config) -> Data:
        """The position of the layers with a window."""
        parameters = config.part("rope_parameters") or Config({}, config.where)
        local = parameters.part(SLIDING) or Config({}, config.where)
        alone = {name: value for name, value in config.data.items() if name in _OF_HEADS}
        return self.read_parameters(Config(alone, config.where), local, self.local_theta(config))

    def write_kinds(self, place: Place) -> tuple[Data, Data]:
        """The fields of the position of the layers without a window, and of those with one."""
        positions: dict[str, PositionKind] = {SLIDING: RopeSpec(), FULL: place.model.position_of(place.stack)}
        for block in reversed(place.stack.layer_blocks()):
            windowed = getattr(block.attention, "window", None) is not None
            positions[SLIDING if windowed else FULL] = Place(place.model, place.stack, block).position
        return super().write(positions[FULL], place), super().write(positions[SLIDING], place)

    def write(self, value: PositionKind, place: Place) -> Data:
        fields, local = self.write_kinds(place)
        return {"rope_parameters": {FULL: _parameters(fields), SLIDING: _parameters(local)}}


def _parameters(fields: Data) -> Data:
    """The fields of a rotary position in the spelling of ``rope_parameters``."""
    scaling = fields["rope_scaling"] or {"rope_type": "default"}
    return {"rope_theta": fields["rope_theta"], **scaling}
