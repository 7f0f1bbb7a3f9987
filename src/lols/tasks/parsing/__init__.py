"""Dependency parsing: a tree for each sentence."""
