"""One reviewed YAML file per stack to a working, shared NVIDIA GPU fleet."""

__version__ = "0.1.0"
