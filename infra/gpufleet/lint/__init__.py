"""`gpufleet lint`: what YAML will really do with GPUs, and what is wrong with it."""

from gpufleet.lint.run import Options, Report, lint

__all__ = ["Options", "Report", "lint"]
