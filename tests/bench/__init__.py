"""Measurements that are printed as ratios within one run; machines differ, ratios hold."""
