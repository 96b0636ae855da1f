"""Write the page that shows cost models: template, style, evaluator and script in one file that loads nothing."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import resources

from commsim.costmodel.cost_model_file import read_cost_model

PLACES = ("POLICY", "STYLE", "MODEL", "SCRIPT")


def page_text(path: str | None = None) -> str:
    """Return the page.

    Parameters
    ----------
    path : str, optional
        Cost model that it shows when it is opened. Default: none, until one is loaded in it.

    Raises
    ------
    InputError
        If the file is wrong.
    """
    style, script = _text("cost_model_page.css"), _script()
    policy = f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'"
    model = "" if path is None else json.dumps(read_cost_model(path), separators=(",", ":")).replace("<", "\\u003c")
    parts = dict(zip(PLACES, (policy, style, model, script), strict=True))
    page = _text("cost_model_page.html")
    pieces = page.split("@@")  # text and names of places by turns
    return "".join(parts[piece] if i % 2 else piece for i, piece in enumerate(pieces))


def _script() -> str:
    evaluator = resources.files("commsim.costmodel.evaluators") / "cost_model.js"
    return f"{evaluator.read_text(encoding='utf-8')}\n{_text('cost_model_page.js')}"


def _text(name: str) -> str:
    return (resources.files("commsim.costmodel.page") / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
