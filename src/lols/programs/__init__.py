"""The imperative way in: a decoder written once as a plain Python program, re-run by the library for the roll-outs."""
