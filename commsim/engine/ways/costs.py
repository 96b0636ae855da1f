"""What the parts of each way take, in processor seconds per unit.

Measured by ``python -m benchmarks.scale.costs`` on one core of an AMD EPYC, with loaded kernels; only their ratios
matter for the choice. Where works differ, it is near the least for the event engine and near the most for the others,
so that a choice is wrong to the side of the event engine.
"""

from __future__ import annotations

# Beginning a way at all: some hundred calls of NumPy.
RINGS_BEGIN = 0.8e-3
MOVES_BEGIN = 1.5e-3
SIMULTANEOUS_BEGIN = 1e-3
SYMMETRIC_BEGIN = 5e-3
STREAMED_BEGIN = 1.5e-3
BOTTLENECKS_BEGIN = 6e-3
EVENTS_BEGIN = 2.5e-3

# Finding a route and the links of a connection, which most ways do.
ROUTE = 2e-6

# Event engine: a transfer, from listing it to its last event; a connection's tables.
EVENTS_TRANSFER = 1.2e-6
EVENTS_CONNECTION = 1.5e-6
# Of a transfer, times the square of the links of its route, since what changes on one is felt along others: 2e-9 to
# 1e-8 were measured on tori with routes of 36 to 780 links.
EVENTS_LONG = 7e-9

# Rings: a row of the schedule's blocks, and a hop of them, that are examined; a connection of a phase; a pair of
# phases, and a pair of their connections that meet at a participant; a message.
PHASE_ROW = 0.5e-6
PHASE_HOP = 0.1e-3
RING_CONNECTION = 10e-6
PHASE_PAIR = 0.3e-3
MEETING = 0.4e-6
RING_MESSAGE = 0.5e-9

# Streamed: a connection of a phase; a message; and one of a connection with slots, none of which goes without events.
STREAMED_CONNECTION = 18e-6
STREAMED_MESSAGE = 0.1e-6
STREAMED_SLOT = 1e-6

# Recurrence, transfer by transfer: until it is known that transfers of a hop share links unevenly, and in all.
MOVE_DECLINED = 0.15e-6
MOVE = 0.6e-6

# Simultaneous: unrolling a transfer until it is known that one waits for another, and in all.
UNROLL = 40e-9
SIMULTANEOUS_FLOW = 0.8e-6

# Symmetry: a transfer of the pattern until it is known that most are different, and in all.
CLASS_DECLINED = 2e-6
CLASS = 9e-6

# Bottlenecks: a connection until it is known that links are not shared whole; a pair of links; a transfer. Routes and
# tables are those of the event engine, which goes on with them. The transfer is one whose sharing takes nothing, as the
# event engine's is: what sharing takes beside that is less than there.
BOTTLENECKS_DECLINED = 0.1e-6
BOTTLENECK_PAIR = 2e-9
BOTTLENECKS_TRANSFER = 1e-6
# Connections that may be busy at once, per link, from which on it takes less than the event engine.
LEAST_SHARING = 5

# Transfers that the event engine takes; and bytes that it keeps for each and for each connection, at the least:
# 194 and 1,080 to 1,280 were measured with routes of two to four links.
MAX_TRANSFERS = 2**26
TRANSFER_BYTES, CONNECTION_BYTES = 190, 1000
# Transfers that others take: the recurrence, which has a row of 40 bytes for each; symmetry, of its pattern; streamed
# rings, which take some minutes for them, or an hour where most connections share links.
MAX_MOVES, MAX_PATTERN, MAX_STREAMED = 2**23, 2**22, 2**32
# Transfers up to which what several ways begin with is kept.
MAX_SHARED = 2**20
# Part of the event engine's time that ways may take that turn out not to apply, all together; and seconds beside that,
# which nobody notices.
RISK, UNNOTICED = 0.12, 1e-3
