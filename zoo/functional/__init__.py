"""Functions that an exporter may replace as a whole, and those that they consist of.

Each runs as ordinary PyTorch.  A tracer follows each into its body and records the call on the result, so that a target that
has an operation for it can use that operation: the maths is written once.
"""

from zoo.functional.cache import append, write
from zoo.functional.channel_recurrence import diagonal_recurrence, selective_scan
from zoo.functional.convolution import (
    TokenAlignment,
    causal_convolution,
    depthwise_convolution,
    token_alignment,
    token_shift,
)
from zoo.functional.decorator import semantic_op
from zoo.functional.delta_operation import gated_delta_rule, generalized_delta_rule
from zoo.functional.lengths import unit_length
from zoo.functional.lstm import lstm
from zoo.functional.matrix_recurrence import linear_attention
from zoo.functional.mixture import ExpertMatrices, expert_linear, mixture_of_experts
from zoo.functional.numbered import most_numbered, numbered, taken
from zoo.functional.patches import GridPlaces, grid_places, image_coordinates, packed_places
from zoo.functional.rotary import (
    angles,
    angles_by_axis,
    dynamic_frequencies,
    frequencies_by_length,
    rotary_embedding,
    rotate,
)
from zoo.functional.routing import (
    among_largest,
    in_best_groups,
    routing_weights,
    select_experts,
    sparse_mixer_margin,
    sparse_mixer_scores,
)
from zoo.functional.scores import (
    alibi_bias,
    attention,
    attention_bias,
    attention_weights,
    forbidden,
    mixed_values,
)
from zoo.functional.tensors import (
    constant,
    in_place_of,
    last,
    last_real,
    positions_from,
    relative_positions,
    rest_of_run,
    rounded_to_bfloat16,
    token_positions,
)

__all__ = [
    "ExpertMatrices",
    "GridPlaces",
    "TokenAlignment",
    "alibi_bias",
    "among_largest",
    "angles",
    "angles_by_axis",
    "append",
    "attention",
    "attention_bias",
    "attention_weights",
    "causal_convolution",
    "constant",
    "depthwise_convolution",
    "diagonal_recurrence",
    "dynamic_frequencies",
    "expert_linear",
    "forbidden",
    "frequencies_by_length",
    "gated_delta_rule",
    "generalized_delta_rule",
    "grid_places",
    "image_coordinates",
    "in_best_groups",
    "in_place_of",
    "last",
    "last_real",
    "linear_attention",
    "lstm",
    "mixed_values",
    "mixture_of_experts",
    "most_numbered",
    "numbered",
    "packed_places",
    "positions_from",
    "relative_positions",
    "rest_of_run",
    "rotary_embedding",
    "rotate",
    "rounded_to_bfloat16",
    "routing_weights",
    "select_experts",
    "selective_scan",
    "semantic_op",
    "sparse_mixer_margin",
    "sparse_mixer_scores",
    "taken",
    "token_alignment",
    "token_positions",
    "token_shift",
    "unit_length",
    "write",
]
