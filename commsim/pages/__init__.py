"""Pages, figures and timelines of results."""

from __future__ import annotations

from commsim.extensions import House

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = (
    "formats",
    "jobs",
    "packets",
    "placement",
    "ranking",
    "real",
    "sweep",
    "traffic",
)


def register(house: House) -> None:
    """Bring pages, pictures and timelines."""
    house.services["html of a value"] = "commsim.pages.notebook:html_of"
    house.commands(
        "commsim.pages.cli.report",
        report="write one offline page with the figures of a result or a sweep",
        plot="draw one figure of a result or a sweep for a paper, with the CSV of its numbers",
    )
    house.commands(
        "commsim.pages.cli.diff", diff="print two results, sweeps or schedules side by side, and where they differ"
    )
    house.commands("commsim.pages.cli.trace", trace="write the timeline of a run for Perfetto and chrome://tracing")
