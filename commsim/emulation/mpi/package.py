"""Names of the package ``mpi4py`` in an emulated rank."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

# The version whose calls the stand-in has.
VERSION = "4.1.0"


def _get_include() -> str:
    raise NotImplementedError("commsim emulate has no mpi4py.get_include: programs in C do not run here")


# What a program finds as ``mpi4py.name``; settings (``rc``) change nothing.
NAMES: dict[str, Any] = {
    "__version__": VERSION, "get_include": _get_include,
    "rc": SimpleNamespace(initialize=True, finalize=None, threads=True, thread_level="multiple", errors="exception"),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    raise AttributeError(f"commsim emulate has no mpi4py.{name}")
