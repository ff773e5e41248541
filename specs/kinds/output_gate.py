"""The gate on the output of an attention."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, model_serializer, model_validator

from specs.base.base import OmitDefault, Spec, custom_error
from specs.base.descriptions import ValueDescriptions
from specs.base.suggest import boolean_remedy


class OutputGate(Spec):
    """Factors on the output of an attention, before its output projection, from a projection of its input; `true` stands for one per
    channel, by the sigmoid, without bias."""

    over: Annotated[
        Literal["channel", "head"],
        ValueDescriptions(
            {
                "channel": "A factor for each channel of each head (Qwen3-Next).",
                "head": "A factor for each head (LFM3).",
            }
        ),
    ] = "channel"
    """Whether each channel has a factor of its own, or all channels of a head share one."""
    activation: Annotated[
        Literal["sigmoid", "softplus"],
        ValueDescriptions(
            {"sigmoid": "Factors between 0 and 1 (Qwen3-Next).", "softplus": "Factors above 0 (Laguna)."}
        ),
    ] = "sigmoid"
    """Function of the projection that gives the factors."""
    bias: bool = False
    """Whether the projection adds a bias."""

    @property
    def words(self) -> str:
        """The gate in few words."""
        return "output gated by head" if self.over == "head" else "gated output"

    @model_validator(mode="before")
    @classmethod
    def _default(cls, value: Any) -> Any:
        if not isinstance(value, bool | dict | OutputGate):
            rule = "must be true, false, or a mapping of over, activation and bias"
            raise custom_error(rule, boolean_remedy(value))
        return {} if value is True else value

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        return {"anyOf": [{"type": "boolean"}, handler(schema)]}

    @model_serializer(mode="wrap")
    def _shortest(self, handler: Any) -> Any:
        return handler(self) if self != OutputGate() else True


OutputGateOrNone = Annotated[
    OutputGate | None, BeforeValidator(lambda value: None if value is False else value), OmitDefault()
]
"""The field of an attention; `false` stands for none."""
