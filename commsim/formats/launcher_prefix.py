"""What launchers and log collectors put before each line that a program printed."""

from __future__ import annotations

import re

_PREFIX = re.compile(
    r"""\s*
    (?:\[pod/[^\]\s]{1,200}\]\s)?                                        # kubectl logs --prefix
    (?:\d{4}-\d\d-\d\dT[\d:.]{8,24}(?:Z|[+-]\d\d:?\d\d)\s)?              # times of kubectl and docker
    (?:\w{3}\s\w{3}\s{1,2}\d{1,2}\s[\d:]{8}\s\d{4}\s?(?=\[|<))?          # mpirun --timestamp-output
    (?:
      (?:\[(?:[^\]\s@]{1,200}@)?\d{1,9},\d{1,9}\])?\s?<std(?:out|err|diag)>\s*:   # mpirun --tag-output, prterun
    | \d{1,9}:(?=\s)                                                     # srun --label
    | \[\d{1,9}\]\s(?=\s*[\d\#])                                         # mpiexec -prepend-rank
    )?""",
    re.VERBOSE | re.ASCII,
)


def without_prefix(line: str) -> str:
    """Return what the program printed."""
    found = _PREFIX.match(line)
    return line[found.end() :] if found else line
