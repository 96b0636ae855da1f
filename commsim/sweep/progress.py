"""How far a sweep is, for people: a bar on a terminal, a line now and then elsewhere, with the time that is left."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from commsim.core.units import format_time

from .run import Progress

SECONDS_BETWEEN_LINES = 10.0


@contextlib.contextmanager
def shown() -> Iterator[Callable[[Progress], None]]:
    """Return a function that shows the progress it is given on standard error."""
    if sys.stderr.isatty():
        with _bar() as say:
            yield say
    else:
        yield Lines()


class Lines:
    """Prints a line at the beginning, at the end, and at most every ten seconds between."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = self._last = clock()

    def __call__(self, progress: Progress) -> None:
        """Print, if it is time to."""
        now = self._clock()
        first, last = progress.n_done == progress.n_before, progress.n_done == progress.n_points
        if first or last or now - self._last >= SECONDS_BETWEEN_LINES:
            self._last = now
            print(f"commsim sweep: {line(progress, now - self._began)}", file=sys.stderr, flush=True)


def line(progress: Progress, elapsed: float) -> str:
    """Say how far a sweep is after so many seconds."""
    text = f"{progress.n_done} of {progress.n_points} points"
    if progress.n_before:
        text += f", {progress.n_before} of them from before"
    if progress.n_failed:
        text += f", {progress.n_failed} failed"
    now = progress.n_done - progress.n_before
    if now and progress.n_done < progress.n_points:
        left = elapsed / now * (progress.n_points - progress.n_done)
        text += f", about {format_time(left)} left"
    return text


@contextlib.contextmanager
def _bar() -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
               TimeRemainingColumn())  # fmt: skip
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("points", total=None)

        def say(progress: Progress) -> None:
            failed = f" ({progress.n_failed} failed)" if progress.n_failed else ""
            bar.update(task, total=progress.n_points, completed=progress.n_done, description=f"points{failed}")

        yield say
