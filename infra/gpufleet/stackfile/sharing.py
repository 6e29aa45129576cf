"""Sharing profiles: how the GPUs of a pool are offered, one model per method."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from gpufleet.stackfile.base import Model, matches, refuse

#: More pods than this on one GPU are a slip of the pen.
MOST_SPLITS = 100

#: The plugin itself sets no bound; more devices than this the kubelet could not list in one message.
Replicas = Annotated[int, Field(ge=2, le=16384)]
MemoryGib = Annotated[float, Field(gt=0, le=4096)]
#: What the pods do; the plan warns where measurements speak against the sharing (docs/decision-tree.md).
Workload = Literal["training", "inference", "notebooks", "batch"]
MigProfileName = Annotated[
    str,
    matches(
        r"[1-9]g\.[1-9][0-9]{0,2}gb([+-][a-z.]+)?",
        "MIG profiles look like 1g.10gb, or 1g.10gb+me.",
        "Use a name of the GPU's MIG table (docs/mig.md).",
    ),
]


class TimeSlicing(Model):
    """Time-slicing: every GPU is offered `replicas` times. No memory or fault isolation.

    `memoryPerPodGib` is what one pod may count on, in GiB; the plan compares it with the GPU's memory.
    Replicas above 48 are refused unless `allowManyReplicas` is set: such counts are nearly always memory slices in
    disguise, and every allocated replica becomes an entry in the container's environment (case NV-04).
    `timeSlice` is the length of a turn; only hosts prepared by the Ansible roles can set it.
    """

    strategy: Literal["timeSlicing"]
    replicas: Replicas
    rename_by_default: bool = False
    fail_requests_greater_than_one: bool = True
    memory_per_pod_gib: MemoryGib | None = None
    allow_many_replicas: bool = False
    workload: Workload | None = None
    time_slice: Literal["default", "short", "medium", "long"] | None = None

    @model_validator(mode="after")
    def _ceiling(self) -> TimeSlicing:
        if self.replicas > 48 and not self.allow_many_replicas:
            raise refuse(
                "GF110",
                f"{self.replicas} pods would share one GPU; more than 48 is refused unless it is meant.",
                "Lower replicas, or set allowManyReplicas: true.",
                keys="replicas, allowManyReplicas",
            )
        return self


class Mps(Model):
    """MPS: up to `replicas` processes run on a GPU at the same time, each with 1/replicas of memory and threads.

    The split is equal and enforced. The control daemon takes the GPU for itself: whoever uses it past MPS fails.
    """

    strategy: Literal["mps"]
    replicas: Replicas
    rename_by_default: bool = False
    fail_requests_greater_than_one: bool = True
    memory_per_pod_gib: MemoryGib | None = None
    workload: Workload | None = None


class Mig(Model):
    """MIG: GPUs are cut into instances with memory and fault isolation.

    `profile` cuts every GPU into as many instances of one kind as fit; `instances` gives the instances of each GPU.
    `naming` is the plugin's MIG strategy: `single` offers instances as nvidia.com/gpu, `mixed` under their own names.
    `replicas` offers each instance several times (time-slicing within it).
    """

    strategy: Literal["mig"]
    profile: MigProfileName | None = None
    instances: dict[MigProfileName, Annotated[int, Field(ge=1, le=7)]] = Field(default_factory=dict)
    naming: Literal["single", "mixed"] | None = None
    replicas: Replicas | None = None
    rename_by_default: bool = False
    fail_requests_greater_than_one: bool = True
    memory_per_pod_gib: MemoryGib | None = None
    workload: Workload | None = None

    @model_validator(mode="after")
    def _layout(self) -> Mig:
        if (self.profile is None) == (not self.instances):
            raise refuse(
                "GF110", "The layout is given in one way.", "Give profile, or instances.", keys="profile, instances"
            )
        if len(self.instances) > 1 and self.naming == "single":
            raise refuse(
                "GF110",
                "Under `single` the plugin refuses a node with more than one kind of instance.",
                "Leave naming out, or set it to mixed.",
                keys="instances, naming",
            )
        if self.rename_by_default and self.replicas is None:
            raise refuse(
                "GF110", "Only shared instances are renamed.", "Set replicas.", keys="renameByDefault, replicas"
            )
        return self

    @property
    def mig_strategy(self) -> Literal["single", "mixed"]:
        """The plugin's MIG strategy; `single` where there is one kind of instance and nothing else is asked for."""
        return self.naming or ("mixed" if len(self.instances) > 1 else "single")


class Hami(Model):
    """HAMi: pods ask for memory (MiB) and cores (percent) of a GPU, enforced by a library inside the container.

    `splitCount` is how many pods a GPU takes at most. HAMi brings its own plugin and scheduler.
    """

    strategy: Literal["hami"]
    split_count: int = Field(default=10, ge=2, le=MOST_SPLITS)
    memory_scaling: float = Field(default=1.0, gt=0, le=4)
    memory_per_pod_gib: MemoryGib | None = None


class NoSharing(Model):
    """Whole GPUs: one pod each."""

    strategy: Literal["none"]


SharingProfile = Annotated[TimeSlicing | Mps | Mig | Hami | NoSharing, Field(discriminator="strategy")]

ProfileName = Annotated[
    str,
    matches(
        r"[a-z0-9]([-a-z0-9]{0,28}[a-z0-9])?",
        "Profile names become ConfigMap keys and label values: lower case letters, digits and '-', at most 30.",
        "Write a name such as `notebooks`.",
    ),
]
