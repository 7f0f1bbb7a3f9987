"""Cost-sensitive classification of the rows of a table, by a walk down a tree of labels."""
