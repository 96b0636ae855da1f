import subprocess
import sys
from pathlib import Path

import pytest

import commsim
from commsim import _siblings

ROOT = Path(commsim.__file__).parent.parent


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run code in a new process whose first folder on the path is `folder`, and whose last is ours."""
    paths = f"import sys; sys.path[:0] = [{str(folder)!r}]; sys.path.append({str(ROOT)!r})\n"
    return subprocess.run([sys.executable, "-c", paths + code], cwd=folder, text=True, capture_output=True)


def test_our_own_packages_pass():
    _siblings.check()


@pytest.mark.parametrize("sibling", _siblings.SIBLINGS)
@pytest.mark.parametrize("shape", ["{}.py", "{}/__init__.py"])
def test_a_file_or_folder_that_hides_a_package_is_named(tmp_path, sibling, shape):
    intruder = tmp_path / shape.format(sibling)
    intruder.parent.mkdir(exist_ok=True)
    intruder.write_text("")
    done = run("import commsim\ncommsim.load_network", tmp_path)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"ImportError: commsim needs its own package {sibling} (")
    assert str(ROOT / sibling / "__init__.py") in last
    assert str(intruder) in last


def test_nothing_in_the_way_is_no_error(tmp_path):
    done = run("import commsim\nprint(commsim.load_network('star:n_hosts=2').n_links)", tmp_path)
    assert (done.stdout, done.returncode) == ("4\n", 0), done.stderr
