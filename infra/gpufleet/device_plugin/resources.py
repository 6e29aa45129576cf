"""Rules for resource names and device identifiers in the configuration.

Source: NVIDIA/k8s-device-plugin v0.20.0 api/config/v1/{resources,replicas}.go; k8s.io/apimachinery validation.
"""

from __future__ import annotations

import re

from gpufleet.device_plugin import golang

PREFIX = "nvidia.com"
SHARED_SUFFIX = ".shared"
MAX_NAME_LENGTH = 63

_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN = re.compile(rf"{_DNS_LABEL}(\.{_DNS_LABEL})*")


def full_name(name: str) -> str:
    """The name with the prefix `nvidia.com/`, which is added when absent."""
    return name if name.startswith(PREFIX + "/") else f"{PREFIX}/{name}"


def name_error(name: str) -> str | None:
    """Why the plugin refuses a resource name, or None."""
    full = full_name(name)
    if len(full.encode("utf-8", "replace")) > MAX_NAME_LENGTH:
        return f"fully-qualified resource name must be {MAX_NAME_LENGTH} characters or less: {full}"
    if not _DNS_SUBDOMAIN.fullmatch(full.split("/", 1)[1]):
        return f"incorrect format for resource name '{full}': not a lowercase RFC 1123 subdomain after the prefix"
    return None


def is_device_id(text: str) -> bool:
    """GPU index `0`, MIG index `0:1`, GPU UUID or MIG UUID."""
    if golang.parse_uint(text) is not None:
        return True
    gpu, colon, mig = text.partition(":")
    if colon and golang.parse_uint(gpu) is not None and golang.parse_uint(mig) is not None:
        return True
    return _is_gpu_uuid(text) or _is_mig_uuid(text)


def _is_gpu_uuid(text: str) -> bool:
    return text.startswith("GPU-") and golang.is_uuid(text[4:])


def _is_mig_uuid(text: str) -> bool:
    if not text.startswith("MIG-"):
        return False
    if golang.is_uuid(text[4:]):
        return True
    parts = text[4:].split("/", 2)
    return len(parts) == 3 and _is_gpu_uuid(parts[0]) and all(golang.parse_uint(p) is not None for p in parts[1:])
