"""ONNX Runtime: any version, any provider."""

import base64
import os

from protocol import serve

RELU = base64.b64decode(
    "CAc6MwoMCgF4EgF5IgRSZWx1EgFnWg8KAXgSCgoICAESBAoCCAFiDwoBeRIKCggIARIECgIIAUIECgAQDQ=="
)
"""A graph of one node, to test whether a provider works."""


class Runtime:
    """Sessions by the names of their graphs."""

    node = r"(?:node with name|Name|\(node|name)\s*:?\s*'([^']+)'|running \w+ node\. Name:'([^']*)'|Node \(([^)]+)\)"

    def start(self, options):
        import onnxruntime

        onnxruntime.set_default_logger_severity(4)
        self.runtime, self.sessions = onnxruntime, {}
        self.providers = [tuple(provider) for provider in options["providers"]]
        first = self.providers[0][0]
        if first not in onnxruntime.get_available_providers():
            raise RuntimeError(f"This build of ONNX Runtime has no {first}")
        if first.startswith("CUDA"):
            onnxruntime.preload_dlls()
        if first != "CPUExecutionProvider":
            self._session(RELU, onnxruntime.SessionOptions())
        return {"version": onnxruntime.__version__}

    def load(self, name, path, options):
        os.environ.update(options["environment"])
        settings = self.runtime.SessionOptions()
        for key, value in options["entries"].items():
            settings.add_session_config_entry(key, value)
        self.sessions[name] = self._session(path, settings)

    def _session(self, graph, settings):
        settings.log_severity_level = 4
        session = self.runtime.InferenceSession(graph, settings, providers=self.providers)
        if session.get_providers()[0] != self.providers[0][0]:
            raise RuntimeError(f"{self.providers[0][0]} is not available on this machine")
        return session

    def run(self, name, feeds):
        names = [output.name for output in self.sessions[name].get_outputs()]
        return dict(zip(names, self.sessions[name].run(names, feeds), strict=True))


if __name__ == "__main__":
    serve(Runtime())
