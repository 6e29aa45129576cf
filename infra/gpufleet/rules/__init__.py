"""Rules of the plan, by subject. Their checks run in this order."""

SUBJECTS = (
    "hardware",
    "driver_owner",
    "operator_driver",
    "container_runtime",
    "taints",
    "labels",
    "pools",
    "sharing",
    "mig",
    "autoscaler",
    "hosts",
    "operator",
    "plugin",
    "registry",
    "teams",
    "images",
    "advice",
    "in_use",
    "inventory",
    "facts",
)
