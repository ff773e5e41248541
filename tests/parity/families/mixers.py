"""Further tests of families whose layers carry a state of constant size: pieces of a prompt, and gradients."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

from specs.model.model import Model
from tests.parity.families import harness
from tests.parity.families.family import FamilyTests
from tests.parity.reference import build, difference, load, ragged
from tests.thinned import one_in
from zoo.configs.importing import import_spec
from zoo.families.registry import family

TOLERANCE = 1e-5
EXACT = 1e-9
"""The largest difference in float64, at the scale of the values."""


def check(model_class: type, config: Any, directory: Path, *, seed: int = 1, **options: Any) -> Model:
    """As the harness has it; and a prompt in pieces, and gradients."""
    spec = harness.check(model_class, config, directory, seed=seed, **options)
    if spec.head.kind in ("none", "language_modeling"):
        assert_pieces(spec, directory / "reference", seed)
    return spec


def assert_pieces(spec: Model, checkpoint: Path, seed: int) -> None:
    """Assert that a padded prompt in pieces of any length gives what it gives as a whole, in float64."""
    ours = load(spec, checkpoint).double()
    for side in ("right", "left"):
        ids, mask = ragged(3, 90, spec.vocab_size or 1, side, seed)
        with torch.no_grad():
            whole = _hidden(ours(ids, mask))
            pieces, past = [], None
            for start, stop in itertools.pairwise((0, 1, 40, 75, 90)):
                outputs = ours(ids[:, start:stop], mask[:, :stop], past)
                past = outputs.present_key_values
                pieces.append(_hidden(outputs))
        largest = difference(torch.cat(pieces, 1), whole, mask)
        assert largest <= EXACT, f"pieces differ by {largest:.2e}"


def assert_gradients(model_class: type, config: Any, directory: Path, seed: int = 1) -> None:
    """Assert that every parameter gets the reference's gradient, at the scale of the largest one of its tensor."""
    reference = build(model_class, config, seed)
    reference.save_pretrained(directory)
    spec = import_spec(directory)
    ours = load(spec, directory)
    ids, mask = ragged(3, 13, spec.vocab_size or 1, "right", seed)
    ids = ids.clamp(min=1)  # some references learn nothing of the token that pads
    for model in (reference, ours):
        outputs = _hidden(model(input_ids=ids, attention_mask=mask))
        generator = torch.Generator().manual_seed(seed)
        weights = torch.randn(outputs.shape, generator=generator) * mask[..., None]
        (outputs * weights).sum().div(mask.sum()).backward()
    shapes = {name: tuple(parameter.shape) for name, parameter in ours.named_parameters()}
    tensors = family(config.model_type).tensors
    table = tensors.table(spec, shapes)
    theirs = {
        tensors.plain(name.removeprefix("model.")): parameter.grad
        for name, parameter in reference.named_parameters()
    }
    for name, parameter in ours.named_parameters():
        place = table.find(name)
        assert place is not None, name
        if place.stored[0] not in theirs:  # mixtures have other names in checkpoints than in memory
            assert ".feed_forward." in name, name
            continue
        stored = theirs[place.stored[0]]
        parts = place.transform.split(stored, [shapes[each] for each in place.parameters])
        assert parameter.grad is not None, f"no gradient for {name}"
        scale = float(stored.abs().max())
        assert scale > 0, f"the reference has no gradient for {name}"
        largest = float((parameter.grad - parts[place.index]).abs().max()) / max(1.0, scale)
        assert largest <= TOLERANCE, f"the gradient of {name} differs by {largest:.2e}"


class MixerTests(FamilyTests):
    """A family of such layers."""

    run = staticmethod(check)

    @one_in(3)
    def test_gradients(self, name, tmp_path):
        assert_gradients(self.model_class, self.configured(name), tmp_path)


def _hidden(outputs: Any) -> Tensor:
    """The scores of tokens, or else the hidden states: B T V or B T D."""
    logits = outputs.get("logits")
    return outputs["last_hidden_state"] if logits is None else logits


def draw_mamba2(data: st.DataObject, prefix: str = "mamba_") -> dict[str, Any]:
    """Any Mamba-2 mixer of fields that begin with ``mamba_``, with the width of the model."""
    groups = data.draw(st.integers(1, 3), "groups")
    heads = groups * data.draw(st.integers(1, 3), "heads per group")
    expand, per_head = data.draw(st.sampled_from([1, 2, 3]), "expand"), data.draw(st.integers(1, 4), "width")
    return {
        "hidden_size": 2 * heads * per_head, f"{prefix}expand": expand, f"{prefix}n_heads": heads,
        f"{prefix}n_groups": groups, f"{prefix}d_state": st.integers(1, 12), f"{prefix}d_conv": st.integers(2, 5),
        f"{prefix}conv_bias": st.booleans(),
    }  # fmt: skip
