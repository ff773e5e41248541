"""Rotary positions of stacks whose layers with a window rotate by other frequencies than the others."""

from __future__ import annotations

from typing import Any

from specs.kinds.position import PositionKind
from specs.kinds.rope import Rope as RopeSpec
from zoo.families.common.config import Config
from zoo.families.common.layer_lists import FULL, SLIDING
from zoo.families.common.rope import RopeField
from zoo.families.common.template import Data, Field, FieldContext, Template, read

_OF_HEADS = (
    "head_dim",
    "hidden_size",
    "num_attention_heads",
    "max_position_embeddings",
    "partial_rotary_factor",
)


def kind_of_layer(config: Config, parameters: Config | None) -> tuple[Config, Config]:
    """The fields of heads, and the parameters of one kind of layer.

    The reference reads no ``type`` and no ``truncate`` of a kind, and no length before scaling from outside.
    """
    config.ignore("partial_rotary_factor")
    heads = {name: value for name, value in config.data.items() if name in _OF_HEADS}
    parameters = parameters or Config({}, config.where)
    if not parameters.has("rope_type") and parameters.any("type") not in (None, "default"):
        parameters.refuse("type", "must be called rope_type: transformers 5 passes over this name here")
    parameters.must("truncate", True, "the reference rounds the range of YaRN for each kind of layer")
    return Config(heads, config.where, config.path), parameters


class RopeByWindow(RopeField):
    """The position of the layers without a window, written together with the windowed layers' position.

    ``rope_parameters`` state both by kind of layer; otherwise ``rope_scaling`` is that of the layers without a window, and ``local``
    the base of the windowed layers (default: that of the others).
    """

    def __init__(self, width: Template, context: Field, *, local: Template = None, **more: Any) -> None:
        super().__init__(width, context, **more)
        self.local = self.theta if local is None else local

    def read(self, config: Config) -> Data:
        if config.has("rope_parameters") and config.has("rope_scaling"):
            config.refuse(
                "rope_scaling",
                "must not be combined with rope_parameters, which hold it for each kind of layer",
            )
        parameters = config.part("rope_parameters") or Config({}, config.where)
        whole = parameters.part(FULL) or config.part("rope_scaling")
        if whole is None and self.parameters.unstated:
            whole = Config(self.parameters.unstated, config.where)
        parameters.ignore(SLIDING)
        parameters.finish()
        theta: float = config.float("rope_theta", default=self.theta)
        return self.read_parameters(*kind_of_layer(config, whole), theta)

    def read_local(self, config: Config) -> Data:
        """The position of the layers with a window."""
        parameters = config.part("rope_parameters") or Config({}, config.where)
        local: float = read(self.local, config)
        return self.read_parameters(*kind_of_layer(config, parameters.part(SLIDING)), local)

    def write_kinds(self, context: FieldContext) -> tuple[Data, Data]:
        """The fields of the position of the layers without a window, and of those with one."""
        positions: dict[str, PositionKind] = {
            SLIDING: RopeSpec(),
            FULL: context.model.position_of(context.stack),
        }
        for block in reversed(context.stack.layer_blocks()):
            windowed = block.sliding_window is not None
            positions[SLIDING if windowed else FULL] = FieldContext(
                context.model, context.stack, block
            ).position
        return super().write(positions[FULL], context), super().write(positions[SLIDING], context)

    def write(self, value: PositionKind, context: FieldContext) -> Data:
        fields, local = self.write_kinds(context)
        return {"rope_parameters": {FULL: _parameters(fields), SLIDING: _parameters(local)}}


def _parameters(fields: Data) -> Data:
    """The fields of a rotary position in the spelling of ``rope_parameters``."""
    part = {name: fields[name] for name in ("partial_rotary_factor",) if name in fields}
    scaling = fields["rope_scaling"] or {"rope_type": "default"}
    return {"rope_theta": fields["rope_theta"], **part, **scaling}
