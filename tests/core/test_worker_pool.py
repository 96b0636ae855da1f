"""A process of a pool that is killed is one line, not a traceback."""

import os
import signal

import pytest

from commsim.core.errors import BackendError
from commsim.core.worker_pool import worker_pool


def test_a_process_that_is_ended_from_outside_is_named():
    with pytest.raises(BackendError, match="one of the processes was ended from outside"), worker_pool(1) as pool:
        pool.submit(os.kill, pool.submit(os.getpid).result(), signal.SIGKILL).result()


def test_other_errors_of_the_work_pass_through():
    with pytest.raises(ZeroDivisionError), worker_pool(1) as pool:
        pool.submit(divmod, 1, 0).result()


LEAVING = """
import os, sys

class Leaving:
    def __del__(self, write=os.open, path={path!r}, flags=os.O_CREAT):
        write(path, flags)

sys.leaving = Leaving()
"""


def test_a_process_takes_nothing_apart_when_it_ends(tmp_path):
    path = tmp_path / "taken_apart"
    with worker_pool(1) as pool:
        pool.submit(exec, LEAVING.format(path=str(path))).result()
    assert not path.exists()
