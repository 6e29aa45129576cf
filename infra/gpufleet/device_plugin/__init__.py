"""The semantics of NVIDIA's Kubernetes device plugin v0.20.0 as pure functions.

`predict` says what a node will offer for a configuration text, an environment, flags and a layout, and which parts of
the text have no effect.
"""

from gpufleet.device_plugin.evaluate import predict
from gpufleet.device_plugin.model import (
    MOCK_PRODUCT,
    Fault,
    Kind,
    NodeLayout,
    NoEffect,
    Prediction,
    is_whole_instance,
    parse_mig,
    profile_is_valid,
)

__all__ = [
    "MOCK_PRODUCT",
    "Fault",
    "Kind",
    "NoEffect",
    "NodeLayout",
    "Prediction",
    "is_whole_instance",
    "parse_mig",
    "predict",
    "profile_is_valid",
]
