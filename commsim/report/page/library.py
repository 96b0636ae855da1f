"""The script that draws the figures of pages: Vega, Vega-Lite and vega-embed, as vl-convert carries them."""

from __future__ import annotations

import functools

from commsim.core.errors import InputError


def require_library() -> None:
    """Refuse before anything is computed.

    Raises
    ------
    InputError
        If vl-convert is not installed.
    """
    try:
        import vl_convert  # noqa: F401
    except ImportError:
        raise InputError("pages need vl-convert: pip install 'commsim[report]'") from None


@functools.cache
def library() -> str:
    """Return the script; it defines ``vegaEmbed`` and ``vega`` and loads nothing.

    Raises
    ------
    InputError
        If vl-convert is not installed.
    """
    require_library()
    import vl_convert

    bundle = vl_convert.javascript_bundle()  # type: ignore[call-arg,unused-ignore]  # its types forget the default
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")
