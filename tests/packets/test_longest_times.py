"""Times beyond an int64 of picoseconds are refused: they ended in tracebacks, or in runs without end."""

import pytest

from commsim.cli import main

SLOW = "star:n_hosts=4,bandwidth=1e-3bps"
FAR = "star:n_hosts=4,latency=1e6s"
SIZE = "-b 4K -e 4K"


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (f"run ring_all_reduce --engine packet --topology {SLOW} {SIZE}", "here it takes 6.82e+07 s"),
        (f"run switchml --engine packet --topology {SLOW} {SIZE}", "bytes in all take 1.42e+08 s"),
        ("switch simulate --workers 2 --size 4KiB --bandwidth 1e-3bps --tensors 8", "bytes in all take 5.69e+08 s"),
        ("switch simulate --workers 2 --size 4KiB --bandwidth 1e-3bps --engine recurrence", "bytes in all take"),
        (
            "run ring_all_reduce --engine packet --topology star:n_hosts=4,bandwidth=1bps -b 1M -e 1M",
            "bytes in all take",
        ),
        (f"traffic --pattern permutation --size 4MiB --topology {FAR}", "here it takes 4e+06 s"),
        # Times wrapped around, and timers went on for ever.
        (
            f"run ring_all_reduce --engine packet --topology star:n_hosts=16,latency=2e5s {SIZE}",
            "not all arrived by then",
        ),
        (f"run switchml --engine packet --topology {FAR} -b 4M -e 4M", "up to 53 days"),
    ],
)
def test_what_takes_longer_than_can_be_counted_is_refused(line, wanted, capsys):
    assert main(line.split()) == 2
    said = capsys.readouterr().err
    assert "packets are simulated" in said
    assert wanted in said


def test_slow_links_within_the_range_are_simulated(capsys):
    slow = "run ring_all_reduce --engine packet --topology star:n_hosts=4,bandwidth=1bps --overhead 0us"
    assert main(f"{slow} {SIZE}".split()) == 0
    assert "109616000006.00" in capsys.readouterr().out
