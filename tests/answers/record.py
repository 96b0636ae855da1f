"""Record the answers of the command lines in ``command_lines.txt``, and compare two recordings.

    python tests/answers/record.py -o FILE.json                   the code that stands around this file
    python tests/answers/record.py --code CHECKOUT -o FILE.json   another checkout, in the words of version 0.1
    python tests/answers/record.py --compare OLD.json NEW.json

A line is an answer's name. Lines are in the words of 0.1; ``renamed.toml`` maps them to those of the code and holds
the named corrections. What is recorded is the exit code, and numbers and names out of the JSON that a verb writes, out
of other files that it writes, else out of its output. Prose (text with blanks) is neither recorded nor compared.
"""

import argparse
import contextlib
import fnmatch
import functools
import io
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
WITH_JSON = ("run", "advise", "bound", "topo list", "topo show", "topo check", "presets", "schedule list",
             "schedule show", "schedule check", "switch simulate", "switch budget", "switch pcap", "workload run",
             "workload pipeline", "workload moe", "workload reshard", "workload share", "place", "cluster run",
             "sweep plan", "sweep status", "compare", "fit", "explain", "calls")  # fmt: skip
WITHOUT_JSON = ("place import", "place export", "explain --from")
NOT_COMPARED = {
    "schema": "of the file", "version": "of commsim", "config": "repeats the command line",
    "operation": "of the collective", "algbw_Bps": "size over time", "cpu_s": "processor time",
    "values_cpu_s": "processor time", "events": "work of an engine, not an answer",
    "sweep plan": "all but the number of points is measured time and memory",
}  # fmt: skip
LONGEST = 8
"""Values under one key; of more, their number, sum, extremes and a sum that depends on their order."""
NUMBER = re.compile(r"(?:(?<![\w.\]])-)?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


@functools.cache
def renamed():
    """Return the table of renamed words and named corrections."""
    return tomllib.loads((HERE / "renamed.toml").read_text())


def command_lines():
    """Return all lines, with $NAMES replaced and {a,b} written out."""
    names, lines = {}, []
    for line in (HERE / "command_lines.txt").read_text().splitlines():
        if match := re.fullmatch(r"(\w+) = (.*)", line):
            names[match[1]] = match[2]
        elif line and not line.startswith("#"):
            line = re.sub(r"\$(\w+)", lambda found: names[found[1]], line)
            parts = [part.split("|") for part in re.split(r"[{}]", line)]
            lines += ["".join(words) for words in itertools.product(*parts)]
    return lines


def verb_of(line):
    """Return the verb that a line is about, with its second word where it has verbs: the last of several commands."""
    words = line.split(" && ")[-1].split()
    two = words[0] in ("topo", "presets", "schedule", "switch", "workload", "cluster", "sweep")
    two = two or words[1] in ("score", "import", "export")
    return " ".join(words[: 1 + two])


def in_new_words(line):
    """Return a line as the code of today wants it."""
    for old, new in renamed()["arguments"].items():
        pattern = re.escape(old).replace(r"\*", r"\S+")
        line = re.sub(rf"(?<!\S){pattern}(?!\S)", new, line)
    if len(re.findall(r"(?<!\S)--overhead(?!\S)", line)) > 1:  # a line that gives it itself
        line = line.replace(" --overhead 0us", "", 1)
    return line


def answer(line, folder):
    """Run a line in an empty folder, beside what it reads, and return its exit code and values."""
    from commsim.cli import main

    out, err, code = io.StringIO(), io.StringIO(), 0
    (folder / "inputs").symlink_to(HERE / "inputs")
    if "files_0_1" in line:  # a sweep is gone on with
        shutil.copytree(HERE / "files_0_1", folder / "files_0_1")
    commands = [shlex.split(command) for command in line.split(" && ")]
    last = " ".join(commands[-1])
    if last.startswith(WITH_JSON) and not last.startswith(WITHOUT_JSON) and "--json" not in last:
        commands[-1] += ["--json", "r.json"]
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        for command in commands:
            out.seek(0), out.truncate()
            try:
                code = in_a_process(command, err) if ".py" in line else main(command)
            except SystemExit as stop:
                code = stop.code
            if code:
                return {"code": code, "why": err.getvalue().strip()}
    values = {}
    for path in sorted(folder.iterdir()):
        if path.suffix == ".json":
            collect(values, json.loads(path.read_text()), path.stem if path.stem != "r" else "")
        elif path.suffix == ".toml":
            collect(values, tomllib.loads(path.read_text()), path.stem)
        elif path.suffix in (".csv", ".xml", ".conf", ".yaml", ".yml", ".goal", ".txt", ".topo", ".cm", ".graphml"):
            values[path.name] = numbers(path.read_text())
    if not values:
        values["stdout"] = numbers(out.getvalue())
    if verb_of(line) in NOT_COMPARED:
        values = {key: column for key, column in values.items() if key.endswith("n_points")}
    return {"code": 0, "values": {key: shortened(column) for key, column in sorted(values.items())}}


def in_a_process(command, err):
    """Run a command that registers a collective of its own, which later commands must not see."""
    import commsim

    words = [sys.executable, "-m", "commsim", *command]
    where = os.environ | {"PYTHONPATH": str(Path(commsim.__file__).parents[1])}
    done = subprocess.run(words, env=where, capture_output=True, text=True, check=False)
    err.write(done.stderr)
    return done.returncode


def numbers(text):
    """Return the numbers of a table; lines that begin with # are prose."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return [int(word) if word.lstrip("-").isdigit() else float(word) for word in NUMBER.findall("\n".join(lines))]


def collect(values, tree, key):
    """Put the leaves of a tree into columns, one for each path of keys; the numbers of rows are left out."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            if name not in NOT_COMPARED:
                collect(values, value, key if name.isdigit() else f"{key}.{name}" if key else name)
    elif isinstance(tree, list):
        for value in tree:
            collect(values, value, key)
    elif not isinstance(tree, str) or not re.search(r"\s", tree):
        values.setdefault(key, []).append(tree)


def shortened(column):
    """Return a column, of a long one its summary, with 12 digits."""
    if len(column) > LONGEST:
        found = [float(value) for value in column if isinstance(value, (int, float))]
        names = [value for value in column if isinstance(value, str)]
        sums = [sum(found), min(found), max(found), sum(x * (1 + i % 97) for i, x in enumerate(found))] if found else []
        column = [len(column), *sums, *names[:LONGEST]]
    return [float(f"{value:.12g}") if isinstance(value, float) else value for value in column]


def differences(old, new, lines=None):
    """Return what differs between two recordings, less the named corrections."""
    found = []
    for line in lines if lines is not None else sorted(old | new):
        if line not in old or line not in new:
            found.append(f"{line}: only {'before' if line in old else 'after'}")
            continue
        for key, text in different(old[line], new[line], corrections(line)):
            found.append(f"{line}: {key}: {text}")
    return found


def corrections(line):
    """Return the named corrections of a line."""
    return [one for one in renamed().get("correction", []) if any(fnmatch.fnmatchcase(line, p) for p in one["lines"])]


def allowed(key, allowances):
    """Return the part by which a value may differ: the corrections', else that of rounding."""
    last = key.split(".")[-1]
    return max((one.get("within", float("inf")) for one in allowances if last in one.get("keys", [last])), default=1e-9)


def different(old, new, allowances):
    """Yield the keys of one answer that differ, and how."""
    if old["code"] != new["code"] and not any("code" in one.get("keys", ()) for one in allowances):
        yield "exit code", f"{old['code']} became {new['code']} {new.get('why', '')}"
    if old["code"] or new["code"]:
        return
    keys, words = renamed()["keys"], renamed()["words"]
    after = new["values"]
    for old_key, column in old["values"].items():
        key = ".".join(keys.get(part, part) for part in old_key.split("."))
        part = allowed(key, allowances)
        if part == float("inf") or key.split(".")[-1] in renamed()["removed_keys"]:
            continue
        if key not in after:
            yield key, "is gone"
        elif len(column) != len(after[key]):
            yield key, f"{column} became {after[key]}"
        else:
            for a, b in zip(column, after[key], strict=True):
                a = words.get(a, a) if isinstance(a, str) else a
                a, b = (one.replace("->", ":") if isinstance(one, str) else one for one in (a, b))  # names of links
                if a != b and not near(a, b, part):
                    yield key, f"{a} became {b}"


def near(a, b, part):
    """Whether two values are the same number but for rounding; whole numbers and all else must be equal."""
    if any(isinstance(x, (str, bool, type(None))) for x in (a, b)) or (part < 1e-6 and isinstance(a, int)):
        return False
    return abs(a - b) <= part * max(abs(a), abs(b)) + 1e-15


def record(lines, words):
    """Return the answers of lines: renamed, unless the words are old."""
    answers = {}
    for i, line in enumerate(lines):
        with tempfile.TemporaryDirectory() as folder:
            answers[line] = answer(in_new_words(line) if words == "new" else line, Path(folder))
        print(f"\r{i + 1}/{len(lines)}", end="", file=sys.stderr, flush=True)
    return answers


def main():
    """Record or compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--code", type=Path, help="another checkout")
    parser.add_argument("--words", choices=["old", "new"], default="new")
    parser.add_argument("--only", default="", help="verb, such as 'switch simulate'")
    parser.add_argument("--compare", nargs=2, type=Path)
    args = parser.parse_args()
    if args.compare:
        found = differences(*(json.loads(path.read_text()) for path in args.compare))
        print("\n".join(found) or "no differences")
        return 1 if found else 0
    code = (args.code or HERE.parents[1]).resolve()
    if str(code) not in os.environ.get("PYTHONPATH", "").split(":"):
        words = "old" if args.code else args.words
        again = [sys.executable, __file__, "-o", args.output, "--words", words, "--only", args.only]
        with tempfile.TemporaryDirectory() as cache:  # of compiled kernels: another checkout's must not be used
            changed = {"PYTHONPATH": str(code), "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", cache)}
            return subprocess.run(again, env=os.environ | changed, check=False).returncode
    lines = [line for line in command_lines() if verb_of(line).startswith(args.only)]
    answers = record(lines, args.words)
    for one in answers.values():
        one.pop("why", None)  # prose
    rows = [f"{json.dumps(line)}: {json.dumps(value, separators=(',', ':'))}" for line, value in answers.items()]
    args.output.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
