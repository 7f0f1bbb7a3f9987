"""The contract: what a search problem is, and what its functions, examples and features look like."""
