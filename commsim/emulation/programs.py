"""A Python program that many threads run at once, each with a main module of its own."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import runpy
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NoReturn

from commsim.core.errors import InputError
from commsim.core.files.opening import opening

from .current import set_thread_rank
from .failures import ProgramError, RankError
from .process_ranks import FLAGS
from .program_clock import rank_clock
from .settings import SETTINGS
from .stand_ins import StandIns
from .start_process import raised_at
from .thread_rank import ThreadRank
from .thread_ranks import ThreadRanks
from .torch_ranks.after_import import AfterImport

# Stack of a thread: deep enough for Python's own limit of recursion.
STACK_BYTES = 16 << 20
__all__ = ["run_in_threads"]


def run_in_threads(
    ranks: ThreadRanks, program: Sequence[str] | Callable[[], Any], *, moves_data: bool, clock: str
) -> None:
    """Run a command of Python, or a function, as threads.

    Raises
    ------
    InputError
        If the command is none of Python, or its file cannot be read.
    ProgramError
        If a rank raises.
    """
    before = sys.argv, sys.path[:], sys.modules["__main__"], SETTINGS.moves_data
    SETTINGS.moves_data = moves_data
    try:
        own_clock = rank_clock() if clock == "virtual" else contextlib.nullcontext()
        with StandIns(), AfterImport(), own_clock, _exec_refused():
            if callable(program):
                run: Callable[[ThreadRank], Any] = _called(program)
            else:
                code, name, file = _loaded(program)
                run = _executed(code, name, file)
            try:
                ranks.run(run, STACK_BYTES)
            except RankError as error:
                raised = error.error
                if isinstance(raised, SystemExit):
                    raise ProgramError(f"rank {error.rank}: exits with {raised.code}") from None
                raise ProgramError(f"rank {error.rank}: {raised_at(raised, raised.__traceback__)}") from raised
    finally:
        sys.argv, sys.path[:], sys.modules["__main__"], SETTINGS.moves_data = before


@contextlib.contextmanager
def _exec_refused() -> Iterator[None]:
    """Refuse ``os.exec*`` inside: it would end all ranks and the emulation without a word."""

    def refused(*_: object) -> NoReturn:
        raise RuntimeError("os.exec would replace all ranks, which are threads: use --ranks-as processes")

    before = {name: getattr(os, name) for name in ("execv", "execve")}  # the others call these
    for name in before:
        setattr(os, name, refused)
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(os, name, function)


def _called(program: Callable[[], Any]) -> Callable[[ThreadRank], Any]:
    def run(rank: ThreadRank) -> None:
        set_thread_rank(rank)
        program()

    return run


def _executed(code: CodeType, name: str, file: str | None) -> Callable[[ThreadRank], Any]:
    """Return what executes a program in a main module of the thread's own."""

    def run(rank: ThreadRank) -> None:
        main = ModuleType("__main__")
        vars(main).update({"__builtins__": __builtins__, "__spec__": None})
        if file is not None:
            vars(main)["__file__"] = file
        if name:
            vars(main)["__package__"] = name.rpartition(".")[0]
        rank.main = main
        sys.modules["__main__"] = main
        set_thread_rank(rank)
        threading.current_thread().name = f"rank {rank.number}"
        try:
            exec(code, vars(main))
        except SystemExit as error:
            if error.code not in (None, 0):
                raise

    return run


def _loaded(command: Sequence[str]) -> tuple[CodeType, str, str | None]:
    """Compile ``python FILE``, ``-m MODULE`` or ``-c CODE``, and set the arguments; return code, module and file."""
    first, *rest = command
    if Path(first).name.rstrip("0123456789.") != "python" and not first.endswith(".py"):
        raise InputError(
            f"threads run a Python program, such as python prog.py, got {first!r}; use --ranks-as processes"
        )
    if first.endswith(".py"):
        rest = [first, *rest]
    while rest and rest[0] in FLAGS:
        rest = rest[1:]
    if not rest or (rest[0].startswith("-") and (rest[0] not in ("-m", "-c") or len(rest) < 2)):
        raise InputError(f"a program must be FILE.py, -m MODULE or -c CODE, got {' '.join(rest) or 'nothing'!r}")
    if rest[0] == "-c":
        sys.argv = ["-c", *rest[2:]]
        sys.path.insert(0, "")
        return compile(rest[1], "<string>", "exec"), "", None
    if rest[0] == "-m":
        sys.path.insert(0, str(Path.cwd()))
        try:
            name, spec, code = runpy._get_module_details(rest[1])  # type: ignore[attr-defined]
        except ImportError as error:
            raise InputError(f"-m {rest[1]}: {error}") from None
        sys.argv = [spec.origin, *rest[2:]]
        return code, name, spec.origin
    path = Path(rest[0])
    with opening(path) as file:
        source = file.read()
    sys.argv = list(rest)
    sys.path.insert(0, str(path.resolve().parent))
    try:
        return compile(importlib.util.decode_source(source), str(path), "exec"), "", str(path)
    except (SyntaxError, UnicodeDecodeError) as error:
        raise ProgramError(f"{path}: {type(error).__name__}: {error}") from None
