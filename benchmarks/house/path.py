"""The way of one simple question through the house: files, functions, and the frames from its door to the kernel.

``python -m benchmarks.house.path`` asks ``commsim run`` and ``cs.predict`` for a ring all-reduce on a star of 8 hosts.
Each is asked once, which imports modules and fills caches, and then again while every call of Python is seen. Counts
hold for a fresh process: what a process has asked before decides what is in its caches. ``--json`` is for the test.

- A function is a function, method or lambda of the shipped packages that is entered at least once. Comprehensions and
  generator expressions belong to the function in which they are written; methods that ``dataclasses`` writes are in no
  file.
- A file is one with such a function. Kernels count too: this work is so little that they run as plain Python.
- The frames are those of the shipped packages on the stack, from the door to ``Kernel.__call__``, which runs the
  compiled kernel. Of the kernels of the engine it is the last: those before it lay out the work, this one finds the
  times.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.house.sources import ROOT, SHIPPED
from commsim.core.jit import MAX_INTERPRETED, Kernel

NETWORK, COLLECTIVE = "star:n_hosts=8", "ring_all_reduce"
COMMAND = f"run --topology {NETWORK} --collective {COLLECTIVE} -b 1M -e 1M"
# Code that belongs to the function in which it is written; Python 3.12 gives comprehensions no frame.
INNER = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
PACKAGES = tuple(f"{ROOT / package}/" for package in SHIPPED)


@dataclass(slots=True)
class Walk:
    """What one call went through.

    Parameters
    ----------
    functions : dict of str to set of str
        Functions that were entered in each file, files in the order of entry.
    to_kernel : tuple of str
        Frames from the door to the kernel that finds the times, as ``FILE FUNCTION``.
    """

    functions: dict[str, set[str]] = field(default_factory=dict)
    to_kernel: tuple[str, ...] = ()

    @property
    def n_files(self) -> int:
        """Number of files."""
        return len(self.functions)

    @property
    def n_functions(self) -> int:
        """Number of functions."""
        return sum(map(len, self.functions.values()))

    @property
    def n_frames(self) -> int:
        """Number of frames from the door to the kernel."""
        return len(self.to_kernel)

    def see(self, frame: FrameType, event: str, argument: object) -> None:  # noqa: ARG002
        """Note a call; a function for ``sys.setprofile``."""
        if event != "call" or not _is_ours(frame):
            return
        file, name = _place(frame)
        self.functions.setdefault(file, set()).add(f"{name}:{frame.f_code.co_firstlineno}")
        if name == "Kernel.__call__" and frame.f_locals["self"].__module__.startswith("commsim.engine."):
            stack = _stack(frame)
            if " ".join(stack).count(name) == 1:  # not a kernel that a kernel calls
                self.to_kernel = stack


def walk(question: Callable[[], object]) -> Walk:
    """Ask a question twice, as if nothing had been asked before, and return what the second time went through."""
    found, left = Walk(), Kernel.steps_left
    Kernel.steps_left = MAX_INTERPRETED
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            question()
            sys.setprofile(found.see)
            question()
    finally:
        sys.setprofile(None)
        Kernel.steps_left = left
    return found


def doors() -> dict[str, Callable[[], Any]]:
    """Return the same question for each door."""
    import commsim as cs
    from commsim.cli import main

    return {
        f"commsim {COMMAND}": lambda: main(COMMAND.split()),
        f'cs.predict("{COLLECTIVE}", "{NETWORK}", "1MiB")': lambda: cs.predict(COLLECTIVE, NETWORK, "1MiB"),
    }


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(PACKAGES) and frame.f_code.co_name not in INNER


def _place(frame: FrameType) -> tuple[str, str]:
    return str(Path(frame.f_code.co_filename).relative_to(ROOT)), frame.f_code.co_qualname


def _stack(frame: FrameType) -> tuple[str, ...]:
    """Return the frames of the shipped packages, from the outermost to this one."""
    frames: list[str] = []
    at: FrameType | None = frame
    while at is not None:
        if _is_ours(at):
            frames.append(" ".join(_place(at)))
        at = at.f_back
    return tuple(reversed(frames))


def main(argv: Sequence[str]) -> None:
    """Print what each door goes through."""
    walks = {door: walk(question) for door, question in doors().items()}
    if argv == ["--json"]:
        print(json.dumps({
            door: {"files": list(one.functions), "n_functions": one.n_functions, "to_kernel": one.to_kernel}
            for door, one in walks.items()
        }))  # fmt: skip
        return
    for door, found in walks.items():
        print(f"{door}\n{found.n_files} files, {found.n_functions} functions, {found.n_frames} frames to the kernel")
        print("files, in the order of entry, with the number of functions:")
        print(*(f"  {len(names):>3} {file}" for file, names in found.functions.items()), sep="\n")
        print("frames from the door to the kernel:")
        print(*(f"  {i:>3} {place}" for i, place in enumerate(found.to_kernel, start=1)), "", sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
