"""Files that the warm-up of placement reads."""

from __future__ import annotations

from pathlib import Path

FILES = {
    "cluster.toml": """
topology = { name = "leaf_spine", n_leaves = 4, n_spines = 2, hosts_per_leaf = 4, bandwidth = "50Gbps" }
hosts = { gpus = 4 }
""",
    "jobs.json": """[
{"job": "a", "gpus": 12, "iter_time_ms": 340, "phases": [{"offset_ms": 170, "dur_ms": 170, "rate_Gbps": 40}]},
{"job": "b", "gpus": 12, "iter_time_ms": 340, "phases": [{"offset_ms": 170, "dur_ms": 170, "rate_Gbps": 40}]},
{"job": "c", "gpus": 10, "iter_time_ms": 170, "phases": [{"offset_ms": 110, "dur_ms": 60, "rate_Gbps": 10}]},
{"job": "d", "gpus": 8, "iter_time_ms": 200, "phases": [{"offset_ms": 120, "dur_ms": 80, "rate_Gbps": 25}]},
{"job": "e", "gpus": 2, "iter_time_ms": 40, "phases": [{"offset_ms": 30, "dur_ms": 10, "rate_Gbps": 50}],
 "placement": ["h3", "h7"]}]""",
    "placed.json": """[
{"job": "a", "gpus": 2, "iter_time_ms": 200, "phases": [{"offset_ms": 100, "dur_ms": 100, "rate_Gbps": 40}],
 "placement": ["h0", "h4"]},
{"job": "b", "gpus": 2, "iter_time_ms": 300, "phases": [{"offset_ms": 100, "dur_ms": 200, "rate_Gbps": 40}],
 "placement": ["h1", "h5"]}]""",
}


def write_files(folder: str) -> None:
    """Write them into a folder."""
    for name, text in FILES.items():
        (Path(folder) / name).write_text(text, encoding="utf-8")


def rank_beside_known_jobs(_folder: str) -> None:
    """Rank for one job as the service does: no command calls its kernels."""
    from commsim.placement.service.beside.ranking_beside import warm_up_ranking

    warm_up_ranking()
