"""Rules of `gpufleet lint`, by subject."""

SUBJECTS = (
    "reading",
    "configuration",
    "use",
    "values",
    "chart_values",
    "release",
    "daemon_sets",
    "installations",
    "requests",
    "workloads",
    "fleet",
    "hami",
    "cuda",
    "layouts",
    "claims",
    "queues",
    "drivers",
    "kustomize",
    "known_bad",
)
