import pytest

from commsim.core.errors import InputError
from commsim.core.files.fields import TableFields, line_of

TOML = """schema = 1
# [[links]] in a comment opens nothing
name = "a # [[links]] = {"
nodes = [
  {name = "h0", kind = "host"},
  # {name = "no"},
  {name = "h1", kind = "host"},
]
grid = [[1, 2],
  [3, 4]]
text = '''
[[links]]
'''
[[links]]
from = "h0"
  [[links]]  # the second
"from" = "h0"

bandwidth = "1Gbps"
[other.table]
key = 1
"""

JSON = """{"schema": 1,
 "note": "a \\" , { [ : \\n",
 "nodes": [
  {"id": "a", "list": [1,
   2]}, {"id":
   "b"}
 ],
 "links": [{"from": "x:{",
   "to": "y"},
  {"from": "a"}]
}
"""


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (("schema",), 1),
        (("name",), 3),
        (("nodes", 0), 5),
        (("nodes", 1, "name"), 7),
        (("grid", 1, 0), 10),
        (("links", 0), 14),
        (("links", 0, "from"), 15),
        (("links", 1, "from"), 17),
        (("links", 1, "bandwidth"), 19),
        (("links", 1, "missing"), 16),
        (("other", "table", "key"), 21),
        (("links",), 14),
        (("other",), 20),
        (("links", 7), 0),
        (("missing",), 0),
        ((), 0),
    ],
)
def test_the_line_of_a_field_of_toml(tmp_path, keys, line):
    (tmp_path / "x.toml").write_text(TOML)
    assert line_of(tmp_path / "x.toml", keys) == line


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (("note",), 2),
        (("nodes", 0, "list", 1), 5),
        (("nodes", 1, "id"), 5),
        (("links", 0, "to"), 9),
        (("links", 1, "from"), 10),
        (("links", 1, "to"), 10),
        (("links", 2), 8),
    ],
)
def test_the_line_of_a_field_of_json_or_of_the_table_around_it(tmp_path, keys, line):
    (tmp_path / "x.json").write_text(JSON)
    assert line_of(tmp_path / "x.json", keys) == line


def test_a_file_of_another_kind_or_none_has_no_lines(tmp_path):
    (tmp_path / "x.npz").write_bytes(b"")
    assert line_of(tmp_path / "x.npz", ("a",)) == 0
    assert line_of(tmp_path / "none.toml", ("a",)) == 0


@pytest.mark.parametrize(
    ("name", "said"),
    [("a.toml", r"must be a table, a line \[topology\] with its fields below it, got 'star'"),
     ("a.json", "must be a table, got 'star'")],
)  # fmt: skip
def test_a_text_where_a_table_is_wanted_says_how_a_table_is_written(tmp_path, name, said):
    with pytest.raises(InputError, match=said):
        TableFields({"topology": "star"}, tmp_path / name).table("topology")
