"""The program of a rank that runs for others: its command, and its execution as the main module."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from commsim.core.errors import CommsimError, InputError
from commsim.core.remark import as_remarks
from commsim.emulation.failures import ProgramError
from commsim.emulation.start_process import raised_at

from .alike_run import RankReport
from .host import Host

__all__ = ["Script", "run_script", "script_of"]


@dataclass(frozen=True, slots=True)
class Script:
    """A program: its file, its arguments, and the clock that it reads: ``virtual`` or ``wall``."""

    path: Path
    arguments: tuple[str, ...]
    clock: str


def script_of(program: Sequence[str], clock: str) -> Script:
    """Return the file and the arguments of ``[python] FILE ARGS``.

    Raises
    ------
    InputError
        If it is no such command, or there is no such file.
    """
    words = list(program)
    if words and Path(words[0]).name.rstrip("0123456789.") == "python":
        words = words[1:]
    if not words or not words[0].endswith(".py"):
        raise InputError(f"ranks that are alike run a file, such as python train.py, got {' '.join(program)!r}")
    if not Path(words[0]).is_file():
        raise InputError(f"{words[0]}: no such program")
    return Script(Path(words[0]), tuple(words[1:]), clock)


def run_script(script: Script, host: Host, n_local: int) -> RankReport:
    """Run a program as one rank on a virtual GPU, without data.

    Parameters
    ----------
    script : Script
        Program.
    host : Host
        Rank as which it runs.
    n_local : int
        Ranks of a machine.

    Raises
    ------
    ProgramError
        If the program raises, or does what a rank that stands for others cannot do.
    """
    from .stand_ins import stand_ins
    from .tensors import OnOneDevice, WithoutData

    without_data = WithoutData(host)  # made before the stand-ins: it imports modules that look at torch's functions
    with stand_ins(host, n_local, script.clock), without_data, OnOneDevice():
        _execute(script, host.rank)
        host.gpu.synchronize()
    steps = tuple(moment.time for moment in host.steps if moment.time is not None)
    return RankReport(steps, host.spent, tuple(as_remarks(host.remarks(), "emulated")))


def _execute(script: Script, rank: int) -> None:
    """Execute a program as the main module; what it raises becomes one line with the place."""
    import runpy

    path = script.path
    kept, folder = sys.argv, str(path.resolve().parent)
    sys.argv = [str(path), *script.arguments]
    sys.path.insert(0, folder)
    try:
        runpy.run_path(str(path), run_name="__main__")
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(f"interrupted; rank {rank}: {_line(path, stop)}") from None
    except SystemExit as leave:
        if leave.code not in (None, 0):
            raise ProgramError(f"{path}: rank {rank} exits with {leave.code}") from None
    except Exception as error:
        inner = error.__cause__ or error.__context__
        error_shown = error if isinstance(error, CommsimError) else inner  # libraries wrap what their callbacks raise
        if isinstance(error_shown, ProgramError):
            raise error_shown from None
        if isinstance(error_shown, CommsimError):
            raise ProgramError(f"rank {rank}: {error_shown}") from None
        raise ProgramError(f"rank {rank}: {raised_at(error, error.__traceback__)}") from error
    finally:
        sys.argv = kept
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)


def _line(path: Path, error: BaseException) -> str:
    """Line of the program that was being executed."""
    lines = [f"{path.name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)
             if frame.filename == str(path)]  # fmt: skip
    return lines[-1] if lines else "has not begun"
