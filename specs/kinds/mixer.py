"""The interface of what mixes tokens: attention, and mixers with a state of constant size."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from specs.base.base import Component, Fault, Slot
from specs.base.registry import interface
from specs.base.words import TIMES, PartContext

if TYPE_CHECKING:
    from specs.kinds.attention import QKNorm
    from specs.kinds.position import PositionKind


@interface("mixer")
class MixerKind(Component):
    """Interface of all kinds that mix tokens.

    The defaults are those of a mixer without positions, whose tokens see all tokens before them.  ``projects_heads`` says that
    queries and keys are heads of equal width, projected from the input as a whole.
    """

    projects_heads: ClassVar[bool] = False

    @property
    def own_position(self) -> "PositionKind | None":
        """The position of this attention, if it has one of its own."""
        return None

    @property
    def position_heads(self) -> int:
        """The number of heads on which positions act; 0 if they do not act on it."""
        return 0

    def head_width(self, d_model: int) -> int:
        """The width of a head on which positions act; 0 if they do not act on it."""
        return 0

    @property
    def sliding_window(self) -> int | None:
        """The size of the window of tokens that a query sees, or None."""
        return None

    @property
    def visible_limit(self) -> int | None:
        """The largest number of tokens that a query sees, or None."""
        return self.sliding_window

    @property
    def summarized_tokens(self) -> int | None:
        """The number of tokens in each block whose sum all queries see, or None."""
        return None

    @property
    def separate_window(self) -> int | None:
        """The number of tokens in a window that shares none with others; None without such windows."""
        return None

    @property
    def sees_itself_only(self) -> bool:
        """Whether each token sees no other."""
        return 1 in (self.sliding_window, self.separate_window) and self.summarized_tokens is None

    @property
    def reads_first_layer(self) -> bool:
        """Whether it reads vectors that the first layer computes."""
        return False

    def layer_faults(self, earlier: "Sequence[MixerKind | None]") -> Iterable[Fault]:
        """The violated rules between this mixer and the mixers of earlier layers."""
        return ()

    @property
    def takes_keys_values(self) -> bool:
        """Whether it attends to the keys and values of an earlier layer."""
        return False


@interface("attention")
class AttentionKind(MixerKind):
    """Interface of all kinds of attention."""

    @property
    def has_own_values(self) -> bool:
        """Whether this layer projects its values from the input, apart from its keys."""
        return True

    @property
    def has_sink(self) -> bool:
        """Whether each head has a score that joins the softmax and carries no value."""
        return False

    @property
    def inner_norm(self) -> "QKNorm | None":
        """The norms of queries and keys, or None."""
        return None

    def score_scale(self, d_model: int, terms: int = 1) -> float | None:
        """The factor on the scores, which are sums of ``terms`` products; None if unknown."""
        return None

    def fields_of_distance(self) -> Iterator[tuple[str, Any]]:
        """The fields that depend on the distance between tokens, by name, with the value of each that is set."""
        yield from ()

    def details(self, context: PartContext) -> list[str]:
        return [*super().details(context), *self.sight_details(context)]

    def sight_details(self, context: PartContext) -> list[str]:
        """The tokens that a query sees."""
        return [] if context.cross else ["causal" if context.causal else "bidirectional"]

    def takes_keys_of(self, other: "AttentionKind | None", d_model: int) -> bool:
        """Whether the keys and values of another attention fit this one."""
        return False


def state_text(heads: int, keys: int, values: int) -> str:
    """Heads with a matrix each as their state, as a detail."""
    return f"{heads:,} heads, states {keys:,} {TIMES} {values:,}"


def convolution_text(size: int) -> str:
    """A convolution over the last tokens, as a detail."""
    return f"convolution over {size} tokens"


Mixer = Annotated[MixerKind, Slot("mixer")]
Attention = Annotated[AttentionKind, Slot("attention")]
