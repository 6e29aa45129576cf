"""Rules about hosts, by subject: what preflight, the roles and verify report."""

SUBJECTS = (
    "platform",
    "driver",
    "kernel",
    "packages",
    "sources",
    "fabric",
    "runtime",
    "mig",
    "health",
)
