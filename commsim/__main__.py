"""``python -m commsim`` is the command line."""

from .cli.process import run

if __name__ == "__main__":  # workers of MPI import the main module again
    run()
