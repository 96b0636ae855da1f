"""``commsim place``: rank placements of jobs, score links, and speak to schedulers."""

from __future__ import annotations

from commsim.cli.flags import Verb

from . import candidates, export, import_, job_moves, order, serve

COMMANDS = {
    "place rank": Verb(
        candidates.PlaceRankConfig,
        candidates.run,
        "rank placements of jobs on a cluster by link contention (`commsim place CLUSTER JOBS` is the same)",
        is_usual=True,
    ),
    "place moves": Verb(
        job_moves.PlaceMovesConfig,
        job_moves.run,
        "rank moves of one running job to other hosts by what it and the others gain",
    ),
    "place score": Verb(
        candidates.ScoreConfig, candidates.score, "score how well jobs share one link, and print when each should start"
    ),
    "place order": Verb(
        order.PlaceOrderConfig,
        order.run,
        "order the ranks of a job so that its rings and trees cross between racks as rarely as possible",
    ),
    "place serve": Verb(serve.PlaceServeConfig, serve.run, "answer schedulers over HTTP, until Ctrl-C or SIGTERM"),
    "place import": Verb(import_.PlaceImportConfig, import_.run, "make a network or a cluster from other tools' files"),
    "place export": Verb(
        export.PlaceExportConfig, export.run, "write a cluster's network in files that schedulers read"
    ),
}
