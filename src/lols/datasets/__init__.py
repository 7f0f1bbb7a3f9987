"""Data that the project generates: small worlds, an English-like grammar, network connections; costs of KDD 1999."""
