"""Rules of the plan, by subject. Their checks run in this order."""

SUBJECTS = (
    "hardware",
    "driver_owner",
    "taints",
    "labels",
    "pools",
    "sharing",
    "mig",
    "autoscaler",
    "hosts",
    "operator",
    "chart_values",
    "plugin",
    "teams",
    "images",
    "advice",
    "in_use",
    "inventory",
    "facts",
)
