"""Pages from Jinja2 templates: one HTML file each, without scripts, that loads nothing from elsewhere."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

SHARED = Path(__file__).parent / "templates"  # has the frame and the style of all pages


def render(template: Path, **values: Any) -> str:
    """Fill in a template; all values are escaped.

    >>> print(render(SHARED / "page.html.j2", heading="<1>", about=[]).splitlines()[-4])
    <h1>&lt;1&gt;</h1>
    """
    return _environment(template.parent).get_template(template.name).render(**values)


@lru_cache
def _environment(folder: Path) -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader([folder, SHARED]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "px": "{:.1f}".format}
    return environment


def number(value: float, *, signed: bool = False) -> str:
    """A number with up to three decimals, without trailing zeros.

    >>> number(2.0), number(0.12345), number(1.0, signed=True), number(-0.00001)
    ('2', '0.123', '+1', '0')
    """
    text = f"{value:.3f}".rstrip("0").rstrip(".")
    text = "0" if text in ("-0", "") else text
    return f"+{text}" if signed and value > 0 and text != "0" else text.replace("-", "−") if signed else text
