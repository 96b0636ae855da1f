"""What Linux reads and writes in `recvmmsg` and `sendmmsg`, as NumPy records, and the two calls themselves."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import sys

import numpy as np

# struct mmsghdr of a 64-bit machine.
MESSAGE = np.dtype(
    [
        ("name", np.uint64),
        ("name_bytes", np.uint32),
        ("pieces", np.uint64),
        ("n_pieces", np.uint64),
        ("control", np.uint64),
        ("control_bytes", np.uint64),
        ("flags", np.uint64),  # 32 bits and padding
        ("n_bytes", np.uint32),  # written by the system
    ],
    align=True,
)
# struct iovec.
PIECE = np.dtype([("base", np.uint64), ("n_bytes", np.uint64)])
# struct sockaddr_in.
ADDRESS = np.dtype([("family", np.uint16), ("port", ">u2"), ("host", ">u4"), ("_", np.uint64)])
# struct cmsghdr with one number in it.
CONTROL = np.dtype([("n_bytes", np.uint64), ("level", np.int32), ("kind", np.int32), ("value", np.int32), ("_", "i4")])
UDP_SEGMENT, UDP_GRO = 103, 104  # socket options and control messages of level IPPROTO_UDP
SEGMENT_CONTROL_BYTES = 18  # of a CONTROL with a number of 16 bits
MSG_TRUNC = 0x20
# Errors of a device that does not cut messages into datagrams, or not into such large ones.
CANNOT_CUT = (errno.EIO, errno.EINVAL, errno.EMSGSIZE)


def available() -> bool:
    """Whether this is a system whose two calls take these records."""
    return sys.platform == "linux" and ctypes.sizeof(ctypes.c_void_p) == 8


class Calls:
    """`recvmmsg` and `sendmmsg` on one socket that never blocks."""

    def __init__(self, sock: socket.socket) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor, self._receive, self._send = sock.fileno(), libc.recvmmsg, libc.sendmmsg
        self._receive.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int, ctypes.c_void_p]
        self._send.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int]

    def receive(self, address: int, n_messages: int) -> int:
        """Receive into the MESSAGEs at `address`; return how many came, without waiting."""
        n = int(self._receive(self._descriptor, address, n_messages, MSG_TRUNC | socket.MSG_DONTWAIT, None))
        return max(n, 0)  # errors are those of what was sent before: no socket listens there

    def send(self, address: int, n_messages: int) -> tuple[int, int]:
        """Send the MESSAGEs at `address`; return how many were taken, and if that is 0 the error of the first.

        Raises
        ------
        OSError
            If a record is wrong, which is our mistake.
        """
        n = int(self._send(self._descriptor, address, n_messages, socket.MSG_DONTWAIT))
        error = ctypes.get_errno() if n < 0 else 0
        if error in (errno.EFAULT, errno.EBADF):
            raise OSError(error, os.strerror(error))
        return max(n, 0), error
