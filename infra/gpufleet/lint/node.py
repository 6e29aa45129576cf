"""`--gpus 4xA100-80GB`, `--mig 7x1g.10gb`: the node that a configuration is judged on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from gpufleet.catalog import GpuModel, gpu_groups, gpu_model, gpu_models
from gpufleet.device_plugin import NodeLayout, parse_mig, profile_is_valid
from gpufleet.findings.finding import closest_match

#: Stands for the product label of a GPU whose exact model is not known; never shown.
UNKNOWN_PRODUCT = "unknown-product"

_GPUS = re.compile(r"(\d+)\s*[x*]\s*(\S.*)|(\d+)")
_EACH = re.compile(r"(\d+)[x*](\S+)")


#: The largest servers hold 16; the stack file has the same bound.
MOST_GPUS = 16


def parse_node(gpus: str, mig: str = "") -> NodeLayout:
    """`4xA100-80GB` or `4`; `mig` is `0=1g.10gb,2g.20gb;1=` or, for every GPU alike, `1x3g.40gb,2x1g.10gb`.

    Raises:
        ValueError: the text is not understood, the model is not in the catalogue, or a profile does not exist on it.
    """
    match = _GPUS.fullmatch(gpus.strip())
    if match is None:
        raise ValueError(f"{gpus!r} is not of the form 4xA100-80GB")
    count = int(match[1] or match[3])
    if not 1 <= count <= MOST_GPUS:
        raise ValueError(f"a node has 1 to {MOST_GPUS} GPUs, not {count}")
    name = match[2]
    model = gpu_model(name) if name else None
    if name and model is None:
        raise ValueError(f"the catalogue has no GPU {name!r}{_meant(name)}")
    layout = _layout(mig, count)
    node: dict[str, object] = {"mig": layout, "product": UNKNOWN_PRODUCT}
    if model is not None:
        for profile in sorted({p for profiles in layout.values() for p in profiles}):
            if profile_is_valid(profile) and model.mig_profile(profile) is None and "c." not in profile:
                have = ", ".join(model.mig_profiles) or "none"
                raise ValueError(f"{model.id} has no MIG profile {profile}; it has {have}")
        _check_fit(model, layout)
        node["product"] = model.product or UNKNOWN_PRODUCT
        node["memory_mib"] = model.memory_mib
        if model.compute_capability:
            major, _, minor = model.compute_capability.partition(".")
            node["compute_capability"] = (int(major), int(minor))
    return NodeLayout(count, **node)  # type: ignore[arg-type]


def _meant(name: str) -> str:
    """Models whose name goes on after what was written, else the closest one."""
    every = [*gpu_groups(), *gpu_models()]
    longer = [known for known in dict.fromkeys(every) if known.lower().startswith(f"{name.lower()}-")]
    near = closest_match(name, every)
    return f"; say which: {', '.join(longer)}" if longer else f"; did you mean {near}?" if near else ""


def _check_fit(model: GpuModel, layout: Mapping[int, tuple[str, ...]]) -> None:
    """Raises ValueError where the instances of one GPU do not fit on it together."""
    if not any(layout.values()):
        return
    from gpufleet.catalog.mig_placement import fits

    for gpu, profiles in layout.items():
        if not any("c." in p for p in profiles) and fits(model, Counter(profiles)) is False:
            text = ", ".join(f"{n}x{p}" for p, n in Counter(profiles).items())
            raise ValueError(f"{text} do not fit on one {model.id} (GPU {gpu}); docs/mig.md has how many do")


def _layout(mig: str, count: int) -> dict[int, tuple[str, ...]]:
    if "=" in mig or not mig.strip():
        return parse_mig(mig)
    each: list[str] = []
    for part in mig.split(","):
        match = _EACH.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"MIG layout {part!r} is not of the form 7x1g.10gb")
        each += [match[2]] * int(match[1])
    return {gpu: tuple(each) for gpu in range(count)}
