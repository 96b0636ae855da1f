"""The page of each measured table: digests that a reader can make, few sizes, and where the naive rule is nearer."""

import re
from pathlib import Path

import pytest

from benchmarks.nccl_tables.each_table import PAGE, SHOWN, digest, digest_of_log, main, page

LOG = """# nThread 1 nGpus 8
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
          32             8     float     sum      -1    20.01    0.00    0.00      0    20.50    0.00    0.00      0
     1048576        262144     float     sum      -1    78.25   13.40   25.12      0    79.11   13.25   24.85      0
        2048           512     float     sum      -1    21.00    0.10    0.17      0    20.50    0.10    0.17      0
"""
ONE = {
    "id": "a", "folder": "measured2", "operation": "all_reduce", "rows": 2, "machine": "2x8 H100", "ranks": 16,
    "release": "2.26.2", "source": "an issue", "healthy": "yes", "command": "commsim compare LOG", "digest": "0" * 16,
    "large": {"rows": 1, "median": 0.2, "naive": 0.1}, "small": {"rows": 1, "median": 0.1, "naive": 0.2},
    "sizes": [[1024, 25.7, -3], [1048576, 75.6, 4]],
}  # fmt: skip


def test_a_log_has_the_digest_of_its_rows_out_of_place(tmp_path, capsys) -> None:
    log = tmp_path / "all_reduce.txt"
    log.write_text(LOG)
    assert digest_of_log(str(log)) == digest([(2048, 21e-6), (1048576, 78.25e-6)])
    assert digest([(2048, 21e-6)]) != digest([(2048, 21.0001e-6)])
    assert main(["--digest", str(log), "--operation", "all_reduce"]) == 0
    assert capsys.readouterr().out.strip() == digest_of_log(str(log))


def test_the_page_lists_where_the_naive_rule_is_nearer() -> None:
    text = page([ONE])
    assert "| [a](#a) | yes | from 1 MiB | 1 | 20.0% | 10.0% |" in text
    assert "| below |" not in text
    assert "1024 B: 25.7 us (-3 %); 1048576 B: 75.6 us (+4 %)" in text


@pytest.fixture
def sections() -> list[str]:
    return Path(PAGE).read_text(encoding="utf-8").split("\n### ")[1:]


def test_the_committed_page_has_no_whole_table(sections) -> None:
    assert len(sections) > 100
    for section in sections:
        assert section.count(" us (") <= len(SHOWN)
        assert re.search(r"digest `[0-9a-f]{16}`", section)
        assert "- Command: `" in section
        assert "- Source: " in section
