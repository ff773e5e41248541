"""A transformer beside a mixer, which reads the embedding, too (Zamba)."""

from collections.abc import Iterable
from typing import ClassVar, Literal

from specs.base.base import Fault, RuleContext, default_faults
from specs.base.registry import register
from specs.kinds.attention import MultiHeadShape
from specs.kinds.block import BlockParts


@register("block")
class SideTransformer(BlockParts):
    """Transformer that reads the stream x and the embedding e, beside a mixer that reads the stream and its output:
    x + mixer(norm(x + linear(feed_forward(norm(attention(norm([x, e])))))) (Zamba)."""

    kind: Literal["side_transformer"] = "side_transformer"
    reads_embedding: ClassVar[bool] = True

    def branches(self, *, cross: bool = False) -> tuple[str, ...]:
        return ("attention", "feed_forward", "mixer")

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        parts = {"attention": self.attention, "feed_forward": self.feed_forward, "mixer": self.mixer}
        missing = [key for key, part in parts.items() if part is None]
        for key in missing:
            yield Fault(
                (key,), "must be set in a side_transformer block", None, f"Add {key}, or use pre_norm."
            )
        if missing:
            return
        yield from super().faults(context)
        if not isinstance(self.attention, MultiHeadShape):
            yield Fault(
                ("attention", "kind"),
                "must be able to read the embedding beside the stream",
                self.attention.kind,  # type: ignore[union-attr]
                "Use multi_head, grouped_query or multi_query.",
            )
        elif self.attention.head_dim is None:
            width = 2 * context.d_model
            yield Fault(
                ("attention", "head_dim"),
                f"must be set, because the attention reads stream and embedding, which are {width} wide together",
                None,
                f"Set head_dim; heads that share this width are {width / self.attention.heads:g} wide.",
            )
        yield from default_faults(
            self,
            ("feed_forward_residual", "layer_scale"),
            "must not be set in a side_transformer block, because only its mixer joins the residual stream",
        )
