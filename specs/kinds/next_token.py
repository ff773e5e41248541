"""The embedding of a module that predicts a further token from the hidden states of another model."""

from collections.abc import Iterable, Iterator
from typing import ClassVar, Literal

from specs.base.base import Fault, RuleContext
from specs.base.registry import register
from specs.base.words import SIZES, WIDTHS, PartContext, PositionStep, Step
from specs.kinds.embedding import EmbeddingKind
from specs.kinds.norm import Norm, norm_steps


@register("embedding")
class NextToken(EmbeddingKind):
    """Hidden states of another model, each beside the token after it: projection([norm(token), hidden_norm(hidden state)]), as
    multi-token prediction reads them (DeepSeek-V3: DeepSeek-AI, 2024, section 2.2; Qwen3-Next)."""

    kind: Literal["next_token"] = "next_token"
    norm: Norm
    """Norm of the token vectors."""
    hidden_norm: Norm
    """Norm of the hidden states, which are as wide as the model."""

    input_name: ClassVar[str] = "input_ids"
    takes_tokens: ClassVar[bool] = True
    reads_hidden_states: ClassVar[bool] = True

    def steps(self, context: PartContext) -> Iterator[Step | PositionStep]:
        yield Step("Token embedding", "token", (SIZES,))
        yield from norm_steps(self.norm)
        yield Step("Hidden states", "hidden_norm", (self.hidden_norm.heading,), joins="∥")
        yield Step("Projection", "projection", (WIDTHS,))
        yield PositionStep()

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        if context.architecture != "decoder":
            yield Fault(
                ("kind",),
                "belongs to a decoder of its own, which reads the hidden states of another model",
                self.kind,
                "Set architecture: decoder, or use tokens.",
            )

    def why_insensitive(self, width: int) -> str:
        return self.norm.why_insensitive(width)
