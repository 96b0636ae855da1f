"""From the program's text to the file that the kernel's loader reads."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

from commsim.core.errors import BackendError
from switch_model.system import System

from .commands import output_of
from .program import source_for


def build(system: System, folder: Path) -> Path:
    """Compile the program for a system.

    Parameters
    ----------
    system : System
        See `program.source_for`.
    folder : Path
        Exists; gets the source and the object file.

    Returns
    -------
    Path
        The object file.

    Raises
    ------
    BackendError
        If clang or the headers of the kernel and of libbpf are missing.
    """
    source, target = folder / "aggregate.bpf.c", folder / "aggregate.bpf.o"
    source.write_text(source_for(system))
    if shutil.which("clang") is None:
        raise BackendError("there is no clang here (packages clang, llvm, libbpf-dev)")
    # the kernel's headers of this machine's own kind are not found for the target bpf otherwise
    include = f"-I/usr/include/{platform.machine()}-linux-gnu"
    output_of(["clang", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-target", "bpf", include, "-c", str(source),
               "-o", str(target)])  # fmt: skip
    return target
