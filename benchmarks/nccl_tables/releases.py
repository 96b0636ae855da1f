"""Which release of NCCL a table can have run that names none: the newest one of its day.

A table of 2022 was not measured with a release of 2025. Months are those of NVIDIA's release notes, to about a month;
releases are those whose rules differ here (:mod:`commsim.nccl.model_versions`). Users often stay behind, so
that a prediction's interval is one over all releases.
"""

from __future__ import annotations

import re

OLDEST = (2, 8)
# Year and month from which on a release was out.
RELEASED = {
    (2022, 4): (2, 12), (2022, 9): (2, 14), (2022, 12): (2, 16), (2023, 3): (2, 17), (2023, 5): (2, 18),
    (2023, 11): (2, 19), (2024, 2): (2, 20), (2024, 4): (2, 21), (2024, 7): (2, 22), (2024, 10): (2, 23),
    (2025, 1): (2, 24), (2025, 2): (2, 25), (2025, 3): (2, 26), (2025, 6): (2, 27),
}  # fmt: skip

# What the history of a log's own repository says of it, where the index has a later date or release: both logs are in
# aws-samples/awsome-distributed-training since 88c2e71b (19 April 2024), whose container has NCCL 2.20.3 (2.19.4 until
# 20 March) and aws-ofi-nccl 1.8.1; that of aws-samples/aws-do-eks is there since e48ae9a (22 July 2024).
_APRIL_2024 = {"date": "2024-04", "nccl_version": "2.20.3", "plugin": "1.8.1"}
LOGGED: dict[str, dict[str, str]] = {
    "aws_p4de_2x8_ar": _APRIL_2024, "aws_p5_2x8_ar": _APRIL_2024,
    "aws_p5_2x8_ar_b": {"date": "2024-07", "plugin": "1.10.0"},
}  # fmt: skip


def newest_by(date: str) -> tuple[int, int]:
    """Return the newest release of a date; 2.27 for later ones, 2.8 for earlier ones.

    Parameters
    ----------
    date : str
        Day, month, year or range of these, as the index writes it: ``2022-07-05``, ``2025-01/02``, ``2023-2024``,
        ``<=2023``. The last month of a year or range counts.
    """
    years = re.findall(r"\d{4}", date)
    months = re.findall(r"\d{4}-(\d{2})(?!\d)(?:/(\d{2}))?", date)
    if not years:
        return OLDEST
    month = max(map(int, filter(None, months[-1]))) if months else 12
    day = int(years[-1]), month
    return max((release for month, release in RELEASED.items() if month <= day), default=OLDEST)
