"""The one error family, all derived from :class:`CommsimError`; texts and unknown names as its messages print them."""

from __future__ import annotations

import contextlib
import difflib
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")
# Names that a message offers where they contain the wrong one, and of known ones that it lists in full.
MAX_HINTS, MAX_NAMES = 4, 12
LEAST_BEGUN = 3  # letters with which a name begins
# Letters of a text from outside that a message quotes, and of a path or of a word that it has without quotes.
QUOTED, PATH = 60, 300
# Text in quotes, not an apostrophe within a word; and a word. No quote that is escaped begins one, and nothing that was
# matched is given back: each letter is looked at a few times only.
_QUOTES = re.compile(rf"(?<![\w'\"\\])(['\"])((?:(?!\1)[^\\]|\\.){{{QUOTED},}}+)\1(?!\w)", re.DOTALL)
_WORD = re.compile(rf"\S{{{PATH},}}")


class CommsimError(Exception):
    """Base of all errors that a user can cause; the command line prints it on one line and exits with 2.

    Parameters
    ----------
    message : str
        What is wrong; of texts from outside that it quotes, the beginning is kept.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(shorten_quotes(message))


class InputError(CommsimError, ValueError):
    """A value from outside is wrong: the message names it, and what would be right."""


class NoRoomError(InputError):
    """What is asked for could be had, but is taken now."""


class NoAggregatorError(InputError):
    """No switch of the network is known to aggregate."""


class OtherAggregatorsError(InputError):
    """The switches that aggregate are those of another system."""


class Reason(str):
    """Why something was left out; reasons of one code are told together, whatever their words are.

    Parameters
    ----------
    text : str
        Reason in words.
    code : str
        What it is about; empty where it is told by itself.
    """

    __slots__ = ("code",)
    code: str

    def __new__(cls, text: str, code: str = "") -> Reason:
        """Make a text with a code."""
        reason = super().__new__(cls, text)
        reason.code = code
        return reason

    def __reduce__(self) -> tuple[type[Reason], tuple[str, str]]:
        return Reason, (str(self), self.code)


class ScheduleError(InputError):
    """A schedule is malformed, or does not meet the postcondition of its operation."""


class NoClosedFormError(InputError):
    """A collective, or what it is asked to do, has no closed form; others may have one."""


class RoutingError(InputError):
    """Two participants that must talk have no path between them."""


class BackendError(CommsimError, RuntimeError):
    """A real backend (MPI, torch.distributed) is missing or failed."""


class PhysicsError(CommsimError, RuntimeError):
    """A simulated result contradicts capacity or causality: a bug of commsim, never the user's fault."""


def wrong_kind(name: str, wanted: str, value: object) -> InputError:
    """Return the error of a value of another kind than a function takes.

    Parameters
    ----------
    name : str
        Name of the parameter.
    wanted : str
        Kinds that are taken, with an example.
    value : object
        Value that was given; the message has its beginning.
    """
    return InputError(f"{name} must be {wanted}, got {reprlib.repr(value)}")


def alike(name: str, known: Iterable[str], most: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return the known names that are spelled most like a name, at most so many."""
    return difflib.get_close_matches(name, list(known), most, cutoff)


def did_you_mean(close: Sequence[str], last: bool = False) -> str:
    """Return the question whether names are meant that are like an unknown one; nothing where there are none.

    Parameters
    ----------
    close : sequence of str
        Names that may be meant.
    last : bool
        Whether the message ends with it. Default: more is said after it.

    Examples
    --------
    >>> f"unknown chip 'p3'; {did_you_mean(['p4', 'p5'])}known: p4, p5, q"
    "unknown chip 'p3'; did you mean p4 or p5? known: p4, p5, q"
    >>> f"no chip 'p3'{did_you_mean(['p4'], last=True)}"
    "no chip 'p3'; did you mean p4?"
    """
    question = f"did you mean {' or '.join(close)}?" if close else ""
    return question and (f"; {question}" if last else f"{question} ")


def look_up(what: str, name: str, known: Mapping[str, T], listed: str = "") -> T:
    """Return the value of a name.

    Parameters
    ----------
    what : str
        Kind of what is looked up, such as ``GPU``.
    name : str
        Name to look up.
    known : mapping of str to value
        All that are known.
    listed : str
        What prints all of them; empty where nothing does.

    Raises
    ------
    InputError
        If the name is unknown.
    """
    if name not in known:
        raise unknown_name(what, name, known, listed)
    return known[name]


def unknown_name(what: str, name: str, known: Iterable[str], listed: str = "", more: str = "") -> InputError:
    """Return the error of a name that is not known; parameters as of :func:`look_up`.

    Parameters
    ----------
    more : str
        What is taken beside the known names, such as ``a FILE.py``.
    """
    names = list(known)
    told = meant_or_known(close_names(name, names), [*names, *([more] if more else [])], listed)
    return InputError(f"unknown {what} {name!r}; {told}")


def meant_or_known(close: Sequence[str], names: Sequence[str], listed: str) -> str:
    """Return what a message says after an unknown name: what may be meant, and the known names, of many a few.

    Parameters
    ----------
    close : sequence of str
        Names that may be meant; where there are some and many are known, no others are named.
    names : sequence of str
        All known names.
    listed : str
        What prints all of them; empty where nothing does: then the message lists them all.

    Examples
    --------
    >>> meant_or_known(["p5"], ["p4", "p5"], "")
    'did you mean p5? known: p4, p5'
    """
    hint = did_you_mean(close)
    if len(names) <= MAX_NAMES or not listed:
        return f"{hint}known: {', '.join(names)}"
    few = "" if hint else f": {', '.join(names[:MAX_HINTS])}, ..."
    return f"{hint}{len(names)} are known{few} ({listed})"


def close_names(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names that may be meant: some that contain the name as a word, else the most similar ones."""
    # a part of a name, such as ring, omni or h100, is the usual slip: difflib finds it too unlike the whole name, or
    # takes h100 for h800
    written, low = {one.lower(): one for one in known}, name.lower()
    parts = sorted((one for one in written if low and low in one), key=lambda one: (not one.startswith(low), one))
    of_words = [one for one in parts if low in re.split("[-_]", one)]
    begun = [one for one in parts if len(low) >= LEAST_BEGUN and one.startswith(low)]
    like = [one for one in alike(low, written, MAX_HINTS) if _is_like(low, one)]
    found = of_words or begun or _most_like(low, like) or parts
    return [written[one] for one in found[:MAX_HINTS]]


def _most_like(name: str, like: Sequence[str]) -> list[str]:
    """Return the most similar ones of some names: llama-70b is as far from llama2-70b as from llama3-70b."""
    ratios = {one: difflib.SequenceMatcher(None, one, name).ratio() for one in like}
    return [one for one in like if ratios[one] == max(ratios.values())]


def _is_like(name: str, known: str) -> bool:
    """Whether names are alike also without the words at their ends that are equal, as in foo_all_reduce."""
    words, other = name.split("_"), known.split("_")
    while words and other and words[-1] == other[-1]:
        words.pop()
        other.pop()
    return not words or not other or bool(alike("_".join(words), ["_".join(other)]))


@contextlib.contextmanager
def located(where: object) -> Iterator[None]:
    """Put a file, and perhaps its line or field, before the message of an error that does not begin with it."""
    try:
        yield
    except InputError as error:
        if str(error).startswith(str(where)):
            raise
        kind = NoRoomError if isinstance(error, NoRoomError) else InputError  # a conflict stays one: status 409
        raise kind(f"{where}: {error}") from None


def shorten(text: str) -> str:
    """Return the beginning of a text from outside, as long as a message quotes it: 60 letters, in its quotes.

    Examples
    --------
    >>> shorten(repr("ring" * 100))
    "'ringringringringringringringringringringringringringring...'"
    """
    if len(text) > QUOTED and text[0] in "'\"" and text[-1] == text[0]:
        return f"{text[0]}{_cut(text[1:-1], QUOTED)}{text[0]}"
    return _cut(text, QUOTED)


def shorten_quotes(message: str) -> str:
    """Return a message with the beginnings of long quotes and words: 60 letters, of paths 300.

    Every error has passed through this, so that no reader need remember to cut what it quotes.

    Examples
    --------
    >>> shorten_quotes(f"unknown topology {'ring' * 100!r}; known: star")
    "unknown topology 'ringringringringringringringringringringringringringring...'; known: star"
    """
    if len(message) <= QUOTED:
        return message
    return _WORD.sub(lambda word: _cut(word[0], PATH), _QUOTES.sub(_shortened, message))


def _shortened(quote: re.Match[str]) -> str:
    return f"{quote[1]}{_cut(quote[2], PATH if '/' in quote[2] else QUOTED)}{quote[1]}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def printable(text: str) -> str:
    r"""Write what is not printable as the escape that Python has for it: control characters, directions, line ends.

    Examples
    --------
    >>> printable("ring\x1b[31m")
    'ring\\x1b[31m'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
