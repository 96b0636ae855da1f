"""Three evaluators: the same bits, and lines between the sizes of a file."""

import ctypes
import json
import random
import shutil
import struct
import subprocess
from importlib import resources

import pytest

from commsim.costmodel.evaluators.cost_model import CostModel

FOLDER = resources.files("commsim.costmodel.evaluators")


def questions(tree, n=300):
    numbers = random.Random(5)
    found = []
    for _ in range(n):
        curve = numbers.choice(tree["curves"])
        near = numbers.choice(curve["size"]) + numbers.choice((-1, 0, 1))
        size = numbers.choice((near, numbers.randrange(2**30), numbers.random() * 2**30, 0, 1, 2**30))
        found.append([curve["operation"], curve["machines"], curve["gpus"], min(size, 2**30), curve["faults"]])
    return found


def answered(model, asked):
    return [[struct.pack("<d", value).hex() for value in model.answer(*one)] for one in asked]


def test_between_two_sizes_times_are_a_line(tree):
    curve, model = tree["curves"][0], CostModel(tree)
    middle = (curve["size"][4] + curve["size"][5]) / 2
    found = model.answer("all_reduce", 1, 8, middle)
    for value, key in zip(found, ("time", "low", "high"), strict=True):
        assert value == pytest.approx((curve[key][4] + curve[key][5]) / 2)
    assert model.answer("all_reduce", 1, 8, 0) == (curve["time"][0], curve["low"][0], curve["high"][0])
    assert model.answer("all_reduce", 2, 8, 2**20)[0] == model.answer("all_reduce", 2, 8, 2**20)[1]  # no interval
    assert [model.choice("all_reduce", 1, 8, size) for size in (1, 65535, 65536)] == ["", "ring/ll", "nvls/simple"]


def test_what_the_file_does_not_have_is_refused(tree):
    model = CostModel(tree)
    with pytest.raises(ValueError, match="size must be 0 to 1073741824"):
        model.answer("all_reduce", 1, 8, 2**30 + 1)
    with pytest.raises(KeyError):
        model.answer("all_reduce", 3, 8, 1)
    with pytest.raises(ValueError, match="of version 1"):
        CostModel(tree | {"version": 2})


NODE = """
const fs = require("fs");
const { CostModel } = require(process.argv[1]);
const model = new CostModel(JSON.parse(fs.readFileSync(process.argv[2], "utf8")));
const hex = (value) => { const b = Buffer.alloc(8); b.writeDoubleLE(value); return b.toString("hex"); };
const asked = JSON.parse(fs.readFileSync(0, "utf8"));
console.log(JSON.stringify(asked.map((one) => model.answer(...one).map(hex))));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="no node here")
def test_javascript_returns_the_same_bits(tree, model_file):
    asked = questions(tree)
    line = ["node", "-e", NODE, str(FOLDER / "cost_model.js"), str(model_file)]
    done = subprocess.run(line, input=json.dumps(asked), capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == answered(CostModel(tree), asked)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")
def test_c_returns_the_same_bits(tree, model_file, tmp_path):
    library = tmp_path / "cost_model.so"
    flags = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, str(FOLDER / "cost_model.c"), "-o", library], check=True)
    code = ctypes.CDLL(str(library))
    code.cost_model_curve.restype = ctypes.c_void_p
    code.cost_curve_answer.argtypes = [ctypes.c_void_p, ctypes.c_double, ctypes.c_double * 3]
    model = ctypes.create_string_buffer(64)
    assert code.cost_model_read(model, model_file.read_bytes()) == 0
    asked, times, found = questions(tree), (ctypes.c_double * 3)(), []
    for operation, machines, gpus, size, faults in asked:
        curve = code.cost_model_curve(model, operation.encode(), machines, gpus, faults.encode())
        assert code.cost_curve_answer(curve, size, times) == 0
        found.append([struct.pack("<d", value).hex() for value in times])
    assert found == answered(CostModel(tree), asked)
    assert code.cost_model_curve(model, b"all_reduce", 3, 8, b"") is None
    assert code.cost_curve_answer(curve, 2.0**31, times) == 1
    assert code.cost_model_read(model, b'{"version": 2, "curves": []}') == 1
