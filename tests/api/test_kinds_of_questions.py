"""Each kind of question with each rendering: it works, or one line says why not, before anything is computed."""

import pytest

from commsim.cli.run import COLLECTIVES
from commsim.cli.run_flags import RunConfig
from commsim.cli.run_kinds import RENDERED
from commsim.extensions import house

STAR = ("run", "--topology", "star:n_hosts=4", "-b", "64K", "-e", "64K")
JOBS = '[[job]]\ncollective = "ring_all_reduce"\nranks = "0-3"\nsize = "64KiB"\n'
ASKED = {
    "jobs": (("run", "--topology", "star:n_hosts=4", "--jobs", "jobs.toml"), ""),
    "ranking": ((*STAR, "--operation", "broadcast"), "draw report"),
    "algorithms": ((*STAR, "--operation", "broadcast", "--algorithm", "all"), "bound draw report"),
    "groups": ((*STAR, "--group", "0,1", "--group", "2,3"), "draw report"),
    "compressed": ((*STAR, "ring_all_gather", "--compressor", "top_k:density=0.01"), "draw osu report"),
    "several": ((*STAR, "ring_all_reduce", "double_tree_all_reduce"), "bound draw report"),
    "one": ((*STAR, "ring_all_reduce"), "bound draw osu report"),
}
FILES = {"draw": "d.svg", "osu": "o.txt", "report": "r.html"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.toml").write_text(JOBS)
    return tmp_path


def rendered(name):
    return ("--bound",) if name == "bound" else (f"--{name}", FILES[name])


@pytest.mark.parametrize("name", RENDERED)
@pytest.mark.parametrize("kind", ASKED)
def test_a_rendering_works_or_is_refused_on_one_line(commsim, folder, kind, name):
    words, works = ASKED[kind]
    if name not in works.split():
        assert f"--{name}" in commsim.refuses(*words, *rendered(name))
        assert not (folder / FILES.get(name, "none")).exists()
        return
    assert commsim(*words, *rendered(name)).code == 0, commsim.err
    assert "times the bound" in commsim.out if name == "bound" else (folder / FILES[name]).stat().st_size


def test_every_rendering_has_a_check_and_every_refused_flag_is_one_of_run():
    assert set(house().renderings) == set(RENDERED)
    given = ({"jobs": "jobs.toml"}, {"operation": "broadcast"}, {"operation": "broadcast", "algorithm": "all"},
             {"collective": "ring_all_reduce", "beside": ["h0:h1=1MiB"]})  # fmt: skip
    assert set(house().questions) == {RunConfig(topology="star:n_hosts=4", **flags).question for flags in given}
    kinds = (*house().questions.values(), COLLECTIVES)
    flags = {flag for kind in kinds for refused in kind.refused for flag in refused.flags}
    assert flags <= set(RunConfig.__dataclass_fields__)


@pytest.mark.parametrize(
    "words", [("-b", "1K"), ("--ranks", "2"), ("ring_all_reduce",), ("-d", "half"), ("--synthesized",)]
)
def test_jobs_refuse_what_has_no_meaning_for_them(commsim, folder, words):
    assert "jobs describe the whole run; " in commsim.refuses(*ASKED["jobs"][0], *words)


def test_the_json_of_jobs_has_the_network_and_the_engine(commsim, folder):
    tree = commsim.results(*ASKED["jobs"][0], "-n", "2", "-v")
    assert tree["network"]["n_links"] == 8
    assert tree["config"]["engine"] == "flow"
    assert [remark["code"] for remark in tree["remarks"]] == ["option-unused"]


def test_a_page_of_jobs_has_their_rows_and_no_timeline(commsim, folder):
    assert commsim(*ASKED["jobs"][0], "--json", "j.json").code == 0
    assert commsim("report", "j.json", "-o", "r.html").code == 0
    assert "messages: ring_all_reduce: groups and jobs that share a network have no timeline" in commsim.out


def test_what_is_synthesized_has_a_table_beside_all_algorithms(commsim):
    asked = (*STAR, "--operation", "all_gather", "--synthesized")
    all_of_them = commsim.results(*asked, "--algorithm", "all", "--overhead", "0us", "-v")["results"]
    assert "\n# synthesized" in commsim.out
    ranking = commsim.results(*asked, "--overhead", "0us", "-v")["ranking"][0]["algorithms"]
    (made,) = (one for one in ranking if one["algorithm"] == "synthesized")
    assert made["time_s"] == all_of_them[-1]["time_s"]
    assert len(ranking) == len(all_of_them)


def test_what_a_library_runs_for_an_operation_is_one_collective(commsim, folder):
    asked = (
        "run",
        "--topology",
        "dgx-h100",
        "--collective",
        "nccl",
        "--operation",
        "all_gather",
        "-b",
        "1M",
        "-e",
        "1M",
    )
    assert commsim(*asked, "--bound", "--osu", "o.txt").code == 0
    assert "times the bound" in commsim.out


def test_the_bounds_of_several_collectives_have_their_names(commsim):
    several = ("ring_all_reduce", "double_tree_all_reduce")
    lines = [line for line in commsim(*STAR, *several, "--bound", "-v").out.splitlines() if "times the bound" in line]
    assert [line.split(": ")[1] for line in lines] == list(several)
    every = commsim(*STAR, "--operation", "all_gather", "--algorithm", "all", "--bound", "-v").out
    assert "# bound: ring_all_gather: 64 KiB: at least" in every
    assert "# bound: 64 KiB: at least" in commsim(*STAR, "ring_all_reduce", "--bound").out


def test_a_bound_is_refused_by_what_it_does_not_go_with(commsim):
    said = commsim.refuses(*STAR, "ring_all_gather", "--compressor", "qsgd", "--bound")
    assert "--bound does not go with --compressor" in said
    assert "--bound does not go with --group" in commsim.refuses(*STAR, "--group", "0,1", "--bound")
