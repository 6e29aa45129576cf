"""Measures how processes share one GPU.

This package imports the standard library only, so that ``gpufleet bench --job`` can carry it to a node
as one archive that any image with Python 3.11 or newer runs.
"""
