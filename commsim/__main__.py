"""``python -m commsim`` is the command line."""

import sys

from .cli import main

if __name__ == "__main__":  # workers of MPI import the main module again
    sys.exit(main())
