import contextlib
import gzip
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from no_files import check_only_files_are_read

from commsim.core.errors import InputError
from commsim.formats import markup
from commsim.formats.markup import outermost_tag, read_xml, read_yaml, write_yaml


def test_elements_know_their_line_and_what_is_in_them(tmp_path):
    path = tmp_path / "x.xml"
    path.write_text('<a one="1">\n <b/>\n <!-- a remark -->\n <b two="0x10"><c/></b>\n</a>\n')
    top = read_xml(path)
    assert (top.tag, top.line, top.text("one"), top.text("none", "")) == ("a", 1, "1", "")
    assert [(b.tag, b.line) for b in top.all("b")] == [("b", 2), ("b", 4)]
    assert top.all("b")[1].whole("two") == 16
    assert top.all("b")[0].whole("two", 7) == 7


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('<!DOCTYPE a [<!ENTITY x "y">]>\n<a>&x;</a>', "line 1: a document type or an entity is refused"),
        ('<?xml version="1.0"?>\n<!DOCTYPE a SYSTEM "file:///etc/passwd">\n<a/>', "line 2: a document type"),
        ("<a>\n<b>\n</a>", "line 3: mismatched tag"),
        ("<a>\n&x;</a>", "line 2: undefined entity"),
        ("", "line 1: no element found"),
        ("<a/>\n<b/>", "line 2: junk after document element"),
        ("<a>" * 65 + "</a>" * 65, "line 1: <a> is nested more than 64 deep"),
        ('<?xml version="1.0" encoding="no-such"?><a/>', "line 1: unknown encoding"),
    ],
)
def test_what_is_no_plain_xml_is_refused_with_its_line(tmp_path, text, message):
    path = tmp_path / "x.xml"
    path.write_text(text)
    with pytest.raises(InputError) as refusal:
        read_xml(path)
    assert str(refusal.value).startswith(f"{path}, {message}")


def test_many_entities_inside_each_other_take_no_memory(tmp_path):
    bomb = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10 if i else "x"}">' for i in range(20))
    (tmp_path / "x.xml").write_text(f"<!DOCTYPE a [{bomb}]><a>&a19;</a>")
    with pytest.raises(InputError, match="refused"):
        read_xml(tmp_path / "x.xml")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            lambda: b"<a " + b" ".join(b'x%d="1"' % i for i in range(200_000)) + b"/>",
            "a tag, with the text behind it, has",
        ),
        (lambda: b"<a>" + b"<b/>" * 3_000_000 + b"</a>", "3000002 tags are more than"),
        (lambda: b"<a>" + b"x" * 100_000 + b"</a>", "a tag, with the text behind it, has"),
        (lambda: b"<a>" + b"x<!---->" * 100_000 + b"</a>", "has more than 65536 characters inside it"),
        (lambda: gzip.compress(bytes(2**25)), "unpacks to more than 16 MiB"),
    ],
)
def test_a_file_that_is_large_in_any_way_is_refused_early(tmp_path, data, message):
    path = tmp_path / "x.xml"
    path.write_bytes(data())
    with pytest.raises(InputError, match=message):
        read_xml(path)


def test_a_file_of_too_many_elements_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(markup, "MAX_ELEMENTS", 1000)
    path = tmp_path / "x.xml"
    path.write_bytes(b"<a>" + b"<b/>" * 999 + b"</a>")
    assert len(read_xml(path).children) == 999
    path.write_bytes(b"<a>" + b"<b/>" * 1001 + b"</a>")
    with pytest.raises(InputError, match="is one of more than 1000 elements"):
        read_xml(path)


def test_a_million_attributes_take_no_more_memory_than_the_file(tmp_path):
    path = tmp_path / "x.xml"
    path.write_bytes(b"<a " + b" ".join(b'x%d="1"' % i for i in range(10**6)) + b"/>")
    tracemalloc.start()
    with pytest.raises(InputError, match="bytes, more than 65536"):
        read_xml(path)
    assert tracemalloc.get_traced_memory()[1] < 4 * path.stat().st_size
    tracemalloc.stop()


def test_the_outermost_element_is_found_without_reading_the_others(tmp_path):
    path = tmp_path / "x.xml"
    path.write_text("<?xml version='1.0'?><!-- y --><g:a><b/>" + " " * 200_000)  # has no end
    with pytest.raises(InputError):
        outermost_tag(path)  # so much text behind one tag
    path.write_text("<?xml version='1.0'?><!-- y --><g:a>" + "<b/>" * 100_000)
    assert outermost_tag(path) == "a"
    with pytest.raises(InputError, match="no element found"):
        read_xml(path)


def test_text_inside_an_element_is_kept_up_to_its_first_child(tmp_path):
    (tmp_path / "x.xml").write_text("<a>one &amp; <!-- x -->two<b>three</b>four</a>")
    top = read_xml(tmp_path / "x.xml")
    assert (top.content, top.children[0].content) == ("one & two", "three")


def test_a_missing_and_an_endless_file_are_refused(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"none\.xml: No such file"):
        read_xml(tmp_path / "none.xml")
    monkeypatch.setattr("commsim.formats.markup.MAX_XML_BYTES", 3)
    (tmp_path / "x.xml").write_text("<a/>")
    with pytest.raises(InputError, match="larger than"):
        read_xml(tmp_path / "x.xml")


@pytest.mark.parametrize("value", ["", "x", "-1", "1.5", "1_0", "9" * 30, "0x"])
def test_an_attribute_that_is_no_count_is_refused_by_name(tmp_path, value):
    (tmp_path / "x.xml").write_text(f'<a>\n<b n="{value}"/></a>')
    with pytest.raises(InputError, match="line 2: <b> n must be a whole number of at least 0, got"):
        read_xml(tmp_path / "x.xml").children[0].whole("n")


@given(data=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "bytes.xml"
    path.write_bytes(data)
    with contextlib.suppress(InputError):  # anything else fails the test
        assert read_xml(path).tag


TREES = st.recursive(
    st.text(st.characters(exclude_categories=("C",)), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc01-", min_size=1), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.slow
@given(st.dictionaries(st.text("abc", min_size=1), TREES, min_size=1))
def test_text_comes_back_as_it_was(tree):
    assert read_yaml(write_yaml([tree], ("a comment",)), "f") == tree


def test_scalars_stay_the_text_that_stands_there():
    assert read_yaml("[007, yes, 2026-01-01, 1e3, ~]", "f") == ["007", "yes", "2026-01-01", "1e3", "~"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &x [1]\nb: *x", "line 1: anchors and aliases are refused"),
        ("a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]", "anchors and aliases are refused"),
        ("[" * 2000, "f"),
        ("[" * 40 + "]" * 40, "nested more than 32 deep"),
        ("a: 1\na: 2", "line 2: key 'a' appears twice"),
        ("? [1]\n: 2", "line 1: a key must be text"),
        ("a: [1", "line 1|line 2"),
        ("a: b\n---\nc: d", "line 2"),
        ("\x00", "f"),
        ("a: !!python/object/apply:os.system [x]\nb: *y", "line 2"),
    ],
)
def test_what_could_harm_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        read_yaml(text, "f")


@pytest.mark.parametrize("read", [read_xml, outermost_tag])
def test_only_regular_files_are_read(tmp_path, read):
    check_only_files_are_read(read, tmp_path)
