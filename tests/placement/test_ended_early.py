"""A search that did not try everything says what it tried, and how to search longer."""

import numpy as np

from commsim.core.remark import Remark
from commsim.placement.cluster import Cluster
from commsim.placement.place import place_jobs, rank_placements
from commsim.placement.scores import ScoreSettings
from commsim.placement.strategies import TRIES
from commsim.training.sharing.periodic import GBPS, JobPhase, PeriodicJob
from topologies.leaf_spine import leaf_spine

NETWORK = leaf_spine(2, 1, 6, bandwidth=50 * GBPS)
CLUSTER = Cluster(NETWORK, np.where(NETWORK.kind == 0, 1, 0))


def jobs(n: int, *, is_placed: bool) -> tuple[PeriodicJob, ...]:
    """Jobs of one host in each rack, which want the racks' links together for longer than there is time."""
    return tuple(
        PeriodicJob(f"j{i}", 2, 0.1 * (i + 1), (JobPhase(0.0, 0.03 * (i + 1), 40 * GBPS),),
                    (f"h{i}", f"h{6 + i}") if is_placed else None)
        for i in range(n)
    )  # fmt: skip


def early(notes: tuple[Remark, ...]) -> list[Remark]:
    return [note for note in notes if note.code == "search-ended"]


def test_descents_are_told_and_the_flags_that_try_all_do() -> None:
    placed = {"own": jobs(4, is_placed=True)}
    (said,) = early(rank_placements(CLUSTER, placed).remarks)
    assert "start times of 1 set of up to 4 jobs" in said.text
    assert "draws" not in str(said)  # placements of one's own are not searched
    assert not early(rank_placements(CLUSTER, placed, settings=ScoreSettings(step=0.1)).remarks)


def test_nothing_is_said_where_all_rotations_were_tried_or_cannot_help() -> None:
    assert not early(rank_placements(CLUSTER, {"own": jobs(2, is_placed=True)}).remarks)


def test_fewer_placements_than_asked_for_are_told_with_the_draws() -> None:
    one = (PeriodicJob("all", 12, 0.1, (JobPhase(0.0, 0.05, 40 * GBPS),)),)
    ranking = place_jobs(CLUSTER, one, n=3, generators=("packed",))
    (said,) = early(ranking.remarks)
    assert f"{len(ranking.candidates)} different placement of 3 found" in said.text
    assert f"{3 * TRIES} draws of each generator" in said.details
    assert "--candidates" in said.text
