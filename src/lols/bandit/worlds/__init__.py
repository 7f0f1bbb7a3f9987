"""Simulations of the bandit, in worlds of page layout, tagging and parsing."""
