"""The end of processes whose emulation was killed: a program that only computes would never hear of it."""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Callable

__all__ = ["end_with_parent"]


def end_with_parent(file: int) -> Callable[[], None]:
    """End this process when the other end of its connection to the emulation is closed, whatever it computes then.

    Parameters
    ----------
    file : int
        Descriptor of the connection. The kernel closes the other end of one that is killed; its process number may be
        gone before this process could ask for it, or be that of a shell between the two.

    Returns
    -------
    callable
        Function without parameters after which the process goes on without a connection.
    """
    is_over, end = threading.Event(), socket.socket(fileno=os.dup(file))
    os.register_at_fork(after_in_child=end.close)
    threading.Thread(target=_watch, args=(end, is_over), name="parent watch", daemon=True).start()
    return is_over.set


def _watch(end: socket.socket, is_over: threading.Event) -> None:
    poll = select.poll()
    poll.register(end, 0)  # only that it hangs up
    poll.poll()
    if not is_over.is_set():
        os._exit(1)
