"""Every example of the README, the tutorial, the how-tos and the theory is run, and prints what the page says."""

import importlib.util
from pathlib import Path

import pytest

import commsim
from commsim.cli import main

ROOT = Path(commsim.__file__).parent.parent
DOCS = ROOT / "docs"

_spec = importlib.util.spec_from_file_location("examples_of_pages", DOCS / "_site" / "examples.py")
examples = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(examples)
PAGES = examples.PAGES


def commands(page):
    text = page.read_text(encoding="utf-8")
    return [one for block in examples.BLOCK.findall(text) for one in examples.sessions(block)]


@pytest.mark.sample(5)
@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_print_what_the_page_says(page):
    text = page.read_text(encoding="utf-8")
    with examples.beside(text):
        for command, expected in commands(page):
            code, printed = examples.run(command, examples.width_of(text))
            assert (code != 0) == expected.startswith("commsim "), printed
            assert examples.matches(expected, printed), (
                f"{page.name}: $ {command}\n{printed}\n`python docs/_site/examples.py` writes what commands print now"
            )


def test_the_picture_of_the_readme_is_what_its_command_draws(tmp_path, monkeypatch):
    (command,) = [one for one, _ in commands(ROOT / "README.md") if "--draw" in one]
    name = command.split("--draw ")[1].split()[0]
    monkeypatch.chdir(tmp_path)
    assert main(command.replace("\\\n", " ").split()[1:]) == 0
    assert (tmp_path / name).read_text() == (DOCS / name).read_text()


def test_the_readme_shows_what_a_terminal_of_80_columns_shows():
    """Its tables were those of a pipe, up to 160 columns wide."""
    assert examples.width_of((ROOT / "README.md").read_text(encoding="utf-8")) == 80
    assert max(len(line) for _, shown in commands(ROOT / "README.md") for line in shown.splitlines()) <= 80
    assert "-v also shows" in examples.run("commsim run ring_all_reduce --topology star:n_hosts=2 --size 1M", 80)[1]


def test_there_are_examples_to_run():
    assert all(commands(page) for page in PAGES if page.parent.name != "theory")


def test_a_changed_number_is_noticed():
    assert examples.matches("time  1.0\n...\nlast", "time  1.0\nbetween\nand more\nlast\n")
    assert not examples.matches("time  1.0\n...", "time  1.1\nlast\n")
    assert not examples.matches("first", "first\nsecond")


def test_a_page_can_be_written_anew():
    page = "```console\n$ commsim schedule check ring_all_reduce \\\n      --ranks 4\n```\n"
    assert "\n      --ranks 4\nring_all_reduce on 4 ranks: correct" in examples.filled(page)
    kept = page.replace("4\n```", "4\nring_all_reduce ... correct...\n```")
    assert examples.filled(kept) == kept
