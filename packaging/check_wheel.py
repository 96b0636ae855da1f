"""Install a wheel without extras into an empty environment, and run README's lines there; then with each extra alone.

    python packaging/check_wheel.py dist/commsim-*.whl [--pins newest|floor] [--extras [NAME,...]] [--json FILE]

A line must work, or say on one line which extra it needs and exit with 2. Each starts on an empty kernel cache.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Lines beside README's: what a first user types.
FIRST = (
    "commsim --help", "commsim --version", "commsim doctor", "commsim examples", "commsim topo list",
    "commsim topo show fat_tree:k=4", "commsim nccl --topology dgx-h100@star:machines=2",
    "commsim run nccl --topology dgx-h100@star:machines=2 -b 1M -e 64M",
)  # fmt: skip
# Lines that are not run: of 10,000 points; of a log of the user; of networks of namespaces, which need root.
LEFT_OUT = ("sweep examples/sweep_10k.toml", "--from LOG", "testbed run")
# A line that needs the extra, where a short one shows it; others are imported.
OF_EXTRAS = {
    "opt": "commsim synthesize --operation all_reduce --topology dgx-h100",
    "report": "commsim run ring_all_reduce --topology star:n_hosts=4 -b 1M -e 1M --report page.html",
    "plot": "commsim run ring_all_reduce --topology star:n_hosts=4 -b 1M -e 1M --draw network.png",
    "graph": "commsim topo export star:n_hosts=4 -o network.graphml",
    "chakra": "commsim schedule export ring_all_reduce --ranks 4 --size 1MiB -o trace.%d.et",
    "perfetto": "commsim trace ring_all_reduce --topology star:n_hosts=4 -b 1M -e 1M -o ring.pftrace",
    "packets": "sh -c 'commsim switch simulate --workers 4 --size 64KiB --pcap few.pcap"
               " && commsim switch pcap few.pcap --packets 3'",
    "yaml": "sh -c 'commsim examples of_yaml && commsim place export of_yaml/cluster.toml --to kueue -o kueue.yaml'",
}  # fmt: skip
TIMEOUT = 600
# Extras that are tried; the others are large, or need an MPI of the system.
EXTRAS = tuple(one for one in CONFIG["optional-dependencies"] if one not in ("all", "torch", "ray", "mpi"))


def readme_lines() -> Iterator[str]:
    """Return the command lines of README: in its console examples and its table."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").replace("\\\n", " ")
    for line in re.findall(r"^\$ (commsim .*)$", text, re.MULTILINE) + re.findall(r"`(commsim [^`]+)`", text):
        words = line.split()
        if len(words) > 2 and not line.startswith(("commsim help", "commsim doctor")) and ".py " not in line:
            yield from (part.strip() for part in line.split("&&"))


def pins(which: str) -> list[str]:
    """Return requirements that pin the oldest versions that pyproject.toml allows, or none."""
    if which == "newest":
        return []
    floors = (re.match(r"([\w-]+)>=([\d.]+)", one) for one in CONFIG["dependencies"])
    return [f"{match[1]}=={match[2]}.*" for match in floors if match and match[1] in ("numpy", "numba")]


def environment(folder: Path, requirements: list[str]) -> Path:
    """Make an empty environment with requirements; return its folder of programs."""
    venv.create(folder, with_pip=True, clear=True)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    subprocess.run([programs / "python", "-m", "pip", "install", "--quiet", *requirements], check=True)
    return programs


def processor_s() -> float:
    """Return the seconds of processors that ended children used: what a busy machine takes no longer for."""
    ended = os.times()
    return ended.children_user + ended.children_system


def outcome(line: str, programs: Path, folder: Path) -> dict[str, object]:
    """Run a line with an empty kernel cache: its seconds, those of processors, its status, and what it said."""
    with tempfile.TemporaryDirectory() as cache:
        path = os.pathsep.join([str(programs), os.environ["PATH"]])
        own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        begin, used = time.perf_counter(), processor_s()
        done = subprocess.run(
            shlex.split(line), env=own | {"PATH": path, "NUMBA_CACHE_DIR": cache}, cwd=folder, capture_output=True,
            text=True, timeout=TIMEOUT, check=False,
        )  # fmt: skip
        seconds, used = time.perf_counter() - begin, processor_s() - used
    said = [one for one in done.stderr.strip().splitlines() if "so far" not in one and "compiling kernels" not in one]
    is_refused = done.returncode == 2 and len(said) == 1 and "commsim[" in said[0]
    return {
        "line": line, "seconds": round(seconds, 2), "cpu_s": round(used, 2), "status": done.returncode,
        "is_well": done.returncode == 0 or is_refused, "said": "" if done.returncode == 0 else " | ".join(said)[-300:],
    }  # fmt: skip


def main() -> int:
    """Check, print a row for each line, and return 1 if one neither works nor names its extra."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--pins", choices=("newest", "floor"), default="newest")
    parser.add_argument("--extras", nargs="?", const=",".join(EXTRAS), default="", metavar="NAME,...",
                        help="also with each extra alone, which downloads some GB; or with these only")  # fmt: skip
    parser.add_argument("--json", type=Path)
    config = parser.parse_args()
    extras = [extra for extra in config.extras.split(",") if extra]
    if unknown := set(extras) - set(EXTRAS):
        parser.error(f"--extras: no {', '.join(sorted(unknown))}; known: {', '.join(EXTRAS)}")
    wheel = config.wheel.resolve()
    found: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not extras or len(extras) == len(EXTRAS):
            programs = environment(folder / "core", [str(wheel), *pins(config.pins)])
            lines = [*FIRST, *(one for one in readme_lines() if not any(part in one for part in LEFT_OUT))]
            found.extend(told({"extra": "", **outcome(line, programs, folder)}) for line in lines)
        for extra in extras:
            programs = environment(folder / extra, [f"{wheel}[{extra}]"])
            line = OF_EXTRAS.get(extra, "commsim doctor")
            found.append(told({"extra": extra, **outcome(line, programs, folder)}))
            shutil.rmtree(folder / extra)  # some 400 MB
    if config.json:
        config.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    wrong = [one for one in found if not one["is_well"] or (one["extra"] and one["status"])]
    refused = sum(bool(one["status"]) for one in found)
    print(f"{len(found)} lines, {refused} refused, {len(wrong)} wrong; Python {sys.version.split()[0]}")
    return 1 if wrong else 0


def told(row: dict[str, object]) -> dict[str, object]:
    """Print a row."""
    mark = "ok" if not row["status"] else "refused" if row["is_well"] else "WRONG"
    print(
        f"{row['seconds']:7.1f} s {row['cpu_s']:6.1f} CPU s  {mark:8} {row['extra']:8} {row['line']}  {row['said']}",
        flush=True,
    )
    return row


if __name__ == "__main__":
    sys.exit(main())
