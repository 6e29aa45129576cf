"""Rules of the plan, by subject. Their checks run in this order."""

SUBJECTS = (
    "hardware",
    "driver_owner",
    "taints",
    "labels",
    "pools",
    "aks",
    "kubernetes",
    "sharing",
    "mig",
    "autoscaler",
    "hosts",
    "operator",
    "plugin",
    "teams",
    "images",
    "advice",
    "in_use",
    "inventory",
    "facts",
)
