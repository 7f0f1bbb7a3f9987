"""The paper's experiments, run again: its tables with our figures beside the authors', and its claims one by one."""
