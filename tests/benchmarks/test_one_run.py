"""Jobs that share a network in both engines, and what the gap is put down to."""

import pytest

from benchmarks.accuracy.one_run import COLUMNS, main, measure


@pytest.mark.slow
def test_a_small_window_closes_the_gap_of_switchml_beside_a_ring():
    slots, ring = measure("switchml_beside_ring", 4, "switchml", 2)
    few, _ = measure("switchml_beside_ring", 4, "switchml:window=32", 2)
    assert slots.exact is True
    assert few.exact is True
    assert ring.exact is None
    assert slots.gap < -0.35  # 512 packets of each worker are most of a queue,
    assert abs(few.gap) < 0.2  # 32 (36 kB) are about what DCTCP begins with (41 kB)
    assert abs(ring.gap) < 0.15
    assert len(slots.row()) == len(COLUMNS)


def test_without_timeouts_the_second_switchml_job_takes_what_flows_say():
    first, second = measure("two_switchml_priorities", 1, "switchml", 1)
    _, patient = measure("two_switchml_priorities", 1, "switchml:rto=0.01", 1)
    assert first.sent_again == 0
    assert second.sent_again > 0
    assert second.gap > 0.1
    assert patient.sent_again == 0
    assert abs(first.gap) < 0.01
    assert abs(patient.gap) < 0.01


def test_atps_gap_is_packets_that_are_sent_again():
    soon, late = (measure("atp_beside_dctcp", 4, name, 2)[0] for name in ("atp", "atp:rto=0.01"))
    assert soon.sent_again > 0
    assert late.sent_again == 0
    assert abs(late.gap) < 0.1  # flows have the window of 100 packets, too
    assert soon.gap > 0.3


def test_the_command_refuses_no_seeds(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--seeds", "0"])
    assert stop.value.code == 2
    assert "--seeds must be at least 1, got 0" in capsys.readouterr().err
