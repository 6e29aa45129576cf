"""What a bench run is asked to measure. Data only."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpufleet.measure.workloads import COPY, INFERENCE, MEMORY, NOTEBOOK, TIME_SLICING, TRAINING, Sizes

#: What ``--workload`` takes beside the classes: no throughput, but what memory each process is shown and can take.
OTHER_WORKLOADS: dict[str, str] = {MEMORY: "takes all memory of the GPU, so only where nobody else uses it"}

TIME_SLICES: dict[str, int] = {"default": 0, "short": 1, "medium": 2, "long": 3}  # nvidia-smi compute-policy


@dataclass(frozen=True)
class Run:
    """One request to measure. Times in seconds."""

    workloads: tuple[str, ...] = (TRAINING, INFERENCE, NOTEBOOK, COPY)
    methods: tuple[str, ...] = (TIME_SLICING,)
    processes: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    neighbours: tuple[str, ...] = ()  # one process of the workload beside n - 1 of each of these classes
    repetitions: int = 3
    window: float = 2.0
    warm_up: float = 0.3
    alone: float | None = None  # measured seconds of one process alone; None: as ``window``
    backend: str = "auto"  # auto | torch | driver
    fresh: bool = False  # start new processes for every number of processes
    time_limit: float | None = None
    gpu: str | None = None
    command: tuple[str, ...] = ()
    step_pattern: str | None = None
    time_slices: tuple[str, ...] = ()
    mig_profile: str | None = None
    allow_settings: bool = False
    sizes: Sizes = field(default_factory=Sizes)

    def window_of(self, workload: str) -> float:
        """Notebook steps are long and copies short, so their windows are scaled."""
        return self.window * {NOTEBOOK: 2.0, COPY: 0.5}.get(workload, 1.0)
