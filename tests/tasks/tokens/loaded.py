"""What a page would load from elsewhere, and that it loads nothing."""

from __future__ import annotations

from html.parser import HTMLParser


class Resources(HTMLParser):
    """Tags and what they would load from elsewhere."""

    def __init__(self):
        super().__init__()
        self.tags, self.loaded = set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.loaded += [value for name, value in attrs if name in ("src", "href", "srcset", "data")]


def assert_loads_nothing(text: str) -> None:
    """A page needs neither a network nor a script."""
    found = Resources()
    found.feed(text)
    assert found.loaded == [] and "script" not in found.tags and "url(" not in text and "@import" not in text
