"""The names of graphs, inputs and outputs of vision-language models, as clients expect them."""

from __future__ import annotations

EMBEDDED = "inputs_embeds"
"""The embeddings of tokens, and what takes the place of some, as output and as input."""

AHEAD = "tokens_ahead"
"""The number of tokens after each that it sees, as output and as input, where images are seen in both directions."""

SEEN = "image_features"
"""The vectors of images, as output and as input."""

GRID = "image_grid_thw"
"""The frames, rows and columns of patches of each image, as input, where images have any size."""

COORDINATES = "position_ids"
"""The frame, row and column of each token, as output and as input, where the decoder rotates by them."""

COORDINATES_BESIDE_SLOTS = "axis_position_ids"
"""The same as input of a decoder whose position_ids are slots of a static cache."""

VISION_ENCODER = "vision_encoder"
"""The graph of images."""
