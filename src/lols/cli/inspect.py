"""`lols inspect`: what is in a model file."""
