"""What packets, links, timers, transports and balancings are, as numbers that kernels compare."""

from __future__ import annotations

# why the kernel returns
DONE, FULL, STUCK, CHANGE, TOO_LATE = range(5)

# what a packet is: from CONTRIBUTION on, of a job that switches aggregate
DATA, TRIMMED, ACK, NACK, PULL, REQUEST, CNP, CONTRIBUTION, RESULT = range(9)

# what takes a packet at the end of its stream
TO_AGGREGATOR, TO_WORKER, TO_SERVER, TO_UNIT = range(4)

# flags of all packets: marked, sent again, the first one of its message
MARKED, RESENT, FIRST = 2, 4, 16
# of flows only: trimmed at the link to its host, keeps to a path, the last one of its message, asks for an answer
LAST_HOP, ON_PATH, LAST, ACK_NOW = 1, 8, 32, 64
# of jobs that switches aggregate only: may be marked, found its slot taken, a reply to one worker, has no values
ECN_CAPABLE, COLLIDED, REPLY, EMPTY = 1, 8, 32, 128
# Flags are taken away with `& (ALL_FLAGS ^ flag)`: without the JIT, `~flag` is negative, which is no uint8.
ALL_FLAGS = 255

# what happens to a packet that is recorded: it leaves its maker, comes to its end, is trimmed, or ends on the way
AT_MAKER, AT_END, AT_TRIMMING, AT_DROP, AT_LOSS = 1, 2, 4, 8, 16

VERSION = 1 << 30  # of a slot: which of its two versions

# Links that do not end the queues of transports and mark nothing, of switches to switches, and of switches to hosts.
NO_MARKS, BETWEEN, AT_HOST = range(3)

# state of a packet of a message at its sender; the bits above count how often it was sent again
UNSENT, IN_FLIGHT, TO_RESEND, ACKNOWLEDGED = range(4)
SENDER_BITS, RECEIVED, ONE_MORE, MOST_RESENT = 3, 4, 8, 248

# what lets a message send: windows that adapt, credit of the receiver, a window that does not, rates that adapt, and
# a window that a user's function sets
NSCC, RCCC, WINDOW, DCTCP, SWIFT, HPCC, TIMELY, DCQCN, OWN = range(9)

# how a sender chooses the entropy of a packet, and a switch the link; or that all packets of a flow keep to one path
ECMP, OBLIVIOUS, BITMAP, REPS, MIXED, ADAPTIVE, FLOWLET, PATH = range(8)

# timers of a flow, and their bits in `pending`
GO, TIMEOUT, ADDED = range(3)
