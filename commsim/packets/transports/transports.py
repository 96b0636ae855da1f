"""The transports by name: what tells one from another; the constants of each are in ``control_constants.py``.

``NAME:key=value,...`` names a transport with constants, such as ``dcqcn:notify_delay=55us``.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from commsim.core.errors import InputError, unknown_name
from commsim.core.spec import is_own_file, read_arguments, split_spec
from commsim.packets import codes
from commsim.packets.links.queues import DCQCN_MARKS, DCQCN_PAUSE, DCQCN_RATE
from commsim.packets.transports.control_constants import (
    Constants,
    Dcqcn,
    Hpcc,
    NoConstants,
    Swift,
    Timely,
    check_constants,
)
from commsim.packets.transports.own_controls import CONTROLS, Own, own_control

_RED = (DCQCN_MARKS[0] / DCQCN_RATE, DCQCN_MARKS[1] / DCQCN_RATE, DCQCN_MARKS[2])
# Packets after which RoCE's NICs ask for an acknowledgement, beside the last one of a message: 2^8, Linux,
# drivers/infiniband/hw/mlx5/qp.c (MLX5_IB_ACK_REQ_FREQ), and L2_ACK_INTERVAL of the simulator of DCQCN's authors.
ROCE_ACKS = 256
# Bytes between two acknowledgements of Ultra Ethernet's controls, and of EQDS.
CREDIT_ACKS = 16384


@dataclass(frozen=True, slots=True)
class Transport:
    """What tells one transport from another, beside its kernel.

    Parameters
    ----------
    kind : int
        What lets a message send: ``NSCC``, ``RCCC`` for credit, ``WINDOW`` and so on.
    ack_every : int, bytes
        Bytes of data that one acknowledgement may answer.
    ack_packets : int
        Packets that one acknowledgement may answer, in place of bytes; 0 for bytes.
    marks_last : bool
        Whether the links to hosts mark, too.
    per_pull : int
        Packets of credit that a receiver gives at a time.
    share : float
        Share of its link that a receiver gives credit for.
    narrows : bool
        Whether a receiver's rate follows marks where the network is narrower than its hosts.
    constants : type
        Class of the constants that can be given.
    one_path : bool
        Whether a message must keep to one path.
    usual_path : bool
        Whether a message keeps to one path, and its switches have queues without end, unless options say otherwise.
    paces : bool
        Whether a message has a rate.
    has_window : bool
        Whether a window bounds what a message has under way.
    grows : bool
        Whether its window may grow above its first one, as far as the network lets it.
    notifies : bool
        Whether the receiver's NIC tells of marks by notifications.
    queues : str
        Name of the transport whose usual queues it has, in ``packets.links.queues``.
    like : Constants or None
        Constants of the transport that a user's function is like in all else.
    patched : bool
        Whether TIMELY is the patched one.
    red : (float, float, float), s, s, share
        Default queue over the link's rate at which marks begin and are certain, and their chance just below that.
    depth : float, s
        Default depth of a queue, over its rate; 0 for a round trip.
    """

    kind: int
    ack_every: int = 1
    ack_packets: int = 0
    marks_last: bool = True
    per_pull: int = 4
    share: float = 0.99
    narrows: bool = False
    constants: type[Constants] = NoConstants
    one_path: bool = False
    usual_path: bool = False
    paces: bool = False
    has_window: bool = True
    grows: bool = False
    notifies: bool = False
    queues: str = ""
    like: Constants | None = None
    patched: bool = False
    red: tuple[float, float, float] | None = None
    depth: float = 0.0


TRANSPORTS = {
    "nscc": Transport(codes.NSCC, ack_every=CREDIT_ACKS),
    "rccc": Transport(codes.RCCC, ack_every=CREDIT_ACKS, marks_last=False, narrows=True),
    "eqds": Transport(codes.RCCC, ack_every=CREDIT_ACKS, marks_last=False),
    "ndp": Transport(codes.RCCC, marks_last=False, per_pull=1, share=1.0),
    "dctcp": Transport(codes.DCTCP, usual_path=True, grows=True, queues="dctcp"),
    "swift": Transport(codes.SWIFT, constants=Swift, grows=True),
    "hpcc": Transport(codes.HPCC, constants=Hpcc, one_path=True, paces=True),
    "timely": Transport(codes.TIMELY, constants=Timely, paces=True, has_window=False),
    "patched_timely": Transport(codes.TIMELY, constants=Timely, paces=True, has_window=False, patched=True),
    "dcqcn": Transport(codes.DCQCN, ack_packets=ROCE_ACKS, constants=Dcqcn, usual_path=True, paces=True,
                       has_window=False, notifies=True, queues="dcqcn", red=_RED, depth=DCQCN_PAUSE / DCQCN_RATE),
    "window": Transport(codes.WINDOW, usual_path=True),
}  # fmt: skip
_OWN = Transport(codes.OWN, grows=True)


def transport_of(text: str) -> tuple[Transport, Constants]:
    """Read a transport's name and constants.

    Parameters
    ----------
    text : str
        ``NAME`` or ``NAME:key=value,...``, or ``FILE.py:function:key=value,...`` with a congestion control.

    Raises
    ------
    InputError
        If the name or a constant is unknown, or a constant is out of its range.
    """
    name, raw = ("", {}) if is_own_file(text) else split_spec(text)
    if name not in TRANSPORTS and (own := own_control(text)):
        return _own_transport(own), own
    if name not in TRANSPORTS:
        raise unknown_name("transport", name, (*TRANSPORTS, *CONTROLS))
    build = TRANSPORTS[name].constants
    if build is NoConstants and raw:
        raise InputError(f"{name} takes no constants, got {', '.join(raw)}")
    constants = build(**read_arguments(build, raw, name=name))
    check_constants(constants, name)
    return TRANSPORTS[name], constants


def _own_transport(own: Own) -> Transport:
    """Return what tells a user's control from another: what it says, and all else of the transport that it is like."""
    if own.like and split_spec(own.like)[0] not in TRANSPORTS:
        raise unknown_name("transport", split_spec(own.like)[0], TRANSPORTS)
    rules, constants = transport_of(own.like) if own.like else (_OWN, NoConstants())
    if rules.kind in (codes.RCCC, codes.WINDOW, codes.HPCC):
        raise InputError(f"{own.path}: like={own.like!r} has no window or rate that marks and acknowledgements set")
    paces = rules.paces or own.paces
    if own.sent and not paces:
        raise InputError(f"{own.path}: sent=True needs a control that sets a rate, by paces=True or by what it is like")
    has_window = rules.has_window and not own.paces
    return dataclasses.replace(rules, kind=codes.OWN, constants=Own, like=constants, paces=paces, has_window=has_window)
