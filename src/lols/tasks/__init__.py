"""Ready-made tasks: search spaces for common problems, with their teachers and scores."""
