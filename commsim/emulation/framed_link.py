"""Values, one behind the other, on a socket: what ranks, and a rank and the coordinator, say to each other."""

from __future__ import annotations

import os
import pickle
import struct
from typing import Any

# The lengths before a value, in bytes: of what is pickled, and of the block behind it.
LENGTHS = struct.Struct("<QQ")
# Bytes that are read at once; what does not fit has memory of its own.
AT_ONCE = 1 << 16
__all__ = ["FramedLink", "frame_of"]


def frame_of(value: Any, n_block: int = 0) -> bytes:
    """Return what is written for a value, before a block of so many bytes."""
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return LENGTHS.pack(len(data), n_block) + data


class FramedLink:
    """One end of a connection.

    Parameters
    ----------
    file : int
        Descriptor of the socket, which stays open as long as this.
    """

    def __init__(self, file: int) -> None:
        self.file = file
        self._came = memoryview(bytearray(AT_ONCE))
        self._begin, self._end = 0, 0  # what has come and was not returned
        self._long = memoryview(b"")  # what does not fit, with what has come of it
        self._n_long = 0

    def send(self, value: Any) -> None:
        """Send a value, and wait until all of it is written.

        Raises
        ------
        ConnectionError
            If the other end is gone.
        """
        rest = memoryview(frame_of(value))
        while rest:  # parts of it are not copied
            rest = rest[os.write(self.file, rest) :]

    def receive(self) -> Any:
        """Return the next value; raises as :meth:`receive_both`."""
        return self.receive_both()[0]

    def receive_both(self) -> tuple[Any, bytes | memoryview]:
        """Return the next value, and the block that goes with it.

        Raises
        ------
        EOFError
            If the other end is gone.
        BlockingIOError
            If the socket has a time limit, and nothing came; what has come is kept.
        """
        while True:
            if self._long:
                while self._n_long < len(self._long):
                    self._n_long += self._read(self._long[self._n_long :])
                whole, self._long = self._long, memoryview(b"")
                end = LENGTHS.size + LENGTHS.unpack_from(whole)[0]
                return pickle.loads(whole[LENGTHS.size : end]), whole[end:]
            begin, size = self._begin, 0
            if self._end - begin >= LENGTHS.size:
                n_value, n_block = LENGTHS.unpack_from(self._came, begin)
                middle = begin + LENGTHS.size + n_value
                size = LENGTHS.size + n_value + n_block
                if begin + size <= self._end:
                    self._begin = middle + n_block
                    value = pickle.loads(self._came[begin + LENGTHS.size : middle])
                    return value, bytes(self._came[middle : middle + n_block]) if n_block else b""  # its room is reused
            self._more(size)

    def has_more(self) -> bool:
        """Whether another value has been read."""
        here = self._end - self._begin
        return here >= LENGTHS.size and LENGTHS.size + sum(LENGTHS.unpack_from(self._came, self._begin)) <= here

    def _more(self, size: int) -> None:
        """Read what has come of the next value."""
        begin, end, came = self._begin, self._end, self._came
        if size > AT_ONCE:
            self._long = memoryview(bytearray(size))
            self._long[: end - begin] = came[begin:end]
            self._n_long, self._begin, self._end = end - begin, 0, 0
            return
        if begin:
            if end > begin:
                came[: end - begin] = came[begin:end]
            self._begin, self._end = 0, end - begin
        self._end += self._read(came[self._end :] if self._end else came)

    def _read(self, room: memoryview) -> int:
        n_bytes = os.readv(self.file, (room,))
        if not n_bytes:
            raise EOFError
        return n_bytes
