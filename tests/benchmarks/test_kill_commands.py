import sys

import pytest

from benchmarks.attacks.kill_commands import end_in_turn, python_starts

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.mark.slow
def test_what_is_interrupted_terminated_or_killed_leaves_nothing():
    ended = end_in_turn(6, 1, ["run", "place serve"], answering=True)
    assert {one.signal for one in ended} == {"SIGINT", "SIGTERM", "SIGKILL"}
    assert not [one for one in ended if one.wrong]


def test_only_ctrl_c_in_pythons_own_start_is_nobodys():
    start = 'Traceback (most recent call last):\n  File "<frozen runpy>", line 112, in _get_module_details\n'
    ours = '  File "/a/commsim/__main__.py", line 3, in <module>\n'
    assert python_starts(f"{start}KeyboardInterrupt\n")
    assert not python_starts(f"{start}{ours}KeyboardInterrupt\n")
    assert not python_starts(f"{start}ImportError: no such module\n")
