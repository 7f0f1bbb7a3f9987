"""A hook of hatchling: the README as package indexes show it, where links into the repository lead nowhere.

With `Repository` among the project's URLs, links and pictures become absolute. Without it, pictures are left out, and
links become their text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"!\[([^\]]*)\]\((?!https?:)([^)\s]+)\)\n*")
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:)([^)\s]+)\)")


def for_index(text: str, repository: str | None) -> str:
    """The text of a README without relative links.

    >>> for_index("![Loss](docs/loss.png)\\n\\nSee [the tutorial](docs/tutorial.md).", None)
    'See the tutorial.'
    >>> for_index("![Loss](docs/loss.png)", "https://example.org/lols")
    '![Loss](https://example.org/lols/raw/HEAD/docs/loss.png)'
    """
    parts = FENCE.split(text)
    for k in range(0, len(parts), 2):  # between the blocks of code
        if repository is None:
            parts[k] = LINK.sub(r"\1", PICTURE.sub("", parts[k]))
        else:
            home = repository.rstrip("/")
            parts[k] = re.sub(r"(!\[[^\]]*\]\()(?!https?:)([^)\s]+\))", rf"\1{home}/raw/HEAD/\2", parts[k])
            parts[k] = LINK.sub(rf"[\1]({home}/blob/HEAD/\2)", parts[k])
    return "".join(parts)


def get_metadata_hook() -> Any:
    """The hook, as hatchling asks for it."""
    from hatchling.metadata.plugin.interface import MetadataHookInterface

    class IndexReadme(MetadataHookInterface):
        def update(self, metadata: dict[str, Any]) -> None:
            text = Path(self.root, "README.md").read_text("utf-8")
            shown = for_index(text, metadata.get("urls", {}).get("Repository"))
            metadata["readme"] = {"content-type": "text/markdown", "text": shown}

    return IndexReadme
