"""Tagging: one label for each word."""
