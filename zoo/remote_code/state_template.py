"""The parts of a modeling file for mixers that carry a state of constant size from call to call."""

from __future__ import annotations

STATE_CONTEXT = '''
@dataclass
class StateContext(Context):
    """What the mixers of all layers share, too.

    real: B T, 0 for padding among the new tokens, which enters no state; None if all are real.
    """

    real: Tensor | None = None
    first_values: dict = field(default_factory=dict)
    alignments: dict = field(default_factory=dict)

    def alignment(self, width):
        """The permutation that keeps padding out of convolutions over so many tokens."""
        if width not in self.alignments:
            self.alignments[width] = token_alignment(self.real, width)
        return self.alignments[width]

    def mixed(self, mixer, x, attention=None):
        """The output of a mixer, whose state the cache keeps, and of an attention beside it: B T D -> B T D."""
        beside = None if attention is None else attention(x, self)
        past = None if self.cache is None else self.cache.state(mixer.layer_idx)
        output, state = mixer(x, self, past)
        if self.cache is not None:
            self.cache.keep(mixer.layer_idx, mixer.state_names, state)
        return output if beside is None else beside + output
'''

STATE_CACHE = '''
class StateCache(Cache):
    """The keys and values of attentions, and the states of other mixers by layer and name, with the batch first.

    length: the number of tokens so far, padding included.
    """

    is_compileable = False
    is_croppable = False

    def __init__(self):
        windows = {windows}  # of the layers with attention
        super().__init__(
            layers=[DynamicLayer() if each is None else DynamicSlidingWindowLayer(sliding_window=each) for each in windows.values()]
        )
        self.attentions = {{layer: place for place, layer in enumerate(windows)}}
        self.states, self.length = {{}}, 0

    def state(self, layer):
        """The tensors that a layer's mixer left; None at the start."""
        return tuple(self.states[layer].values()) if layer in self.states else None

    def keep(self, layer, names, values):
        """Replace the tensors of a layer's mixer."""
        self.states[layer] = dict(zip(names, values, strict=True))

    def update(self, key_states, value_states, layer_idx, *args, **kwargs):
        return super().update(key_states, value_states, self.attentions[layer_idx], *args, **kwargs)

    def get_seq_length(self, layer_idx=0):
        return self.length

    def get_mask_sizes(self, query_length, layer_idx):
        return self.layers[self.attentions[layer_idx]].get_mask_sizes(query_length)

    def reset(self):
        super().reset()
        self.states, self.length = {{}}, 0

    def reorder_cache(self, beam_idx):
        super().reorder_cache(beam_idx)
        self.change(lambda values: values.index_select(0, beam_idx.to(values.device)))

    def batch_repeat_interleave(self, repeats):
        super().batch_repeat_interleave(repeats)
        self.change(lambda values: values.repeat_interleave(repeats, dim=0))

    def batch_select_indices(self, indices):
        super().batch_select_indices(indices)
        self.change(lambda values: values[indices])

    def change(self, function):
        """Replace every state by what a function makes of it."""
        self.states = {{
            layer: {{name: function(values) for name, values in held.items()}} for layer, held in self.states.items()
        }}

    def crop(self, *args):
        raise ValueError("The states of mixers cannot return to an earlier token: generate without an assistant.")
'''

STATEFUL = """
    _is_stateful = True

    @classmethod
    def _supports_default_dynamic_cache(cls):
        return False  # the model makes its own
"""

COUNTED = """\
        if cache is not None:
            cache.length += length
"""
