"""A sharing profile that pools use: the device plugin's configuration text, and what pods can ask for with it."""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from gpufleet.methods.base import Method

_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # the C one writes the same text in a tenth of the time


@dataclass(frozen=True)
class Profile:
    """One sharing profile.

    `config` is the file that the plugin reads, `resources` what pods can ask for, `pods_per_device` how many pods take
    part in one device (GPU or MIG instance). `mig_strategy` is the plugin's word for how it offers MIG instances.
    """

    name: str
    strategy: str
    pods_per_device: int
    resources: tuple[str, ...]
    config: str
    mig_strategy: str = "none"
    memory_per_pod_gib: float | None = None

    @property
    def resource(self) -> str:
        """The resource of profiles that offer one; the first of several."""
        return self.resources[0]


def plugin_text(method: Method) -> str:
    """The text of the plugin's configuration file."""
    return yaml.dump(method.plugin_config(), Dumper=_DUMPER, sort_keys=False)


def profile_of(name: str, method: Method) -> Profile:
    """What follows from a profile of the stack file, whatever the hardware."""
    return Profile(
        name=name,
        strategy=method.strategy,
        pods_per_device=method.pods_per_device,
        resources=method.resources,
        config=plugin_text(method),
        mig_strategy=method.mig_strategy,
        memory_per_pod_gib=method.promised_gib,
    )
