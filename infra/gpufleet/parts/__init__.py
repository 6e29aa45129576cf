"""What fleets are made of: hardware, taints, names, and the artifacts that are installed."""
