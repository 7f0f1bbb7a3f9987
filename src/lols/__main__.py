"""`python -m lols` is `lols`."""

from lols.cli import main

if __name__ == "__main__":
    main()
