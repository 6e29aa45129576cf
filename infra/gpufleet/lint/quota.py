"""ResourceQuotas on GPUs: Kubernetes counts extended resources under `requests.` alone."""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.findings.finding import Finding, closest_match
from gpufleet.lint.document import Kind, pairs
from gpufleet.lint.gather import Gathered
from gpufleet.lint.offered import is_meant_as_gpu, never
from gpufleet.lint.offers import HAMI, PREFIX, name_is_possible
from gpufleet.lint.pods import containers, is_image
from gpufleet.lint.quantity import count
from gpufleet.parts.names import HAMI_COUNTED

_REQUESTS, _LIMITS = "requests.", "limits."
#: Values that only HAMi's chart has (Project-HAMi/HAMi charts/hami/values.yaml, 2.10.0).
_OF_HAMI = frozenset({"deviceSplitCount", "deviceMemoryScaling"})


def check_quota(run: Gathered, offered: tuple[str, ...], *, certain: bool) -> Iterator[Finding]:
    """Keys of quotas that limit nothing."""
    documents = run.of(Kind.QUOTA)
    by_hami = bool(documents) and _with_hami(run, offered)
    for document in documents:
        for key, item in pairs(document.root, "spec", "hard").items():
            resource = key.removeprefix(_REQUESTS).removeprefix(_LIMITS)
            if not is_meant_as_gpu(resource):
                continue
            if not key.startswith(_REQUESTS):
                if by_hami and key in HAMI_COUNTED.values():
                    continue
                meant = closest_match(resource, offered) if never(resource, offered, certain=certain) else resource
                because = "Kubernetes counts what pods request of extended resources, under requests. and the name."
                keys = [_REQUESTS + (meant or resource)]
                if resource in HAMI_COUNTED:
                    because = f"HAMi counts it under limits., Kubernetes under requests.; {key} nobody."
                    keys = [HAMI_COUNTED[resource], *keys]
                path = ("spec", "hard", key)
                yield document.found("GF431", path, item, value=key, because=because, allowed=keys, closest=keys[0])
            elif count(item) != 0 and never(resource, offered, certain=certain):
                because = f"No node offers {resource}."
                if resource.startswith(PREFIX) and not name_is_possible(resource):
                    because = f"No NVIDIA plugin offers {resource}."
                keys = [_REQUESTS + name for name in offered or ("nvidia.com/gpu",)]
                yield document.found("GF431", ("spec", "hard", key), item, value=key, because=because, allowed=keys)


def _with_hami(run: Gathered, offered: tuple[str, ...]) -> bool:
    """Whether HAMi is about: its pods, its values, or something that asks for its resources."""
    if HAMI & set(offered):
        return True
    for document in run.documents:
        if _OF_HAMI & set(pairs(document.root, "devicePlugin")):
            return True
        hard = pairs(document.root, "spec", "hard") if document.kind is Kind.QUOTA else {}
        if any(key.removeprefix(_LIMITS) in HAMI for key in hard):
            return True
        for container in containers(document):
            if is_image(container.image, "hami") or HAMI & set(pairs(container.item, "resources", "limits")):
                return True
    return False
