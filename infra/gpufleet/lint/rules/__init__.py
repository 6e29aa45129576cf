"""Rules of `gpufleet lint`, by subject."""

SUBJECTS = (
    "reading",
    "configuration",
    "use",
    "values",
    "chart_values",
    "daemon_sets",
    "installations",
    "requests",
    "workloads",
    "cuda",
    "known_bad",
)
