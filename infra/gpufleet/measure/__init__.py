"""What was measured of processes that share a GPU: series, models fitted to them, the committed tables."""
