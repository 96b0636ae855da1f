"""``commsim switch pcap``: what happened, from a capture of SwitchML or ATP packets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commsim.cli.flags import WithJson, flag
from commsim.core.errors import InputError
from commsim.core.extras import needs
from commsim.core.remark import Remark
from commsim.core.units import microseconds
from commsim.report.answer import Answer, Facts, Lines, Part, Table, comments, remarks

if TYPE_CHECKING:
    from switch_model.packets.pcap_reader import Capture
    from switch_model.packets.reconstruct import JobReport, Reconstruction

MAX_SLOTS = 10  # rows of the printed table; the JSON has all
COLUMNS = ("protocol", "job", "switch", "workers", "chunks", "completed", "delivered", "resent", "dup. results",
           "wrong", "chunks resent", "time(ms)", "M elem/s")  # fmt: skip
LEAST = ("dup. results", "M elem/s", "protocol", "delivered", "chunks resent", "switch")
LOST = "chunks resent: a contribution came again, since a packet was lost or a timeout was too short"
LOST_MORE = "each message that came again (RDMA: of several chunks) lost at least one packet, which is not in this file"


class SwitchPcapConfig(WithJson):
    """All flags of ``commsim switch pcap``."""

    file: str = flag("file", metavar="FILE", help="pcap file, captured at the switch or written by `simulate`")
    packets: int = flag(default=0, metavar="N", help="print the headers of the first N packets (needs Scapy)")


def run(config: SwitchPcapConfig) -> Answer:
    """Read the capture, and reconstruct what happened."""
    from switch_model.packets.pcap_reader import read_pcap
    from switch_model.packets.reconstruct import reconstruct

    capture = read_pcap(config.file)
    reconstruction = reconstruct(capture.events)
    facts = _facts(capture)
    parts: list[Part] = [Facts({name.replace("_", " "): str(value) for name, value in facts.items()})]
    parts += _jobs(reconstruction)
    for report in reconstruction.jobs:
        parts += _details(report)
    if config.packets:
        parts += _packets(config.file, config.packets)
    rows = [row(report) for report in reconstruction.jobs]
    more = {"capture": facts, "jobs_left_out": reconstruction.jobs_left_out}
    return Answer(parts, rows, {"file": config.file}, more)


def row(report: JobReport) -> dict[str, Any]:
    """Return one job as a row of the JSON."""
    return {name: getattr(report, name) for name in report.__slots__}


def _facts(capture: Capture) -> dict[str, int]:
    """Return what the file holds; what is 0 is left out, but for the first two."""
    facts = {"packets": capture.n_packets, "aggregation_packets": len(capture.events)}
    more = {
        "other_packets": capture.foreign,
        "malformed_packets": capture.malformed,
        "packets_captured_too_short": capture.cut,
        "packets_of_messages_without_beginning": capture.stray,
        "bytes_after_the_last_whole_packet": capture.left_over,
        "start_s": capture.start_s,
    }
    return facts | {name: value for name, value in more.items() if value}


def _jobs(reconstruction: Reconstruction) -> list[Part]:
    if not reconstruction.jobs:
        return []
    left_out = f" ({reconstruction.jobs_left_out} with fewer packets left out)" if reconstruction.jobs_left_out else ""
    rows = [
        [r.protocol, str(r.job), r.switch, str(r.n_workers), str(r.chunks), str(r.chunks_completed),
         str(r.chunks_delivered), str(r.retransmissions), str(r.duplicate_results), str(r.wrong_results),
         str(r.chunks_repeated),
         f"{r.time_s * 1e3:.6g}", f"{r.elements_per_s / 1e6:.1f}"]
        for r in reconstruction.jobs
    ]  # fmt: skip
    table = Table(COLUMNS, rows, f"jobs, as each switch sees them{left_out}", LEAST)
    if not any(r.retransmissions for r in reconstruction.jobs):
        return [table]
    return [table, *remarks([Remark("lost-unseen", LOST, needed=True, details=LOST_MORE)])]


def _packets(file: str, n_packets: int) -> list[Part]:
    if n_packets < 0:
        raise InputError(f"--packets must not be negative, got {n_packets}")
    try:
        from switch_model.packets.layers import headers
    except ImportError:
        raise InputError(needs("--packets needs Scapy", "packets")) from None
    of = f"headers of the first {n_packets} packets; values are left out"
    return [*comments([of]), Lines(list(headers(file, n_packets)))]


def _details(report: JobReport) -> list[Part]:
    """Return late workers and repetitions, slots that were repeated, and results that came too early."""
    of = f"{report.protocol} job {report.job} at {report.switch}"
    rows = [
        [w["worker"], str(w["retransmissions"]), str(w["results"]), str(w["times_last"]),
         microseconds(w["mean_late_s"], 3), microseconds(w["max_late_s"], 3)]
        for w in report.workers
    ]  # fmt: skip
    columns = ["worker", "resent", "results", "times last", "by mean(us)", "by max(us)"]
    title = f"late workers: {of}; `last` is the only last one to contribute to a chunk"
    parts: list[Part] = [Table(columns, rows, title)]
    if report.slots:
        more = f" ({len(report.slots) - MAX_SLOTS} more in the JSON)" if len(report.slots) > MAX_SLOTS else ""
        shown = [[str(s["slot"]), str(s["retransmissions"])] for s in report.slots[:MAX_SLOTS]]
        parts.append(Table(["slot", "resent"], shown, f"slots that were repeated most: {of}{more}"))
    if report.wrong:
        shown = [
            [microseconds(x["time_s"], 3), str(x["slot"]), str(x["version"]), str(x["chunk"]),
             f"{x['contributed']} of {report.n_workers}"]
            for x in report.wrong
        ]  # fmt: skip
        columns = ["time(us)", "slot", "version", "chunk", "contributed"]
        parts.append(Table(columns, shown, f"results before all had contributed: {of} (first {len(shown)})"))
    return parts
