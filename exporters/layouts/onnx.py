"""The graphs and their weights, for ONNX Runtime itself."""

from exporters.layouts.layout import Layout
from zoo.tracing.tasks import tasks

ONNX = Layout(
    "onnx",
    client="ONNX Runtime",
    tasks=tasks,
    misfit=lambda deployment: None,
    settings=lambda deployment, shared: {},
    places=True,
)
