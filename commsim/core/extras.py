"""The extra of commsim that brings a library, for the one line that says what is missing."""

from __future__ import annotations

import importlib
from typing import Any

from .errors import InputError

# By the name that is imported, the extra of pyproject.toml that installs it.
EXTRAS = {
    "mpi4py": "mpich", "torch": "torch", "scapy": "packets", "scipy": "opt", "networkx": "graph",
    "vl_convert": "report", "matplotlib": "plot", "pyroute2": "testbed", "fastapi": "serve",
    "fastapi_offline": "serve", "uvicorn": "serve", "prometheus_client": "serve", "yaml": "yaml", "pyarrow": "data",
    "duckdb": "data", "distributed": "dask", "ray": "ray", "google": "chakra", "perfetto": "perfetto",
    "pandas": "frames", "argcomplete": "complete",
}  # fmt: skip


def told_extra(module: str) -> str:
    """Return what to install for a module that is missing; empty if no extra brings it."""
    name = module.partition(".")[0]
    return needs(f"{name} is missing", EXTRAS[name]) if name in EXTRAS else ""


def needs(what: str, extra: str, otherwise: str = "") -> str:
    """Return the line that says what is missing, the extra that brings it, and what else may follow."""
    return f"{what}: pip install 'commsim[{extra}]'{otherwise}"


def of_extra(module: str) -> Any:
    """Import a module that an extra brings.

    Parameters
    ----------
    module : str
        Name of the module, such as ``scipy.optimize``.

    Raises
    ------
    InputError
        If it is not installed: the message names the extra.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if not (extra := told_extra(error.name or "")):
            raise
        raise InputError(extra) from None
