"""What the packets of invented runs, whose course is known, are said to mean."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from packet_story import GAP, ROUND, event, every_protocol, slow_counts, story

from switch_model.packets import packet_event as p
from switch_model.packets.pcap_reader import read_pcap
from switch_model.packets.pcap_writer import write_pcap
from switch_model.packets.reconstruct import MAX_JOBS, reconstruct


def one(events, tmp_path):
    """Through a file, so that only what is on the wire is known."""
    write_pcap(tmp_path / "x.pcap", events)
    (report,) = reconstruct(read_pcap(tmp_path / "x.pcap").events).jobs
    return report


@every_protocol
def test_a_run_without_incident(tmp_path, protocol, per):
    events = story(protocol, per=per)
    report = one(events, tmp_path)
    assert (report.protocol, report.job, report.n_workers, report.switch) == (p.PROTOCOLS[protocol], 3, 4, "10.0.3.233")
    assert (report.contributions, report.results) == (48, 48)
    assert report.chunks == report.chunks_completed == report.chunks_delivered == 12
    assert report.retransmissions == report.duplicate_results == report.wrong_results == 0
    assert not report.slots
    assert not report.wrong
    time = (12 // per - 1) * ROUND + 20 * GAP
    assert report.time_s == pytest.approx(time / 1e12, rel=1e-6)
    assert report.elements == 12 * events["elements"][0]
    assert report.elements_per_s == pytest.approx(report.elements / report.time_s)


@every_protocol
def test_a_run_starts_with_its_first_contribution(tmp_path, protocol, per):
    events = story(protocol, per=per)
    events["time_ps"] += 3 * ROUND
    assert one(events, tmp_path).start_s == pytest.approx(3 * ROUND / 1e12)
    assert one(events[events["kind"] == p.RESULT], tmp_path).start_s == 0.0


@every_protocol
def test_the_last_worker_of_each_chunk_is_named_and_by_how_much(tmp_path, protocol, per):
    report = one(story(protocol, per=per, n_chunks=8 * per, late={0: 1, 1: 1, 5: 1, 7: 2}), tmp_path)
    assert [w["times_last"] for w in report.workers] == [0, 3 * per, per, 4 * per]
    assert [w["max_late_s"] for w in report.workers] == pytest.approx([0, 6e-6, 6e-6, 1e-6])
    assert [w["mean_late_s"] for w in report.workers] == pytest.approx([0, 6e-6, 6e-6, 1e-6])


@every_protocol
def test_workers_that_come_at_the_same_time_are_not_late(tmp_path, protocol, per):
    events = story(protocol, per=per)
    up = events["kind"] == p.CONTRIBUTION
    events["time_ps"][up] = events["chunk"][up] // per * ROUND
    assert [w["times_last"] for w in one(events, tmp_path).workers] == [0, 0, 0, 0]


@every_protocol
def test_repetitions_are_counted_by_slot_and_worker(tmp_path, protocol, per):
    report = one(story(protocol, per=per, repeated={(0, 1), (1, 2), (8, 2), (4, 2)}), tmp_path)
    assert report.retransmissions == 4
    assert report.slots == ({"slot": 0, "retransmissions": 3}, {"slot": 1, "retransmissions": 1})
    assert [w["retransmissions"] for w in report.workers] == [0, 1, 3, 0]
    assert report.chunks == report.chunks_delivered == 12


@every_protocol
def test_results_that_come_twice_are_duplicates(tmp_path, protocol, per):
    report = one(story(protocol, per=per, again={(0, 1), (7, 2)}), tmp_path)
    assert (report.duplicate_results, report.chunks_delivered, report.wrong_results) == (2, 12, 0)


@every_protocol
def test_results_before_all_have_contributed_are_wrong(tmp_path, protocol, per):
    report = one(story(protocol, per=per, n_workers=2, too_early={4}), tmp_path)
    assert (report.wrong_results, report.chunks, report.chunks_completed) == (2, 12, 12)
    assert [(x["chunk"], x["slot"], x["contributed"]) for x in report.wrong] == [(4, 0, 1)] * 2


def test_a_worker_that_never_contributes_makes_results_wrong_where_packets_say_how_many_there_are(tmp_path):
    events = story(p.ATP)
    report = one(events[(events["worker"] != 3) | (events["kind"] == p.RESULT)], tmp_path)
    assert (report.n_workers, report.wrong_results) == (4, 48)


def test_a_chunk_without_result_is_not_completed(tmp_path):
    events = story(p.SWITCHML_UDP)
    report = one(events[(events["chunk"] != 5) | (events["kind"] == p.CONTRIBUTION)], tmp_path)
    assert (report.chunks, report.chunks_completed, report.chunks_delivered) == (12, 11, 11)
    events = events[(events["chunk"] != 5) | (events["kind"] == p.CONTRIBUTION) | (events["worker"] != 2)]
    report = one(events, tmp_path)
    assert (report.chunks, report.chunks_completed, report.chunks_delivered) == (12, 12, 11)
    events = events[(events["chunk"] != 5) | (events["kind"] == p.CONTRIBUTION) | (events["worker"] == 1)]
    report = one(events, tmp_path)  # one worker alone has the result
    assert (report.chunks, report.chunks_completed, report.chunks_delivered) == (12, 12, 11)


def test_partial_sums_of_atp_count_for_those_whose_values_they_hold(tmp_path):
    events = story(p.ATP, n_workers=4, n_chunks=1)
    partial = events[events["worker"] == 1][:1].copy()
    partial["workers"], partial["time_ps"] = 0b0110, 19 * GAP
    alone = (events["worker"] != 1) & (events["worker"] != 2) | (events["kind"] == p.RESULT)
    report = one(np.concatenate([events[alone], partial]), tmp_path)
    assert (report.wrong_results, report.retransmissions, report.chunks_delivered) == (0, 0, 1)
    partial["workers"] = 0b0010
    assert one(np.concatenate([events[alone], partial]), tmp_path).wrong_results == 4


def test_numbers_that_atp_uses_again_for_the_next_tensor_are_other_rounds(tmp_path):
    first = story(p.ATP, n_chunks=5, repeated={(2, 1)})
    second = story(p.ATP, n_chunks=5)
    second["time_ps"] += 10 * ROUND
    report = one(np.concatenate([first, second]), tmp_path)
    assert (report.chunks, report.chunks_delivered, report.wrong_results) == (10, 10, 0)
    assert (report.retransmissions, report.duplicate_results) == (1, 0)


def test_a_worker_whose_first_packet_was_lost_still_belongs_to_the_round(tmp_path):
    parts = [story(p.ATP, n_chunks=5, repeated={(2, 1)} if i == 1 else ()) for i in range(3)]
    for i, part in enumerate(parts):
        part["time_ps"] += i * 10 * ROUND
    lost = (parts[1]["chunk"] == 2) & (parts[1]["worker"] == 1) & (parts[1]["flags"] == 0)
    parts[1] = parts[1][~lost | (parts[1]["kind"] == p.RESULT)]
    report = one(np.concatenate(parts), tmp_path)
    assert (report.chunks, report.chunks_delivered, report.wrong_results) == (15, 15, 0)
    assert report.retransmissions == 1


def test_a_buffer_that_is_used_again_is_another_round(tmp_path):
    first, second = story(p.SWITCHML_RDMA, n_chunks=4, n_slots=4), story(p.SWITCHML_RDMA, n_chunks=4, n_slots=4)
    second["time_ps"] += 10 * ROUND
    second["version"] = 1
    report = one(np.concatenate([first, second]), tmp_path)
    assert (report.chunks, report.chunks_delivered, report.wrong_results, report.retransmissions) == (8, 8, 0, 0)


def test_workers_on_one_address_are_told_apart_by_their_ports(tmp_path):
    events = story(p.SWITCHML_UDP, n_workers=3)
    events["worker_port"] = 5000 + events["worker"]
    events["src"] = events["dst"] = 0x7F000001
    report = one(events, tmp_path)
    assert [w["worker"] for w in report.workers] == [f"127.0.0.1:{5000 + i}" for i in range(3)]
    assert (report.n_workers, report.chunks_delivered, report.retransmissions) == (3, 12, 0)


def test_jobs_and_protocols_share_a_capture(tmp_path):
    parts = [story(protocol, job=job) for protocol, job in ((p.SWITCHML_UDP, 1), (p.SWITCHML_UDP, 2), (p.ATP, 1))]
    write_pcap(tmp_path / "x.pcap", np.concatenate([*parts, story(p.SWITCHML_RDMA, job=1, per=4)]))
    found = reconstruct(read_pcap(tmp_path / "x.pcap").events)
    assert [(r.protocol, r.job, r.chunks_delivered, r.retransmissions) for r in found.jobs] == [
        ("switchml_udp", 1, 12, 0), ("switchml_udp", 2, 12, 0), ("switchml_rdma", 1, 12, 0), ("atp", 1, 12, 0)
    ]  # fmt: skip


def test_many_jobs_are_cut_to_those_with_most_packets():
    events = np.concatenate([event(job=j % 200, time_ps=j) for j in range(200 + MAX_JOBS)])
    found = reconstruct(events)
    assert [r.job for r in found.jobs] == list(range(MAX_JOBS))
    assert found.jobs_left_out == 200 - MAX_JOBS


def test_nothing_is_nothing():
    assert reconstruct(np.zeros(0, p.PACKET_EVENT)).jobs == ()


packet = st.tuples(st.booleans(), st.integers(0, 2), st.integers(0, 1), st.integers(0, 1), st.integers(0, 1))


@pytest.mark.slow
@given(st.lists(packet, min_size=1, max_size=60))
def test_any_sequence_is_read_as_the_slow_version_reads_it(packets):
    rows = []
    for time, (up, worker, slot, version, chunk) in enumerate(packets):
        ends = (worker, 9) if up else (9, worker)
        rows.append(event(kind=p.CONTRIBUTION if up else p.RESULT, time_ps=time, src=ends[0], dst=ends[1], slot=slot,
                          version=version, chunk=chunk))  # fmt: skip
    events = np.concatenate(rows)
    (report,) = reconstruct(events).jobs
    assert {name: getattr(report, name) for name in slow_counts(events)} == slow_counts(events)
