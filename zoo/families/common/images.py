"""Fields that families of images share."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.template import Data, Template


class SquareSide(f.Int):
    """The side of a square, which may be given as height and width."""

    def read(self, config: Config) -> int:
        value = config.any(self.names[0])
        if isinstance(value, list) and len(value) == 2 and value[0] == value[1]:
            value = value[0]
        if value is not None and type(value) is not int:
            config.refuse(self.names[0], "must be a whole number", "Use square images and patches.")
        return int(self.default if value is None else value)


def patches(image_size: int, patch_size: int, **more: Template) -> Data:
    """The embedding of square images in square patches, with the defaults of their sides."""
    return {
        "kind": "patches",
        "image_size": SquareSide("image_size", default=image_size),
        "patch_size": SquareSide("patch_size", default=patch_size),
        "channels": f.Int("num_channels", default=3),
        **more,
    }


MEAN_POOLING = f.Bool("use_mean_pooling", default=True)
NORM_UNLESS_MEAN = f.Computed(
    MEAN_POOLING,
    lambda mean, config: not mean,
    lambda norm, context: not context.stack.ends_with_norm,
)
"""A norm of all vectors after the last layer, unless the mean of the patches is taken, which has its own or none."""
