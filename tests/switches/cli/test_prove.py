import pytest

SMALL = ("--slots", 1, "--chunks", 2, "--workers", 2)


@pytest.mark.slow
def test_a_proof_says_how_many_states_and_what_holds(commsim):
    tree = commsim.results("switch", "prove", *SMALL)
    (row,) = tree["results"]
    assert (row["states"], row["broken"], row["whole"], tree["trace"]) == (10, None, True, [])
    assert set(row["verdicts"].values()) == {"holds"}
    assert "completion can be reached from every state    holds" in commsim.out


@pytest.mark.slow
def test_what_is_broken_is_shown_as_a_sequence_diagram_and_exits_with_1(commsim):
    shown = commsim("switch", "prove", *SMALL, "--reorder", 1)
    assert shown.code == 1
    assert "  5  o------------->  chunk 0 again: added" in shown.out
    assert "broken: w0 takes a sum that does not hold each contribution once" in shown.out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ("--system", "switchmll"),
            "unknown protocol 'switchmll'; did you mean switchml? known: switchml, switchml_live, omnireduce, atp",
        ),
        (("--workers", 9), "a proof takes 1 to 4 workers, got 9"),
        (("--slots", 3, "--chunks", 2), "each slot needs a chunk, got 3 slots and 2 chunks"),
        (("--reorder", "late"), "reorder is any or 0 to 8 rounds, got 'late'"),
        (("--recovery", "perhaps"), "recovery is none or epoch, got 'perhaps'"),
        (("--bug", "perhaps"), "unknown bug 'perhaps'; known: seen_not_set"),
        (("--system", "atp", "--recovery", "epoch"), "atp is explored with packets in any order"),
        (("--restarts", 4), "a proof takes 0 to 3 restarts, got 4"),
        (("--max-states", 0), "--max-states is 1 to"),
        (("--slots", 4, "--chunks", 8, "--restarts", 1, "--reorder", 1), "too many for a proof"),
    ],
)
def test_what_makes_no_sense_is_refused_on_one_line(commsim, flags, message):
    assert message in commsim.refuses("switch", "prove", *flags)
