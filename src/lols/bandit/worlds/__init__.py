"""Simulated worlds for the bandit: page layout, tagging and parsing, and the simulation itself."""
