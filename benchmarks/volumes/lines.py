"""Command lines of all verbs: right ones, each with one to four changes that a hurried user could make."""

from __future__ import annotations

import contextlib
import io
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

from commsim.cli import main
from commsim.cli.parsing.aliases import in_new_words

from . import corpus
from .answer_checks import ANSWER, files_here, leftovers, wrong_end, wrong_json, wrong_numbers
from .draws import STRANGE, damaged, other_number, value
from .tallies import Tally
from .trials import IDLE_S, LIMIT_S, cpu_s

# Peak of a process of its own that is reported, bytes.
MAX_MEMORY = 500e6
# Processor time after which a process that has said what it does is interrupted, s.
SPOKEN_S = 8.0
# Values of these flags, and words without a flag, are networks or collectives.
_NETWORK = re.compile(r"--(?:topology|network)$")
# Lines whose pictures are drawn by a library with threads, which does not survive a fork.
_DRAWS = re.compile(r"\b(?:report|plot)\b")
_UNIT = re.compile(r"(?<=\d)[A-Za-z]+(?:/s)?$")
UNITS = ("", "b", "B", "kb", "Kb", "KB", "KiB", "mb", "MB", "MiB", "gbps", "Gbps", "GBps", "GB/s", "Gb/s", "us", "US",
         "ms", "s", "sec", "ns", "%", "G", "k")  # fmt: skip
# Share of the lines of which each command has as many; of the others each right line has as many.
EVEN = 0.6
# Command of lines that name none.
NO_VERB = "no verb"


def load() -> Tally:
    """Load what lines of all verbs need, so that processes forked from this one have it."""
    corpus.template()
    for command in corpus.pool():
        corpus.options_of(command)
    with corpus.folder():
        quick = [line for line in corpus.recorded_lines() if not _DRAWS.search(line)]
        for line in quick[:: len(quick) // 30]:
            for part in line.split(" && "):
                _ran(shlex.split(part))
    return Tally([*sorted(corpus.pool()), NO_VERB], ["exit 0", "1", "2"])


def drawn_line(seed: int, number: int) -> list[list[str]]:
    """Return the commands of a trial; the last is changed, those before it make its input."""
    draw = random.Random(f"{seed} lines {number}")
    pool = corpus.pool()
    command = (
        draw.choice(list(pool)) if draw.random() < 0.6 else draw.choices(list(pool), [*map(len, pool.values())])[0]
    )
    commands = [shlex.split(part) for part in draw.choice(pool[command]).split(" && ")]
    words = commands[-1]
    for _ in range(draw.choice((0, 1, 1, 1, 2, 2, 3, 4))):
        _change(draw, words)
    names = {one.name for one in corpus.options_of(command)} if command in pool else ()
    if "--json" in names and draw.random() < 0.3 and not {"--json", "-J", "--csv"}.intersection(words):
        words += ["--json", ANSWER]
    return commands


def _change(draw: random.Random, words: list[str]) -> None:
    at = draw.randrange(1, len(words)) if len(words) > 1 else 0
    kind = draw.randrange(12)
    if kind <= 2 or not at:
        _add_option(draw, words)
    elif kind == 3:
        words[at] = other_number(draw, words[at])
    elif kind == 4:
        words[at] = value(draw)
    elif kind == 5:
        del words[at]
    elif kind == 6:
        lines = corpus.pool()[draw.choice(list(corpus.pool()))]
        words[at] = draw.choice(shlex.split(draw.choice(lines).split(" && ")[-1]))
    elif kind == 7:
        words[at] = _typo(draw, words[at])
    elif kind == 8:
        words[at] = _UNIT.sub(draw.choice(UNITS), words[at])
    elif kind == 9:
        _other_file(draw, words)
    elif kind == 10:
        _other_spec(draw, words)
    else:  # a flag and its value, perhaps contradictory, of a right line of the same verb
        _add_option(draw, words, other=0.0)


def _add_option(draw: random.Random, words: list[str], other: float = 0.4) -> None:
    command = corpus.command_of(words)
    if command not in corpus.pool() or not (options := corpus.options_of(command)):
        return
    option = draw.choice(options)
    words.append(option.name)
    if option.takes:
        is_other = draw.random() < other or not option.values
        words.append(value(draw) if is_other else draw.choice(option.values))


def _typo(draw: random.Random, word: str) -> str:
    if len(word) < 2:
        return word * 2
    i = draw.randrange(len(word) - 1)
    return draw.choice((word[:i] + word[i + 1 :], word[:i] + word[i] + word[i:], word.upper(), word.replace("_", "-"),
                        word[:i] + word[i + 1] + word[i] + word[i + 2 :], word + draw.choice("s:=,.0 ")))  # fmt: skip


def _other_file(draw: random.Random, words: list[str]) -> None:
    """Put another file, or a damaged copy, in the place of one that is read."""
    known = corpus.files()
    at = [i for i, word in enumerate(words) if word in known]
    if not at:
        words.append(draw.choice(known))
        return
    i = draw.choice(at)
    name = words[i] if draw.random() < 0.7 else draw.choice(known)
    words[i] = f"{corpus.DAMAGED}/{draw.randrange(10**6)}/{name}" if draw.random() < 0.7 else name


def _other_spec(draw: random.Random, words: list[str]) -> None:
    for i, word in enumerate(words[:-1]):
        if _NETWORK.match(word):
            words[i + 1] = corpus.network_spec(draw)
            return
    if words[0] in ("run", "trace", "schedule", "fit", "compare"):
        spec = corpus.collective_spec(draw)
        words += ["--collective", spec] if words[0] in ("fit", "compare") else []
        if words[0] not in ("fit", "compare") and len(words) > 1:
            words[2 if words[0] == "schedule" and len(words) > 2 else 1] = spec
    elif words[0] in ("topo", "bound", "export", "place") and len(words) > 2:
        words[2] = corpus.network_spec(draw)
    else:
        words += draw.choice((["--engine", "packet"], ["--topology", draw.choice(STRANGE)]))


def text_of(seed: int, number: int) -> str:
    """Return the commands of a trial as a shell takes them."""
    return " && ".join(map(shlex.join, drawn_line(seed, number)))


def trial(seed: int, number: int, tally: Tally | None = None) -> str:
    """Run the commands of a trial in this process; return what is wrong."""
    with corpus.folder():
        commands = drawn_line(seed, number)
        for words in commands:
            _write_damaged(words)
            before = files_here()
            code, problem = _ran(words)
            if problem := problem or leftovers(before, words):
                return problem
        if tally is not None:
            tally.add(corpus.command_of(commands[-1]), code)
    return ""


def _write_damaged(words: list[str]) -> None:
    """Write the damaged files that words name: ``damaged/NUMBER/FILE``."""
    for word in words:
        start, _, name = word.removeprefix(f"{corpus.DAMAGED}/").partition("/")
        if word.startswith(f"{corpus.DAMAGED}/") and start.isdecimal() and name in corpus.files():
            draw, other = random.Random(int(start)), Path(random.Random(start).choice(corpus.files()))
            path = Path(word)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(damaged(draw, Path(name).read_bytes(), other.read_bytes()))


def _ran(words: list[str]) -> tuple[int, str]:
    """Run a command; return its status, and what is wrong."""
    out, err = io.StringIO(), io.StringIO()
    from commsim.core.limits import EXPECTED

    EXPECTED.clear()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("error")
            code: object = main(list(words))
    except SystemExit as stop:
        code = stop.code
    problem = wrong_end(code, out.getvalue(), err.getvalue())
    if not problem and not code:
        problem = wrong_numbers(words, out.getvalue())
        if words[-1:] == [ANSWER]:
            problem = problem or wrong_json(corpus.command_of(in_new_words(words).words), out.getvalue())
    return code if isinstance(code, int) else 0, problem


def alone(text: str) -> str:
    """Run a line in a process of its own; return what is wrong there: silence, memory, or how it ended.

    What takes long is right as long as it says so, and ends on Ctrl-C.
    """
    with corpus.folder():
        for part in text.split(" && "):
            _write_damaged(shlex.split(part))
            command = [sys.executable, "-m", "commsim", *shlex.split(part)]
            with Path("tmp/err").open("w+b") as err:
                process = subprocess.Popen(
                    command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, stderr=err,
                    preexec_fn=_hears_ctrl_c,
                )  # fmt: skip
                peak, status, interrupted = _waited(process, Path("tmp/err"))
                err.seek(0)
                said = err.read().decode(errors="replace")
            if peak > MAX_MEMORY:
                return f"takes {peak / 1e6:.0f} MB; status {status}: {said[-200:]}"
            if interrupted and not _speaks(said):
                return f"says nothing for {LIMIT_S:g} s of processor time"
            if status < 0 or (status not in (0, 1, 2) and not interrupted) or "Traceback" in said:
                return f"status {status}: {said[-800:]}"
    return ""


def _hears_ctrl_c() -> None:
    """Undo what a shell does to what it starts in the background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _waited(process: subprocess.Popen[bytes], err: Path) -> tuple[float, int, bool]:
    """Wait for a process, and interrupt it after a time; return its peak, bytes, its status, and whether it was.

    One that says what it does is interrupted soon: that is all that is asked of it, and processor time is dear.
    """
    interrupted, moved, last = 0.0, time.monotonic(), 0.0
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage.ru_maxrss * 1024.0, process.returncode, bool(interrupted)
        used, now = cpu_s(process.pid), time.monotonic()
        if used > last + 0.1:
            moved, last = now, used
        if interrupted and now > interrupted + IDLE_S:
            process.kill()
        elif not interrupted and (
            used > (SPOKEN_S if _speaks(err.read_text(errors="replace")) else LIMIT_S) or now > moved + IDLE_S
        ):
            process.send_signal(signal.SIGINT)
            interrupted = now
        time.sleep(0.05)


def _speaks(said: str) -> bool:
    """Whether a command says how far it is, of which time a measurement's passes are, or that it serves."""
    return any(words in said for words in ("so far", " of about ", "serving on"))
