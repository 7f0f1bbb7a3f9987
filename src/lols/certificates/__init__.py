"""Certificates: how far a trained policy is from the guarantee of the paper's Theorem 3, and what limits it."""
