"""``python -m commsim`` is the command line."""

import os
import sys

# Python looks into the current folder first, where a user's rich.py or select.py is not what we import: there last.
if __name__ == "__main__" and sys.path[0] == os.getcwd():  # noqa: PTH109 - pathlib takes 10 ms without Ctrl-C
    sys.path.append(sys.path.pop(0))

try:
    from .cli.process import run
except KeyboardInterrupt:  # Ctrl-C before anything was done
    sys.exit(130)

if __name__ == "__main__":  # workers of MPI import the main module again
    run()
