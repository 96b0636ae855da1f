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
    house.renderings["draw"] = "commsim.pages.cli.picture_and_page:PICTURE"
    house.renderings["report"] = "commsim.pages.cli.picture_and_page:PAGE"
    house.services["check of a picture"] = "commsim.pages.pictures.to_files:check_drawable"
    house.services["picture of loads"] = "commsim.pages.pictures.to_files:draw_loads"
    house.services["picture of a schedule"] = "commsim.pages.pictures.to_files:draw_transfers"
    house.services["picture of trees"] = "commsim.pages.pictures.to_files:draw_trees_of"
    house.services["plot of ranks"] = "commsim.pages.plots.plot_ranks:plotter_of_ranks"
    house.services["repeated run"] = "commsim.pages.repeated_runs:repeated"
    house.services["html of a value"] = "commsim.pages.notebook:html_of"
    house.commands(
        "commsim.pages.cli.report",
        report="write one offline page with the figures of a result or a sweep",
    )
    house.commands(
        "commsim.pages.cli.plot",
        plot="draw one figure of a result or a sweep for a paper, with the CSV of its numbers",
    )
    house.commands(
        "commsim.pages.cli.diff", diff="print two results, sweeps or schedules side by side, and where they differ"
    )
    house.commands("commsim.pages.cli.trace", trace="write the timeline of a run for Perfetto and chrome://tracing")
    house.warmup("pages", "commsim.pages.timeline:compile_intervals")
