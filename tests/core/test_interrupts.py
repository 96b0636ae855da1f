import signal
import threading

import pytest

from commsim.core.interrupts import signals_held


@pytest.fixture(autouse=True)
def _ctrl_c():
    """Raise at Ctrl-C as in a terminal; a program that was started in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_comes_when_the_work_is_done():
    steps = []
    with pytest.raises(KeyboardInterrupt), signals_held():
        signal.raise_signal(signal.SIGINT)
        steps.append("done")
    assert steps == ["done"]
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_without_an_interrupt_nothing_changes():
    before = signal.getsignal(signal.SIGINT)
    with signals_held():
        pass
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_handle_no_signals_and_leave_them_alone():
    before, found = signal.getsignal(signal.SIGINT), []

    def work():
        with signals_held():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [before]
