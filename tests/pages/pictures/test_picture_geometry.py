"""Pictures without a browser: at 8 to 8,192 hosts texts are apart, inside of the picture, and can be read."""

import functools
import re

import numpy as np
import pytest

from commsim.pages.palette import CHART, DARK_CHART, FAINT, FILL, INK
from commsim.pages.pictures.network_picture import draw_network
from commsim.pages.pictures.paint import svg_text
from commsim.pages.pictures.picture import Label, Rectangle, text_width
from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network

NETWORKS = {
    8: "leaf_spine:n_leaves=2,n_spines=4,hosts_per_leaf=4",
    128: "fat_tree:k=8",
    1024: "leaf_spine:n_leaves=32,n_spines=16,hosts_per_leaf=32",
    8192: "fat_tree:k=32",
}


@functools.cache
def picture(n_hosts):
    network = load_network(NETWORKS[n_hosts])
    assert len(network.hosts) == n_hosts
    result = prepare("binomial_broadcast", network).predict(2**20) if n_hosts < 1000 else None
    return draw_network(network, result)[0]


def boxes_of(labels):
    """Corners of texts: 0.8 of the size is as high as capitals and what reaches below the line."""
    shift = {"start": 0.0, "middle": 0.5, "end": 1.0}
    width = np.array([text_width(one.text, one.size) for one in labels])
    left = np.array([one.x for one in labels]) - width * [shift[one.anchor] for one in labels]
    y, half = np.array([one.y for one in labels]), 0.4 * np.array([one.size for one in labels])
    return np.stack((left, y - half, left + width, y + half), axis=1)


def luminance(colour):
    """Relative luminance of the Web Content Accessibility Guidelines 2.2."""
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(a, b):
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("n_hosts", NETWORKS)
def test_texts_are_apart_and_inside(n_hosts):
    drawn = picture(n_hosts)
    labels = [shape for shape in drawn.shapes if isinstance(shape, Label)]
    at = boxes_of(labels)
    assert (at[:, :2] >= 0).all()
    assert (at[:, 2:] <= [drawn.width, drawn.height]).all()
    both = np.minimum(at[:, None, 2:], at[None, :, 2:]) - np.maximum(at[:, None, :2], at[None, :, :2])
    first, second = np.nonzero(np.triu((both > 0.5).all(axis=2), 1))
    assert [(labels[i].text, labels[j].text) for i, j in zip(first, second, strict=True)] == []


@pytest.mark.parametrize("n_hosts", NETWORKS)
def test_texts_stand_out_from_what_is_below_them(n_hosts):
    ground = "#ffffff"
    sheets = []
    for shape in picture(n_hosts).shapes:
        if isinstance(shape, Rectangle) and shape.fill.startswith("#"):
            sheets.append(shape)
        elif isinstance(shape, Label):
            below = [s.fill for s in sheets if 0 <= shape.x - s.x <= s.width and 0 <= shape.y - s.y <= s.height]
            assert contrast(shape.colour, (below or [ground])[-1]) >= 4.5, shape.text


@pytest.mark.parametrize("n_hosts", NETWORKS)
def test_a_picture_is_shown_at_most_2000_pixels_wide(n_hosts):
    width = float(re.search(r'<svg [^>]*?\bwidth="([\d.]+)', svg_text(picture(n_hosts)))[1])
    assert width <= 2000


def test_colours_of_charts_can_be_read_on_light_and_dark_pages():
    for chart in (CHART, DARK_CHART):
        for text in ("ink", "faint"):
            assert contrast(chart[text], chart["paper"]) >= 4.5
    assert min(contrast(colour, DARK_CHART["paper"]) for colour in DARK_CHART["series"]) >= 3
    assert min(contrast(INK, fill) for fill in FILL.values()) >= 4.5
    assert contrast(FAINT, "#ffffff") >= 4.5
    # what is idle stands back behind the least load and the most, on both
    for chart in (CHART, DARK_CHART):
        ends = ["#" + "".join(f"{channel:02x}" for channel in chart["load"][end]) for end in (0, -1)]
        assert contrast(chart["idle"], chart["paper"]) < 2.2
        assert chart["idle"] not in ends
