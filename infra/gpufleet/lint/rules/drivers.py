"""Rules about claims of devices (DRA)."""
