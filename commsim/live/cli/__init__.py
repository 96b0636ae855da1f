"""``commsim switch serve``, ``all-reduce`` and ``status``: a switch that real workers talk to."""

from __future__ import annotations

from commsim.cli.flags import Verb

from . import all_reduce, serve, status

COMMANDS = {
    "switch serve": Verb(serve.SwitchServeConfig, serve.run, "serve real workers over UDP, as a switch"),
    "switch all-reduce": Verb(
        all_reduce.SwitchAllReduceConfig, all_reduce.run, "sum tensors as a worker of a running switch"
    ),
    "switch status": Verb(status.SwitchStatusConfig, status.run, "print jobs, slots and counters of a running switch"),
}
