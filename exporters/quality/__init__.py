"""The effect of rounding on quality: the files of an export against the float model, on representative inputs."""
