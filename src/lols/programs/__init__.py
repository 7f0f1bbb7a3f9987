"""The imperative interface: a decoder written as a plain Python program, which the library runs again for roll-outs."""
