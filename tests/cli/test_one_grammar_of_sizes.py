"""Flags of one size: every verb reads them as ``run`` does, and takes ``-b`` for them."""

import re

import pytest

STAR = "star:n_hosts=6"
VERBS = {
    "run": ("run", "ring_all_reduce", "--topology", STAR),
    "switch simulate": ("switch", "simulate", "--workers", "4"),
    "switch budget": ("switch", "budget", "--workers", "4", "--loss", "0.01"),
    "traffic": ("traffic", "--topology", STAR),
    "workload weights": ("workload", "weights", "--from", "2", "--to", "4", "--topology", STAR),
    "workload reshard": ("workload", "reshard", "--receivers", "4", "--bandwidth", "100Gbps"),
    "advise": ("advise", "--topology", STAR),
    "place order": ("place", "order", "h0,h1,h2", "--topology", STAR),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_size_is_bytes_or_powers_of_1024_or_has_a_unit_in_every_verb(commsim, verb):
    words = VERBS[verb]

    def table(*size):
        return re.sub(r"\b(64K|65536B?|64KiB)\b", "64 KiB", commsim(*words, *size).out)

    short = ("-b", "64K", "-e", "64K") if verb == "run" else ("-b", "64K")
    wanted = table("--size", "64KiB")
    assert [table("--size", "64K"), table("--size", "65536"), table(*short)] == [wanted] * 3
