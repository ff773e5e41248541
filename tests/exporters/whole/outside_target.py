"""A target of another package."""

from exporters.target.providers import CPU
from exporters.target.targets import FULL, TARGETS, Target

STICK = Target(
    "stick",
    guide=("standard ONNX and MatMulNBits", "grows from call to call; padding on either side"),
    providers=(CPU,),
    operations={"Gelu": FULL, "MatMulNBits": FULL},
    block_products=frozenset({"accuracy_level"}),
    zero_points=False,
)


def add_target() -> None:
    TARGETS[STICK.name] = STICK
