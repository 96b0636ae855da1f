"""``python -m commsim`` is the command line."""

import sys
from pathlib import Path

# Python looks into the current folder first, where a user's topologies.py or collectives/ is not ours: look there last.
if __name__ == "__main__" and sys.path[0] == str(Path.cwd()):
    sys.path.append(sys.path.pop(0))

from .cli.process import run

if __name__ == "__main__":  # workers of MPI import the main module again
    run()
