"""Limits on work and memory that are asked for by mistake; and what a command that takes long may say of itself.

For a request of another program no file is opened: what opens files asks here, so that no reader of a request has to
look for names of files in it.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from commsim.core.errors import InputError, printable, shorten
from commsim.core.units import format_time, parse_size

# Seconds of estimated work, and the variable that sets another limit.
MAX_SECONDS = 3600.0
VARIABLE = "COMMSIM_MAX_SECONDS"
# Memory that one command may take, bytes, and the variable that sets another limit.
MAX_MEMORY = 8.0 * 2**30
MEMORY_VARIABLE = "COMMSIM_MEMORY"
# Address space in which Numba, LLVM while it compiles, and SciPy fit, bytes: a process with all of them took 770 MB.
LIBRARIES = 1e9
# Hashes of routes that a time is a median of: more is a typo.
MAX_HASHES = 10_000
# Tables that fit anywhere, bytes: what is free need not be asked for them.
SMALL = 2.0**26
# Share of a core below which other work is said to be the reason for the wait.
SHARED = 0.8
# Numbers of options of glibc's `mallopt`, <malloc.h>.
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
# Whether no file may be opened: inside of `without_files`.
_WITHOUT_FILES: ContextVar[bool] = ContextVar("without files", default=False)
_UNITS = (("years", 31_557_600.0), ("days", 86_400.0), ("h", 3600.0), ("min", 60.0))


@dataclass(slots=True)
class CurrentWork:
    """What a process is doing, as the line of progress says it.

    Parameters
    ----------
    what : str
        Work that was declared last.
    seconds : float
        Its estimate, from when it was declared; 0 if nothing was.
    part : str
        Which of several parts of the command it is, such as ``ring_all_reduce (3 of 18)``.
    is_shown : bool
        Whether another line or bar on the terminal shows progress.
    """

    what: str = ""
    seconds: float = 0.0
    part: str = ""
    is_shown: bool = False

    def begin(self, part: str) -> None:
        """Say which part of the command begins, which declares its own work; an empty text after the last one."""
        self.what, self.seconds, self.part = "", 0.0, part

    def clear(self) -> None:
        """Forget what was declared, as before a command."""
        self.what, self.seconds, self.part, self.is_shown = "", 0.0, "", False


EXPECTED = CurrentWork()


def scheduled() -> tuple[float, float]:
    """Return the seconds that the main thread has run, and has waited for a core; zeros where it is not known."""
    try:
        ran, waited, _ = Path("/proc/self/schedstat").read_text(encoding="ascii").split()
        return int(ran) * 1e-9, int(waited) * 1e-9
    except (OSError, ValueError):
        return 0.0, 0.0


def about_share(share: float) -> str:
    """Say which share of a core the work gets beside other work; nothing where it is nearly all."""
    return f", with {share:.0%} of a core beside other work" if share < SHARED else ""


def expect(seconds: float, what: str, less: str) -> None:
    """Declare work before it begins, and refuse it where nobody can mean it.

    Parameters
    ----------
    seconds : float
        Estimate, right to a factor of about 3.
    what : str
        What is done, such as ``simulating 3e+09 packets``.
    less : str
        What would ask for less, such as ``a smaller --size``.

    Raises
    ------
    InputError
        If it would take longer than an hour, or than the seconds in the variable COMMSIM_MAX_SECONDS.
    """
    limit = _limit()
    if not seconds <= limit:
        raise InputError(
            f"{what} would take about {duration(seconds)}, but the limit is {duration(limit)}: ask for {less}, or set "
            f"{VARIABLE}={float(f'{2 * seconds:.1g}'):g}"
        )
    EXPECTED.what, EXPECTED.seconds = what, seconds


def expect_bytes(n_bytes: float, what: str, less: str) -> None:
    """Refuse tables that do not fit into the memory that this process can have, or that nobody can mean.

    Parameters
    ----------
    n_bytes : float
        Size of the tables.
    what, less : str
        Their name, and what would ask for less.

    Raises
    ------
    InputError
        If they are larger than what is free; or than 8 GiB, or the size in the variable COMMSIM_MEMORY.
    """
    if n_bytes <= SMALL:
        return
    text, limit, room = f"{what} would take {_gib(n_bytes)} of memory", memory_limit(), available_bytes()
    if n_bytes > room:
        raise InputError(f"{text}, but only {_gib(room)} are free: ask for {less}")
    if not n_bytes <= limit:
        way_round = f"{MEMORY_VARIABLE}={float(f'{2 * n_bytes / 2**30:.1g}'):g}GiB"
        raise InputError(f"{text}, but the limit is {_gib(limit)}: ask for {less}, or set {way_round}")


def _gib(n_bytes: float) -> str:
    return f"{n_bytes / 2**30:.3g} GiB"


def memory_limit() -> float:
    """Return the most bytes that one command may take by intention: 8 GiB, or what COMMSIM_MEMORY says.

    Raises
    ------
    InputError
        If the variable is no size.
    """
    text = os.environ.get(MEMORY_VARIABLE, "")
    return parse_size(text, MEMORY_VARIABLE) if text else MAX_MEMORY


def check_room_for_libraries() -> None:
    """Refuse to load compilers and solvers under a limit of the shell in which they hang, abort or half load.

    Raises
    ------
    InputError
        If ``ulimit -v`` gives less than they take.
    """
    limit = _address_space()[0]
    if limit < LIBRARIES:
        raise InputError(f"Numba and SciPy do not fit into the address space under `ulimit -v`, {limit / 1e6:.0f} MB: "
                         f"give at least {LIBRARIES / 1e6:.0f} MB")  # fmt: skip


def give_back_memory() -> None:
    """Give memory that is free within this process back to the system, where the C library can.

    Arrays of some megabytes that were freed leave holes between those that stay: 90 of 300 MB for two million messages.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def keep_freed_memory() -> None:
    """Have this process use freed memory again, where the C library can, instead of asking the system for new pages.

    Columns of millions of links come and go: clearing pages for them took a third of the time of a million GPUs.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library
        for option, value in ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, 2**31 - 1)):
            ctypes.CDLL(None).mallopt(option, value)


def available_bytes() -> float:
    """Memory that this process can still have: what is free on the machine, or less under a limit of the shell."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(float(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):  # no Linux
        return math.inf
    limit, used = _address_space()
    return min(free, max(0.0, limit - used))


def _address_space() -> tuple[float, float]:
    """Limit of the shell on the address space of this process, and what it uses of it, bytes."""
    import resource

    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    if soft == resource.RLIM_INFINITY:
        return math.inf, 0.0
    try:
        pages = float(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return math.inf, 0.0
    return float(soft), pages * os.sysconf("SC_PAGE_SIZE")


def duration(seconds: float) -> str:
    """Write a time in seconds, or in minutes to years where that is shorter."""
    for unit, size in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{round(seconds)} s" if seconds >= 10 else format_time(float(f"{seconds:.2g}"))


def _limit() -> float:
    text = os.environ.get(VARIABLE, "")
    try:
        limit = float(text) if text else MAX_SECONDS
    except ValueError:
        limit = math.nan
    if not limit > 0:
        raise InputError(f"{VARIABLE} must be positive seconds, such as 7200, got {text!r}")
    return limit


@contextlib.contextmanager
def without_files() -> Iterator[None]:
    """Open no file inside, as for a request of another program, whatever it names."""
    token = _WITHOUT_FILES.set(True)
    try:
        yield
    finally:
        _WITHOUT_FILES.reset(token)


def may_open_files() -> bool:
    """Whether this is outside of :func:`without_files`."""
    return not _WITHOUT_FILES.get()


def is_there(text: str) -> bool:
    """Whether a text names a file; one that is too long for a name does not, and nothing of a request does."""
    if not text or not may_open_files():  # no text is no file, though its path is the current folder
        return False
    try:
        return Path(text).exists()
    except OSError:
        return False


def require_files(path: object) -> None:
    """Refuse to open a file for a request.

    Raises
    ------
    InputError
        Inside of :func:`without_files`.
    """
    if not may_open_files():
        raise InputError(f"a request cannot name a file, got {shorten(printable(str(path)))}")
