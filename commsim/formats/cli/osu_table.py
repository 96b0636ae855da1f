"""``commsim run --osu FILE``: the table that an OSU micro-benchmark would print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from commsim.cli.run_kinds import Answered, Rendering
from commsim.core.files.whole_files import check_writable, replacing
from commsim.formats.benchmark_output import osu_text

if TYPE_CHECKING:
    from commsim.cli.run_flags import RunConfig
    from commsim.report.answer import Part


def _osu_table(config: RunConfig, answered: Answered) -> list[Part]:
    """Write the table."""
    with replacing(config.osu or "") as file:
        file.write(osu_text(answered.results).encode())
    return []


OSU_TABLE = Rendering(lambda path: check_writable(Path(path)), _osu_table)
