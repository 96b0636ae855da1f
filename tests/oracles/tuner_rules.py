"""Rules of NCCL's tuner plugin as it reads them, from the lines that commsim writes."""

import re
from pathlib import Path

from commsim.core.errors import InputError
from commsim.formats.nccl_plans import COLLECTIVES, COLUMNS, Rule

_WHOLE = re.compile(r"-?\d{1,19}", re.ASCII)


def read_tuner(path: str | Path) -> tuple[Rule, ...]:
    """Read rules.

    Raises
    ------
    InputError
        If a line is none; names it.
    """
    ours = {name: operation for operation, name in COLLECTIVES.items()}
    rules = []
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        cells = [cell.strip() for cell in line.split(",")]
        if not line.strip() or line.startswith("#") or cells[0] == "collective_type":
            continue
        numbers = [*cells[1:3], *cells[5:]]
        if not 8 <= len(cells) <= 10 or cells[0] not in ours or not all(_WHOLE.fullmatch(cell) for cell in numbers):
            raise InputError(f"{path}, line {number}: a rule is {COLUMNS}, got {line[:80]!r}")
        try:
            rules.append(Rule(ours[cells[0]], int(cells[1]), int(cells[2]), cells[3], cells[4], *map(int, cells[5:8])))
        except InputError as error:
            raise InputError(f"{path}, line {number}: {error}") from None
    return tuple(rules)
