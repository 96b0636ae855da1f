import sys

import pytest

from benchmarks.attacks.kill_commands import end_in_turn

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.mark.slow
def test_what_is_interrupted_terminated_or_killed_leaves_nothing():
    ended = end_in_turn(6, 1, ["run", "place serve"], answering=True)
    assert {one.signal for one in ended} == {"SIGINT", "SIGTERM", "SIGKILL"}
    assert not [one for one in ended if one.wrong]
