"""A layout of another package."""

from exporters.layouts import LAYOUTS, Deployment, Layout
from zoo.record.usage import Usage
from zoo.tracing.tasks import tasks


def _misfit(deployment: Deployment) -> str | None:
    return None if deployment.spec.architecture == "decoder" else "it loads only decoders"


STICK_FILES = Layout(
    "stick-files", client="Stick",
    guide=("the runtime of the stick", "`graphs/model.onnx`", "`stick.json`"),
    tasks=tasks, misfit=_misfit,
    settings=lambda deployment, shared: {"stick.json": {"target": deployment.target.name, "shared": shared}},
    usage=lambda spec, manifest: Usage("sh", "stick run .", ["stick"]),
    graph="graphs/{task}{suffix}.onnx", data="graphs/weights{suffix}.bin", suffixes={"int4": "-q4"},
)  # fmt: skip


def add_layout() -> None:
    LAYOUTS[STICK_FILES.name] = STICK_FILES
