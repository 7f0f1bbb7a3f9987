"""Training: algorithms and schedules, passes over the data, checkpoints, streams, and the models that come of it."""
