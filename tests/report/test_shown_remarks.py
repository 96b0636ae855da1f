from hypothesis import given
from hypothesis import strategies as st

from commsim.core.remark import Remark, distinct
from commsim.report.answer import FAULT, MOST_SHOWN, _print_largest, largest

EFFECTS = st.none() | st.floats(-5, 5)
REMARKS = st.builds(Remark, st.sampled_from("ab"), st.text("xyz ;", max_size=250), EFFECTS, st.booleans(), st.text("d"))


@given(st.lists(REMARKS, max_size=20))
def test_shown_are_the_largest_of_one_per_cent_or_more_and_the_needed_ones(said):
    shown, said = largest(said), distinct(said)
    assert len(shown) == min(MOST_SHOWN, len([one for one in said if one.needed or abs(one.effect or 0) >= 0.01]))
    assert all(one.needed or abs(one.effect) >= 0.01 for one in shown)
    sizes = [float("inf") if one.effect is None else abs(one.effect) for one in shown]
    assert sizes == sorted(sizes, reverse=True)
    rest = [one for one in said if one.is_shown and one not in shown]
    assert all(one.size <= shown[-1].size for one in rest)


def test_a_remark_that_is_needed_is_shown_below_a_table_that_takes_all_lines(capsys):
    """A slow cable of the file was named in a pipe, and on a terminal only behind ``-v``."""
    _print_largest([Remark("pace", "other", 0.5), Remark(FAULT, "1 cable is slow", needed=True)], 3)
    assert capsys.readouterr().out == "# 1 cable is slow\n"
