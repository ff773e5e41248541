"""ONNX Runtime's WebGPU provider, a plugin: on a GPU, or on a software adapter."""

import base64
import json
import os

import numpy as np
from protocol import serve
from run_onnxruntime import Runtime

PROVIDER = "WebGpuExecutionProvider"

SOFTWARE = {"lvp": "lavapipe", "swiftshader": "SwiftShader"}
"""Drivers in software, by a part of their file names."""

LAVAPIPE = (1, 4)
"""The Vulkan version of Mesa 25, the first whose lavapipe is known to support the provider."""

LONG = 32
"""The number of new tokens from which fused attention shuffles values within subgroups, and is wrong on adapters in software."""

HALVES = base64.b64decode(
    "CAgSADpXChcKAXgSAWgiBENhc3QqCQoCdG8YCqABAgoXCgFoEgF5IgRDYXN0KgkKAnRvGAGgAQISAWdaDwoBeBIKCggIARIECgIIAmIPCgF5EgoKCAgBEgQK"
    "AggCQgQKABAR"
)
"""A graph that casts x, of 2 values, to float16 and back."""

ATTENTION = base64.b64decode(
    "CAgSADp4CkEKAXgKAXgKAXgSAXkiEk11bHRpSGVhZEF0dGVudGlvbioQCgludW1faGVhZHMYAaABAjoNY29tLm1pY3Jvc29mdBIBZ1oXCgF4EhIKEAgBEgwK"
    "AggBCgIIIAoCCBBiFwoBeRISChAIARIMCgIIAQoCCCAKAggQQgQKABARQhEKDWNvbS5taWNyb3NvZnQQAQ=="
)
"""A graph in which x, 1 x 32 x 16, attends to itself with one head."""


class WebGpu(Runtime):
    """Sessions by the names of their graphs.

    If fused attention of long inputs is wrong, long inputs run in a second session with attention on the CPU.
    """

    def start(self, options):
        driver = next(filter(_is_usable, options["software_vulkan"]), None)
        if driver is not None and not os.path.exists("/dev/dri"):
            os.environ.setdefault("VK_ICD_FILENAMES", driver)
        os.environ["ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER"] = "1"
        import onnxruntime
        import onnxruntime_ep_webgpu

        onnxruntime.set_default_logger_severity(4)
        onnxruntime.register_execution_provider_library("webgpu", onnxruntime_ep_webgpu.get_library_path())
        self.runtime, self.sessions = onnxruntime, {}
        self.settings = options.get("settings", {})
        devices = [device for device in onnxruntime.get_ep_devices() if device.ep_name == PROVIDER]
        if not devices:
            raise RuntimeError(f"{PROVIDER} finds no adapter on this machine")
        self.device = devices[0]
        self.narrow = not self._attends()
        version = f"{self.device.ep_metadata['version']} on ONNX Runtime {onnxruntime.__version__}"
        chosen = os.path.basename(os.environ.get("VK_ICD_FILENAMES", ""))
        version += "".join(f", {name}" for part, name in SOFTWARE.items() if part in chosen)
        return {"version": version, "lacks": [] if self._casts() else ["float16"]}

    def load(self, name, path, options):
        def opened(aside=()):
            settings = self.runtime.SessionOptions()
            for key, value in options["entries"].items():
                settings.add_session_config_entry(key, value)
            return self._session(path, settings, aside)

        attentions = options["nodes"].get("MultiHeadAttention", []) + options["nodes"].get(
            "GroupQueryAttention", []
        )
        whole = opened()
        self.sessions[name] = whole, opened(attentions) if self.narrow and attentions else None

    def run(self, name, feeds):
        session, without_attention = self.sessions[name]
        if without_attention is not None and any(map(_is_long, feeds, feeds.values())):
            self.aside = (
                f"fused attention of {LONG} tokens or more is wrong on this adapter, and ran on the processor"
            )
            session = without_attention
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, feeds), strict=True))

    def _session(self, graph, settings, aside=()):
        settings.log_severity_level = 4
        settings.add_provider_for_devices(
            [self.device], {**self.settings, **({"forceCpuNodeNames": "\n".join(aside)} if aside else {})}
        )
        return self.runtime.InferenceSession(graph, settings)

    def _attends(self):
        """Whether fused attention agrees with its definition."""
        x = np.random.default_rng(0).standard_normal((1, LONG, 16)).astype(np.float32)
        scores = np.exp(x[0] @ x[0].T / 4)
        wanted = (scores / scores.sum(-1, keepdims=True)) @ x[0]
        (result,) = self._session(ATTENTION, self.runtime.SessionOptions()).run(None, {"x": x})
        return bool(np.abs(result[0] - wanted).max() < 1e-3)

    def _casts(self):
        """Whether shaders have float16."""
        try:
            self._session(HALVES, self.runtime.SessionOptions()).run(None, {"x": np.ones(2, np.float32)})
        except Exception as error:  # ONNX Runtime's errors have no common class
            if "f16" in str(error):
                return False
            raise
        return True


def _is_usable(driver):
    """Whether a driver is there, and new enough if it is lavapipe."""
    if not os.path.exists(driver):
        return False
    with open(driver, encoding="utf-8") as file:
        version = json.load(file)["ICD"]["api_version"]
    return "lvp" not in driver or tuple(map(int, version.split(".")[:2])) >= LAVAPIPE


def _is_long(name, array):
    """Whether an input may have many new tokens; the lengths of masks and pasts include earlier tokens."""
    before = name.startswith(("past_", "encoder_")) or name.endswith("mask")
    return not before and max(array.shape[1:], default=0) >= LONG


if __name__ == "__main__":
    serve(WebGpu())
