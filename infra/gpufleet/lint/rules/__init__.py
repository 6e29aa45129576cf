"""Rules of `gpufleet lint`, by subject."""

SUBJECTS = (
    "reading",
    "configuration",
    "use",
    "values",
    "daemon_sets",
    "installations",
    "requests",
    "workloads",
    "fleet",
    "hami",
    "cuda",
)
