"""Speed and accuracy of lols beside the systems it is compared with: run one with ``python -m benchmarks.NAME``."""
