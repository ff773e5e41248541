"""A decoder that reads tokens and the hidden states of another model: a module of multi-token prediction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor

from specs.base.errors import UserError
from zoo.components.mixer import State
from zoo.models.decoder import Decoder
from zoo.models.outputs import Outputs


class NextTokenDecoder(Decoder):
    """head(decoder(embedding(tokens, hidden states))): each hidden state is of the token before, and the scores are of the token after."""

    in_stages: ClassVar[bool] = False

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: Sequence[State] | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        *,
        hidden_states: Tensor | None = None,
        last_only: bool = False,
    ) -> Outputs:
        """hidden_states: B T D, the last of the other model, after its final norm, or of this one; the others as in :class:`Decoder`."""
        if hidden_states is None:
            raise UserError(
                f"{self.spec.name} reads the hidden states of another model beside its tokens\n  value: none\n"
                "  Pass hidden_states, batch x tokens x d_model, each of the token before; an export runs as the draft of that model."
            )
        tokens = self.positions(input_ids, attention_mask, past_key_values, position_ids)
        x = self.embedding(input_ids, tokens.positions, hidden_states)  # B T D
        return self.decode(x, tokens, past_key_values, input_ids, last_only=last_only)
