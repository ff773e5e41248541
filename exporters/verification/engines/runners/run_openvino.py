"""OpenVINO on the processor, in float32."""

from protocol import serve


class OpenVino:
    """Compiled models by the names of their graphs."""

    node = r"friendly_name '([^']+)'|from node: (\S+)"

    def start(self, options):
        import openvino

        self.core, self.models = openvino.Core(), {}
        return {"version": openvino.__version__.split("-")[0]}

    def load(self, name, path, options):
        exact = {
            "INFERENCE_PRECISION_HINT": "f32",
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",  # otherwise it rounds the inputs of compressed weights to 8 bits
            "INFERENCE_NUM_THREADS": "2",
        }
        self.models[name] = self.core.compile_model(path, "CPU", exact)

    def run(self, name, feeds):
        model = self.models[name]
        results = model(feeds)
        return {name: results[output] for output in model.outputs for name in output.get_names()}


serve(OpenVino())
