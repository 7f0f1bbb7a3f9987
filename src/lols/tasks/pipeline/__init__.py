"""Taggers and a parser, one after the other."""
