"""Embeddings of tokens for single layers."""

from collections.abc import Iterable
from typing import Annotated, ClassVar

from specs.base.base import DescribedSpec, Fault, OmitDefault, RuleContext, Width
from specs.base.roles import Role
from specs.base.words import PartContext, PartRole, product
from specs.kinds.activation import ACTIVATION_TITLES, Activation
from specs.kinds.norm import Norm


class PerLayerEmbedding(DescribedSpec):
    """A branch that gates a narrow embedding of the tokens: x + norm(output(activation(gate(x)) * e)) (Gemma 3n, 2025).

    With a table of this layer, and norm and projection of the embedded tokens x0 that the first layer reads, e is
    `(sqrt(width) * table(tokens) + norm(projection(x0) / sqrt(d_model))) / sqrt(2)`.
    """

    title: ClassVar[str] = "Embedding of this layer"
    drawn_role: ClassVar[PartRole] = "embedding"
    width: Annotated[Width, Role.WIDTH]
    """Width of the embedding (Gemma 3n: 256)."""
    vocab_size: Annotated[Width | None, OmitDefault()] = None
    """Number of rows of the table; tokens beyond it read row 0 (Gemma 3n: 262144). Default: that of the model."""
    activation: Activation
    """Activation of the gate."""
    norm: Norm
    """Norm of the projected tokens, with weights shared by all layers, and, with weights of its own, of the output."""

    def details(self, context: PartContext) -> list[str]:
        rows = self.vocab_size or context.vocab_size or 0
        return [product(rows, self.width), f"gated, {ACTIVATION_TITLES[self.activation]}"]

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        """The violated rules of the norm and the stack."""
        yield from (fault.under("norm") for fault in self.norm.faults(context))
        if context.architecture != "decoder":
            yield Fault(
                (),
                "belongs to architecture: decoder, whose layers can read its tokens",
                "an embedding per layer",
                "Remove it.",
            )
