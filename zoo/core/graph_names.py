"""The names of graphs, and of inputs and outputs beside token ids and states, as clients expect them."""

from __future__ import annotations

EMBEDDED = "inputs_embeds"
"""The embeddings of tokens, with image vectors in place of placeholders: an output and an input."""

TOKENS_AHEAD = "tokens_ahead"
"""The number of later tokens that each token attends to, if images are bidirectional: an output and an input."""

IMAGE_FEATURES = "image_features"
"""The vectors of images: an output and an input."""

GRID = "image_grid_thw"
"""The frames, rows and columns of patches of each image, if images have any size: an input."""

COORDINATES = "position_ids"
"""The frame, row and column of each token, if the decoder rotates by them: an output and an input."""

COORDINATES_BESIDE_SLOTS = "axis_position_ids"
"""The input of these coordinates in a decoder whose position_ids are slots of a static cache."""

HIDDEN = "last_hidden_state"
"""The last hidden states of a stack: an output."""

HIDDEN_STATES = "hidden_states"
"""The hidden states of another model, which a decoder reads beside its tokens: an input."""

VISION_ENCODER = "vision_encoder"
"""The graph of images."""

WORD_INPUTS = ("words_mask", "text_lengths", "span_idx", "span_mask")
"""The inputs of a model that are words and their spans, as GLiNER names them: the number of the word of each token, the number of
words, the first and last word of each span, and whether the span is in the text."""
