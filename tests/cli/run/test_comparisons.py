import pytest

LEAVES = "leaf_spine:n_leaves=4,n_spines=4,hosts_per_leaf=4"
ONE = ("-b", "1M", "-e", "1M")
STAR = "star:n_hosts=8"


def test_collectives_with_other_numbers_of_ranks_are_told_so(commsim):
    out = commsim("run", "--topology", STAR, "ring_all_reduce", "omnireduce", *ONE).out
    assert "compared with different numbers of ranks, 8, 7: --ranks 7 gives all the same" in out
    assert (
        "different numbers"
        not in commsim("run", "--topology", STAR, "ring_all_reduce", "omnireduce", *ONE, "--ranks", 7).out
    )


def test_too_few_hosts_for_helpers_are_refused_with_the_parameter_that_needs_none(commsim):
    said = commsim.refuses("run", "--topology", STAR, "omnireduce", *ONE, "--ranks", 8)
    assert said.strip().endswith("omnireduce:colocated=true puts them on the ranks' own")
    assert commsim("run", "--topology", STAR, "omnireduce:colocated=true", *ONE, "--ranks", 8).code == 0


@pytest.mark.parametrize("seed", range(4))
def test_a_call_that_a_dead_cable_makes_faster_is_explained(commsim, seed):
    words = ("run", "--topology", LEAVES, "ring_all_reduce", *ONE, "--placement", "spread", "--seed", seed)
    whole = commsim.results(*words)["results"][0]["time_s"]
    failed = commsim.results(*words, "--fail", "link:leaf0:spine0")
    is_faster = failed["results"][0]["time_s"] < whole * (1 - 1e-9)
    assert is_faster == ("us without the failures, which is more" in commsim.out)
    assert is_faster or seed  # seed 0 is one of these
