"""Certificates: what the paper's main theorem says of a trained policy, and what stands in its way."""
