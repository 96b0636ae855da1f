"""The beginning and the end of a rank's process: what its start file calls before the user's program."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import traceback
from pathlib import Path
from types import TracebackType

from .current import set_process_rank
from .parent_watch import end_with_parent
from .program_clock import CLOCK, rank_clock
from .rank import SOCKET, rank_of_process
from .stand_ins import StandIns
from .torch_ranks.after_import import AfterImport

START_FILE = """\
import os, sys
if os.environ.get({socket!r}):
    import importlib
    getattr(importlib.import_module({module!r}), {begin!r})()
sys.path[:] = [path for path in sys.path if path != {folder!r}]
from importlib import util
from importlib.machinery import PathFinder
own = PathFinder.find_spec("sitecustomize", sys.path)
if own is not None:
    own.loader.exec_module(util.module_from_spec(own))
"""
BEGINS = {"module": "commsim.emulation.start_process", "begin": "begin"}
__all__ = ["begin", "raised_at", "write_start_file"]


def write_start_file(folder: Path) -> None:
    """Write the file that Python imports when a rank starts, into a folder that is first on its path."""
    (folder / "sitecustomize.py").write_text(START_FILE.format(socket=SOCKET, folder=str(folder), **BEGINS), "utf-8")


def begin() -> None:
    """Make this process a rank, until it ends; processes that it starts are none."""
    try:
        rank = rank_of_process()
    except (EOFError, ConnectionError, FileNotFoundError):  # the emulation has ended
        os._exit(1)  # Python would go on with the program, which is then no rank
    except OSError as error:
        os.write(2, f"commsim emulate: a rank cannot begin: {error}\n".encode())
        os._exit(1)
    del os.environ[SOCKET]
    set_process_rank(rank)
    os.register_at_fork(after_in_child=rank.abandon)
    goes_on_alone = end_with_parent(rank.file)
    StandIns().install()
    AfterImport().install()
    if os.environ.get(CLOCK) != "wall":
        rank_clock().install()
    has_failed, own = False, os.getpid()

    def raised(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        nonlocal has_failed
        if os.getpid() != own:  # it was forked from the rank
            sys.__excepthook__(kind, error, trace)
            return
        has_failed = True
        if issubclass(kind, KeyboardInterrupt):
            return
        with contextlib.suppress(OSError):
            rank.fail(raised_at(error, trace))

    def ended() -> None:
        goes_on_alone()
        if not has_failed and os.getpid() == own:
            with contextlib.suppress(OSError):
                rank.end()

    sys.excepthook = raised
    atexit.register(ended)


def raised_at(error: BaseException, trace: TracebackType | None) -> str:
    """Say on one line what was raised, and where in the program: the last line that is not ours."""
    here = str(Path(__file__).parent)
    frames = [frame for frame in traceback.extract_tb(trace) if not frame.filename.startswith((here, "<frozen"))]
    where = f"{frames[-1].filename}:{frames[-1].lineno}: " if frames else ""
    text = " ".join(str(error).split())
    return f"{where}{type(error).__name__}{f': {text}' if text else ''}"
