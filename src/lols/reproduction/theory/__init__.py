"""Exact values on small spaces, and the paper's constructions."""
