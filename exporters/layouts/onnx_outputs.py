"""The lines of an example program that print the outputs of each kind of head."""

from __future__ import annotations

from specs.kinds.token_heads import CTC
from specs.model.model import Model

_CLASSES = 'print("class", outputs["logits"].argmax(-1))'
_TOKENS = 'print("most likely tokens", outputs["logits"].argmax(-1))'
_WORDS = 'print("most likely tokens", tokenizer.decode_batch(outputs["logits"].argmax(-1)))'

_READINGS = {
    "language_modeling": _TOKENS,
    "masked_language_modeling": _TOKENS,
    "classification": _CLASSES,
    "distilled_classification": _CLASSES,
    "token_classification": 'print("class of each token", outputs["logits"].argmax(-1))',
    "question_answering": (
        'print("answer: tokens", outputs["start_logits"].argmax(-1), "to", outputs["end_logits"].argmax(-1))'
    ),
    "replaced_token_detection": 'print("replaced", outputs["logits"] > 0)',
}
"""The line that interprets a head's outputs, by kind. For vectors, and for heads of plugins, only shapes are printed."""


def outputs_of(session: str, run: str) -> list[str]:
    """The lines that run a session once, name its outputs, and print their shapes."""
    return [
        f"names = [output.name for output in {session}.get_outputs()]",
        f"outputs = dict(zip(names, {run}))",
        "for name, value in outputs.items():",
        '    if not name.startswith("present"):',
        "        print(name, value.shape)",
    ]


def reading(spec: Model, tokenized: bool) -> list[str]:
    """The lines that interpret the outputs of a spec's head."""
    if isinstance(spec.head, CTC):
        return [
            'best = outputs["logits"][0].argmax(-1)',
            f'print("labels", best[(np.diff(best, prepend=-1) != 0) & (best != {spec.head.blank})])  # without blanks',
        ]
    line = _READINGS.get(spec.head.kind)
    return [] if line is None else [_WORDS if tokenized and line == _TOKENS else line]
