"""The image settings of onnxruntime-genai 0.18 for Gemma 3, the one image model that both it and our specs support.

Its class prepares pixels by a list of steps, writes the 256 tokens of an image, and passes token ids to the decoder along with
embeddings. It counts the vectors of one image only, so a prompt may have one image or none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from exporters.layouts.layout import Data, Deployment
from specs.model.model import Model
from zoo.core.graph_names import EMBEDDED, IMAGE_FEATURES, VISION_ENCODER
from zoo.record.records import GraphRecord

if TYPE_CHECKING:
    from exporters.preprocessing.images import Pixels

TYPE = "gemma3"
PROCESSOR = "image_processor.json"
"""The file with the preprocessing steps of images."""

VECTORS = 256
"""The number of vectors per image that the client expects."""

_FILTERS = {0: "NEAREST", 1: "LANCZOS", 2: "LINEAR", 3: "CUBIC"}
"""The client's names for Pillow's filters."""


def unfit_images(deployment: Deployment) -> str | None:
    """Return the reason why the client cannot prepare the images and prompts of a model; None if it can."""
    if deployment.unconfigured is not None:
        return deployment.unconfigured
    family, spec = deployment.config["model_type"], deployment.spec
    if family != TYPE:
        return f"it writes prompts with images for {TYPE} alone, and the model is {family}"
    if spec.vectors_per_image != VECTORS:
        return f"it expects {VECTORS} vectors of an image, and the model has {spec.vectors_per_image}"
    form = _pixels(deployment)
    if form.crop is not None or form.tiles is not None or form.size is None or isinstance(form.size, int):
        return "it resizes images to one size, and preprocessor_config.json says otherwise"
    return None


def _pixels(deployment: Deployment) -> Pixels:
    """The checkpoint's image settings, or the family's usual ones."""
    from exporters.preprocessing.images import Pixels
    from specs.kinds.patches import Patches

    spec = deployment.spec
    seen = spec.embedding_of(spec.stack("image"))
    assert isinstance(seen, Patches)
    return Pixels.beside(deployment.origin) or Pixels(size=(seen.image_size, seen.image_size))


def processor(deployment: Deployment) -> Data:
    """The checkpoint's preprocessing steps of images."""
    form = _pixels(deployment)
    assert isinstance(form.size, tuple)
    height, width = form.size
    resize = {
        "interpolation": _FILTERS.get(form.resample, "CUBIC"),
        "width": width,
        "height": height,
        "keep_aspect_ratio": 0,
    }
    mean, std = (list(numbers) * (3 // len(numbers)) for numbers in (form.mean, form.std))
    steps: list[tuple[str, Data]] = [
        ("DecodeImage", {"color_space": "RGB"}),
        ("Resize", resize),
        ("Rescale", {"rescale_factor": form.factor}),
        ("Normalize", {"mean": mean, "std": std}),
        ("Permute3D", {"dims": [2, 0, 1]}),
    ]
    operations = [
        {"operation": {"name": kind.lower(), "type": kind, "attrs": settings}} for kind, settings in steps
    ]
    return {"processor": {"name": "image_processing", "transforms": operations}}


def decoder_inputs(spec: Model) -> Data:
    """The names of the token inputs of a decoder with images."""
    ids = {"input_ids": "input_ids"} if spec.stack("decoder").bidirectional == "image" else {}
    return {"inputs_embeds": EMBEDDED, **ids}


def image_sections(path: Callable[[str], str]) -> Data:
    """The type of the model, and the paths of its image and embedding graphs."""
    vision: dict[str, Any] = {
        "filename": path(VISION_ENCODER),
        "config_filename": PROCESSOR,
        "inputs": {"pixel_values": "pixel_values"},
        "outputs": {IMAGE_FEATURES: IMAGE_FEATURES},
    }
    embedding = {
        "filename": path("embedding"),
        "inputs": {"input_ids": "input_ids", IMAGE_FEATURES: IMAGE_FEATURES},
        "outputs": {EMBEDDED: EMBEDDED},
    }
    return {"type": TYPE, "vision": vision, "embedding": embedding}


def image_usage(graph: GraphRecord) -> str:
    """A program that asks about an image."""
    longest = min(VECTORS + 128, graph.context_length or VECTORS + 128)
    return f"""import onnxruntime_genai as genai

model = genai.Model(".")
processor = model.create_multimodal_processor()
inputs = processor("<start_of_image>What is this?", images=genai.Images.open("photo.png"))
parameters = genai.GeneratorParams(model)
parameters.set_search_options(max_length={longest}, do_sample=False)
generator = genai.Generator(model, parameters)
generator.set_inputs(inputs)
while not generator.is_done():
    generator.generate_next_token()
print(processor.decode(generator.get_sequence(0)))"""
