"""Whether rounding keeps what the model knows: the files of an export against the float model, on representative inputs."""
