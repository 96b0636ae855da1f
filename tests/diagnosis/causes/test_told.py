"""What is said of ranked causes: at most three are named at once, with what to measure next."""

import numpy as np

from commsim.diagnosis.causes.explain import RankedCause
from commsim.diagnosis.causes.labels import CAUSES, HEALTHY
from commsim.diagnosis.causes.told import MEASURE_NEXT, json_of, told

SIZES = np.array([2.0**20, 2.0**30])


def ranked(*likelihoods, times=()):
    labels = [label for label in CAUSES if label != HEALTHY]
    return [
        RankedCause(label, likelihood, label, 0.1, SIZES, np.array(times[i] if i < len(times) else [1e-3, 1.0]))
        for i, (label, likelihood) in enumerate(zip(labels, likelihoods, strict=False))
    ]


def test_a_first_cause_is_named_with_the_next_two():
    first, then = told(ranked(0.7, 0.2, 0.06, 0.04))
    assert first.startswith(
        "half_or_fewer_nics_used: 2.33 times as likely as all others together; predicted within 10%"
    )
    assert then == "then: nic_rate_degraded (20%); gpudirect_rdma_off (6%)"


def test_a_first_cause_that_is_no_more_likely_than_not_is_beside_the_next():
    assert (
        "half_or_fewer_nics_used: 4 times as likely as the next; " in told(ranked(0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1))[0]
    )


def test_of_many_that_nothing_distinguishes_three_are_named_and_all_are_in_the_json():
    causes = ranked(0.2, 0.16, 0.15, 0.14, 0.13, 0.12, 0.1)
    lines = told(causes)
    assert lines[0].startswith("nothing distinguishes: half_or_fewer_nics_used (20%), ")
    assert lines[0].endswith("gpudirect_rdma_off (15%), and 4 less likely")
    assert [line for line in lines if line.startswith("check: ")] == [
        f"check: {CAUSES[one.label].check}" for one in causes[:3]
    ]
    assert len(json_of(causes)) == 7


def test_the_size_at_which_the_first_two_differ_is_measured_next():
    apart = ranked(0.5, 0.4, times=[[1e-3, 1.0], [1e-3, 1.3]])
    assert told(apart)[1] == "measure next: 1 GiB again: 1 s (first) or 1.3 s (second)"
    assert not any("measure next" in line for line in told(ranked(0.5, 0.4, times=[[1e-3, 1.0], [1e-3, 1.1]])))


def test_one_number_names_three_that_are_able_to_give_it():
    lines = told(ranked(0.4, 0.3, 0.2, 0.07, 0.03), n_sizes=1)
    assert lines[0].startswith("able to give this: ")
    assert lines[0].endswith("gpudirect_rdma_off (20%), and 2 less likely")
    assert lines[1] == MEASURE_NEXT
