"""Types of the device-plugin module: the node, the loaded configuration, what was found, the prediction."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

#: The product name of go-nvml's mock server, which the recorded vectors have.
MOCK_PRODUCT = "Mock-NVIDIA-A100-SXM4-40GB"

_PROFILE = re.compile(r"(?:(\d+)c\.)?(\d+)g\.(\d+)gb((?:[+-][a-z][a-z.]*)?)")


def profile_is_valid(profile: str) -> bool:
    """`1g.5gb`, `1c.3g.20gb`, `1g.5gb+me`, `1g.24gb-me`, `1g.24gb+me.all`."""
    return _PROFILE.fullmatch(profile) is not None


def is_whole_instance(profile: str) -> bool:
    """The compute instance spans its GPU instance (no `c` part, or as many slices); only such become resources."""
    match = _PROFILE.fullmatch(profile)
    return match is not None and (match[1] is None or match[1] == match[2])


def parse_mig(text: str) -> dict[int, tuple[str, ...]]:
    """`0=1g.5gb,3g.20gb;1=`: GPU 0 has MIG enabled with two instances, GPU 1 has it enabled with none.

    Raises:
        ValueError: the text does not have this form.
    """
    layout: dict[int, tuple[str, ...]] = {}
    for part in text.split(";"):
        if not part.strip():
            continue
        gpu, equals, profiles = (p.strip() for p in part.partition("="))
        if not equals or not gpu.isascii() or not gpu.isdigit():
            raise ValueError(f"MIG layout {part!r} is not of the form GPU=PROFILE,PROFILE")
        if int(gpu) in layout:
            raise ValueError(f"MIG layout names GPU {gpu} twice")
        layout[int(gpu)] = tuple(p.strip() for p in profiles.split(",")) if profiles else ()
    return layout


@dataclass(frozen=True)
class NodeLayout:
    """A node as the plugin sees it through NVML.

    `memory_mib` is per GPU. `mig` maps the index of each GPU with MIG enabled to the profiles of its instances; a GPU
    that is not named has MIG disabled. `compute_capability` decides the MPS client limit; None: taken from the product.

    Raises:
        ValueError: a GPU index out of range or a malformed profile.
    """

    gpus: int
    product: str = MOCK_PRODUCT
    memory_mib: int | None = None
    mig: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    compute_capability: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.gpus < 0:
            raise ValueError("the number of GPUs is negative")
        for gpu, profiles in self.mig.items():
            if not 0 <= gpu < self.gpus:
                raise ValueError(f"MIG layout names GPU {gpu}, the node has {self.gpus}")
            for profile in profiles:
                if not profile_is_valid(profile):
                    raise ValueError(f"{profile!r} is not a MIG profile")


class Kind(StrEnum):
    """Why a part of the text has no effect."""

    UNKNOWN_KEY = "unknown-key"
    MISPLACED_KEY = "misplaced-key"
    WRONG_CASE = "wrong-case"
    DUPLICATE_KEY = "duplicate-key"
    IGNORED_FIELD = "ignored-field"
    DUPLICATE_ROW = "duplicate-row"
    NO_SUCH_RESOURCE = "no-such-resource"
    MPS_WINS = "mps-wins"
    OVERRIDDEN = "overridden"
    SECOND_DOCUMENT = "second-document"


@dataclass(frozen=True)
class NoEffect:
    """A part of the text that has no effect; `line` is 1-based, `closest` what was probably meant."""

    kind: Kind
    path: str
    line: int | None
    value: str
    reason: str
    closest: str | None = None


@dataclass(frozen=True)
class Fault:
    """Something for which the plugin refuses to start. `stage` is one of parse, flags, devices."""

    stage: str
    path: str
    line: int | None
    value: str
    reason: str
    closest: str | None = None


@dataclass
class ReplicatedRow:
    """One entry of `sharing.*.resources`, as loaded."""

    name: str = ""
    rename: str = ""
    replicas: int = 0
    devices_all: bool = False
    path: str = ""
    line: int = 0
    lines: dict[str, int] = field(default_factory=dict)


@dataclass
class Replicated:
    """`sharing.timeSlicing` or `sharing.mps`, as loaded."""

    rename_by_default: bool = False
    fail_gt1: bool | None = None
    rows: list[ReplicatedRow] = field(default_factory=list)
    line: int = 0


@dataclass
class Config:
    """The configuration after loading; `options` holds only what the file sets, by path."""

    version: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    option_lines: dict[str, int] = field(default_factory=dict)
    custom_resources: bool = False
    time_slicing: Replicated = field(default_factory=Replicated)
    mps: Replicated | None = None

    @property
    def active(self) -> Replicated:
        """What is replicated: MPS as soon as it is set, time-slicing otherwise."""
        return self.mps if self.mps is not None else self.time_slicing

    @property
    def strategy(self) -> str:
        """What the plugin believes it does: mps, time-slicing or none."""
        if self.mps is not None and self.mps.rows:
            return "mps"
        return "time-slicing" if self.time_slicing.rows else "none"


@dataclass(frozen=True)
class Prediction:
    """What one node does with a configuration.

    `outcome` is accept, reject-parse, reject-flags or reject-devices, `reason` why. `capacity` maps resource names to
    counts; None when rejected. `fail_gt1` is failRequestsGreaterThanOne where it is set (None: not set, which acts as
    false). `labels` are GFD's, without the `nvidia.com/` prefix; `labels_lost`: GFD fails although the plugin accepts.
    `ignored_fields_warned`: the plugin logs that it ignores a field. `no_effect` names every part of the text without
    effect, `faults` every reason to refuse it. `settings` are the options in effect by path. `other_labels`: labels
    that do not depend on counts. `factors`: how often each device of a shared resource is offered, by the name under
    which it is advertised.
    """

    outcome: str
    reason: str
    capacity: Mapping[str, int] | None
    strategy: str | None
    fail_gt1: bool | None
    labels: Mapping[str, str] | None
    labels_lost: bool
    ignored_fields_warned: bool
    no_effect: tuple[NoEffect, ...] = ()
    faults: tuple[Fault, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    other_labels: Mapping[str, str] = field(default_factory=dict)
    factors: Mapping[str, int] = field(default_factory=dict)

    @property
    def accepted(self) -> bool:
        """The plugin starts with this configuration."""
        return self.outcome == "accept"
