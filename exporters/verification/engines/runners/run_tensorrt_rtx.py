"""The TensorRT for RTX compiler: ahead of time, for architectures that this machine need not have."""

from protocol import serve


class Compiler:
    """A strongly typed network from each graph, compiled for the architectures of the options."""

    node = r"^node (\S+): "

    def start(self, options):
        import tensorrt_rtx_bindings as trt

        said = self.said = []

        class Logger(trt.ILogger):
            def log(self, severity, message):
                if severity <= trt.ILogger.Severity.ERROR:
                    said.append(message)

        self.trt, self.logger, self.architectures = trt, Logger(), options["architectures"]
        return {"version": trt.__version__}

    def compile(self, path, options):
        trt = self.trt
        self.said.clear()
        builder = trt.Builder(self.logger)
        network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
        parser = trt.OnnxParser(network, self.logger)
        if not parser.parse_from_file(path):
            errors = [parser.get_error(index) for index in range(parser.num_errors)]
            raise RuntimeError("\n".join(f"node {e.node_name()}: {e.desc()}" for e in errors))
        config = builder.create_builder_config()
        architectures = options.get("architectures", self.architectures)
        config.num_compute_capabilities = len(architectures)
        for index, name in enumerate(architectures):
            config.set_compute_capability(getattr(trt.ComputeCapability, name.upper()), index)
        profile = builder.create_optimization_profile()
        for index in range(network.num_inputs):
            tensor = network.get_input(index)
            if -1 in tuple(tensor.shape):
                profile.set_shape(tensor.name, *options["inputs"][tensor.name])
        config.add_optimization_profile(profile)
        engine = builder.build_serialized_network(network, config)
        if engine is None:
            raise RuntimeError("\n".join(self.said[-5:]) or "the compiler gave no reason")
        if "output" in options:
            with open(options["output"], "wb") as file:
                file.write(engine)
        return {"architectures": architectures, "bytes": engine.nbytes}


serve(Compiler())
