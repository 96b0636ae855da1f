"""``commsim place``: rank placements of jobs, score links, and speak to schedulers."""

from __future__ import annotations

from commsim.cli.flags import Verb

from . import export, import_, job_moves, order, rank_and_score, serve

EXAMPLES = {
    "place": """
        commsim place examples/cluster.toml examples/jobs.json --check
        commsim place rank examples/cluster.toml examples/jobs.json --candidates 4
        commsim place moves examples/cluster.toml examples/jobs.json
        commsim place score --capacity 50Gbps examples/jobs.json
        commsim place order h0,h2,h1,h3 --topology leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2
        commsim place export examples/cluster.toml --to slurm-conf -o topology.conf
        commsim place import topology.conf --from slurm-conf --tier-bandwidth 1=100Gbps,2=2:1 -o cluster.toml
        commsim place serve --cluster examples/cluster.toml --port 8080 & sleep 8; curl -s \
            http://127.0.0.1:8080/jobs; kill %1""",
}

COMMANDS = {
    "place rank": Verb(
        rank_and_score.PlaceRankConfig,
        rank_and_score.run,
        "rank placements of jobs on a cluster by link contention (`commsim place CLUSTER JOBS` is the same)",
        is_usual=True,
    ),
    "place moves": Verb(
        job_moves.PlaceMovesConfig,
        job_moves.run,
        "rank moves of one running job to other hosts by the gain of this job and of the others",
    ),
    "place score": Verb(
        rank_and_score.ScoreConfig,
        rank_and_score.score,
        "score how well jobs share one link, and print when each should start",
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
