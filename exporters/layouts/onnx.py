"""The layout of ONNX Runtime itself: the graphs and their weights."""

from exporters.layouts.layout import Layout, generation_settings, span_settings
from exporters.layouts.onnx_usage import usage
from zoo.tracing.tasks import tasks

LAYOUT = Layout(
    "onnx",
    client="ONNX Runtime",
    guide=(
        "ONNX Runtime itself, `zoo run`",
        "`model.onnx`; or `encoder_model.onnx` and `decoder_model.onnx`; with `model.onnx`, `text_model.onnx` and "
        "`vision_model.onnx` of a dual encoder",
        "`generation_config.json`, where the checkpoint states special tokens; `gliner_config.json` of a model that scores spans, "
        "which GLiNER's client loads",
    ),
    tasks=tasks,
    misfit=lambda deployment: None,
    settings=lambda deployment, shared: generation_settings(deployment) | span_settings(deployment),
    usage=usage,
    cache_slots=True,
    cached_windows=None,
    via_torch=True,
    opsets=True,
)
