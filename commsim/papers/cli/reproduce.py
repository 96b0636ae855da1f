"""``commsim reproduce``: figures of papers beside ours."""

from __future__ import annotations

import collections
import dataclasses
from typing import TYPE_CHECKING

from commsim.cli.flags import Verb, WithJson, flag
from commsim.core.errors import InputError
from commsim.core.remark import Remark
from commsim.core.units import count_text
from commsim.pages.pictures.paint import check_chart, write_picture
from commsim.report.answer import Answer, Facts, Lines, Part, Table, remarks

if TYPE_CHECKING:
    from commsim.papers.paper import PaperRow

EXAMPLES = {
    "reproduce": """
        commsim reproduce
        commsim reproduce atp
        commsim reproduce crux
        commsim reproduce chimera 'table 2, GPipe'
        commsim reproduce gloo --json gloo.json""",
}


# Relative error from which the causes are looked for.
FAR = 0.2


class ReproduceConfig(WithJson):
    """All flags of ``commsim reproduce``."""

    paper: str | None = flag("paper", nargs="?", metavar="PAPER|FILE.toml", help="the paper (default: list all)")
    figure: str | None = flag("figure", nargs="?", metavar="FIGURE", help="one of its figures (default: all)")
    all: bool = flag(default=False, help="every figure of every paper; takes a minute")
    plot: str | None = flag(metavar="FILE", help="draw the figures, published and ours: .svg, .png or .pdf")


def run(config: ReproduceConfig) -> Answer:
    """List papers, or compute their figures beside the published ones."""
    from commsim.papers.paper import load_paper, paper_names

    if config.all and config.paper is not None:
        raise InputError("--all computes every paper; give a paper or --all, not both")
    if config.plot:
        if config.paper is None and not config.all:
            raise InputError("--plot draws figures: name a paper, or give --all")
        check_chart(config.plot)
    papers = [load_paper(name) for name in paper_names()] if config.paper is None else [load_paper(config.paper)]
    if config.paper is None and not config.all:
        rows = [[paper.name, figure.name, figure.unit, figure.setup] for paper in papers for figure in paper.figures]
        listed = [{"paper": a, "figure": b, "unit": c, "setup": d} for a, b, c, d in rows]
        table = Table(["paper", "figure", "unit", "setup"], rows, "`commsim reproduce PAPER [FIGURE]`, or --all")
        return Answer([table], listed, {"what": "papers"})
    found = [row for paper in papers for row in paper.rows(config.figure)]
    title = papers[0].title if len(papers) == 1 else f"{len(papers)} papers"
    written = [dataclasses.asdict(row) | {"error": row.error} for row in found]
    parts = _parts(found, title)
    if config.plot:
        from commsim.papers.picture import draw_rows

        write_picture(draw_rows(title, found), config.plot)
        parts.append(Lines([f"{config.plot}: written"]))
    return Answer(parts, written, more={"rows": written})


def _parts(rows: list[PaperRow], title: str) -> list[Part]:
    """Return the rows, their notes, whether their order is the published one, and the errors of those that count."""
    from commsim.papers.paper import errors_of, order_of

    table = Table(
        ["paper", "figure", "case", "theirs", "ours", "unit", "error(%)", "setup"],
        [[row.paper, row.figure, row.case, f"{row.theirs:.4g}", f"{row.ours:.4g}", row.unit,
          f"{100 * row.error:+.1f}", _setup(row)] for row in rows],
        title, least=("paper", "unit"),
    )  # fmt: skip
    notes = remarks(Remark("source", f"{row.figure}: {row.source}", details=row.note) for row in rows)
    parts = [table, *notes]
    order = order_of(rows)
    if order.n_pairs or order.n_equal:
        where = collections.Counter(f"{a.paper}, {a.figure}" for a, _ in order.other_way)
        which = "".join(f"; {name}: {n} the other way round" for name, n in where.items())
        as_published = f"as published in {order.n_pairs - len(order.other_way)} of {order.n_pairs} pairs of rows"
        equal = f"; {order.n_equal} more are equal in ours, and not counted" if order.n_equal else ""
        parts.append(Facts({"order": f"{as_published}{which}{equal}"}))
    errors = errors_of(rows)
    if far := sum(abs(row.error) >= FAR for row in rows):
        page = 'docs/data/papers.md, "What misses, and why"'
        parts += remarks(
            [Remark("far-off", f"{count_text(far, 'row')} {100 * FAR:.0f} % off or more: {page}", FAR, needed=True)]
        )
    if errors.n_counted:
        shown = len(rows) - errors.n_counted
        decided = (
            f"{100 * errors.by_paper:.1f} %: median over {count_text(errors.n_papers, 'paper')} of each one's median"
            if errors.n_papers
            else "no number of an engine: formulas, counts and searches only"
        )
        parts.append(Facts({
            "median error": f"{100 * errors.median:.1f} % of {errors.n_counted} numbers whose set-up is known",
            "an engine decides": decided,
            "largest": f"{100 * errors.largest:.1f} %",
            "shown only": f"{shown} that are fitted, recalled or for consistency, or whose set-up is assumed",
        }))  # fmt: skip
    return parts


def _setup(row: PaperRow) -> str:
    return "fitted" if row.fitted else "recalled" if row.recalled else row.setup


COMMANDS = {"reproduce": Verb(ReproduceConfig, run)}
