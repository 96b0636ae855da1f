"""Metamorphic trials: a drawn question is asked in two ways, and a relation says what the answers have in common."""

from __future__ import annotations

import random
from collections.abc import Callable

from commsim.core.errors import CommsimError

from .corpus import folder
from .questions import drawn_question
from .relations import RELATIONS
from .tallies import Tally
from .verb_relations import VERB_RELATIONS, drawn_template

# Share of the questions that are asked of verbs other than `run`.
OF_VERBS = 0.3
# Questions that are drawn for a trial until one can be answered and its relation says something of it.
MOST_DRAWN = 60
OUTCOMES = ("held", "broken", "not asked")


def tally() -> Tally:
    """Return where trials count what came of each relation."""
    return Tally([*RELATIONS, *VERB_RELATIONS], OUTCOMES)


def trial(seed: int, number: int, counted: Tally) -> str:
    """Ask one question in two ways; return what is wrong."""
    draw = random.Random(f"{seed} questions {number}")
    of_verb = draw.random() < OF_VERBS
    name = draw.choice(list(VERB_RELATIONS if of_verb else RELATIONS))
    with folder():
        for _ in range(MOST_DRAWN):
            what = ""
            try:
                what, ask = _asked(draw, name, of_verb=of_verb)
                problem = ask()
            except CommsimError as error:
                if "PhysicsError" in type(error).__name__:
                    return f"{name}: {what}: {error}"
                continue
            if problem is not None:
                counted.add(name, OUTCOMES.index("broken" if problem else "held"))
                return f"{name}: {what}: {problem}" if problem else ""
    counted.add(name, OUTCOMES.index("not asked"))
    return ""


def _asked(draw: random.Random, name: str, *, of_verb: bool) -> tuple[str, Callable[[], str | None]]:
    if of_verb:
        verb, text = drawn_template(draw)
        return text, lambda: VERB_RELATIONS[name](verb, text, draw)
    question = drawn_question(draw)
    return str(question), lambda: RELATIONS[name](question)
