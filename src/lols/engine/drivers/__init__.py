"""Drivers: how a data set is taken through the engine, and what is said when something goes wrong."""
