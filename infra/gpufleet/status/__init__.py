"""Proof of arrival: what was declared against what the nodes show."""
