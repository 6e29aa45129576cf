"""Which sharing method and how many replicas, argued from measurements with their conditions."""
