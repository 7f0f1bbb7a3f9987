"""The parser's templates where none are given: Zhang & Nivre (2011), fitted to arc-hybrid."""

from __future__ import annotations

from collections.abc import Sequence

WORDS = """
S0..1.lower
S2.lower
N0..2.lower
S0l.lower
S0r.lower
S1l.lower
S1r.lower
N0l.lower
S0..1.suffix2..3
N0..1.suffix2..3
S0..1.shape
N0.shape
S0.lower & N0.lower
S1.lower & S0.lower
"""

TAGS = """
S0..2.{p}
N0..3.{p}
S0l.{p}
S0r.{p}
S1l.{p}
S1r.{p}
N0l.{p}
S0.lower & S0.{p}
S1.lower & S1.{p}
N0.lower & N0.{p}
N1.lower & N1.{p}
S0.{p} & N0.{p}
S1.{p} & S0.{p}
S0.lower & S0.{p} & N0.lower & N0.{p}
S0.lower & N0.{p}
S0.{p} & N0.lower
S1.lower & S0.{p}
S1.{p} & S0.lower
S1.{p} & N0.{p}
S1.lower & N0.{p}
S1.{p} & N0.lower
N0.{p} & N1.{p}
S0.{p} & N1.{p}
S0.{p} & N0.{p} & N1.{p}
S1.{p} & S0.{p} & N0.{p}
S2.{p} & S1.{p} & S0.{p}
N0.{p} & N1.{p} & N2.{p}
S0.{p} & N0.{p} & distance(S0,N0)
S1.{p} & S0.{p} & distance(S1,S0)
S0.{p} & S0l.{p} & N0.{p}
S0.{p} & S0r.{p} & N0.{p}
S0.{p} & N0.{p} & N0l.{p}
S1.{p} & S0.{p} & S0l.{p}
S1.{p} & S0.{p} & S0r.{p}
S1.{p} & S1l.{p} & S0.{p}
S1.{p} & S1r.{p} & S0.{p}
S0.{p} & S0.lefts
S0.{p} & S0.rights
S1.{p} & S1.rights
S1.{p} & S1.lefts
N0.{p} & N0.lefts
"""

# Besides these, parsers that give relations look at relations and at more at once; for others that gained nothing.
MORE_WORDS = """
S0.lower & N0.lower & distance(S0,N0)
S1.lower & S0.lower & distance(S1,S0)
S0.lower & distance(S0,N0)
N0.lower & distance(S0,N0)
S0.lower & S0.lefts
S0.lower & S0.rights
S1.lower & S1.rights
N0.lower & N0.lefts
S0.lower & S0.right-set
S0.lower & S0.left-set
N0.lower & N0.left-set
S1.lower & S1.right-set
S0l.relation
S0r.relation
S0l2.relation
S0r2.relation
S1l.relation
S1r.relation
S1r2.relation
N0l.relation
N0l2.relation
S0.lower & S0r.relation
S1.lower & S1r.relation
N0.lower & N0l.relation
"""

MORE_TAGS = """
S3.{p}
S0l2.{p}
S0r2.{p}
S1l2.{p}
S1r2.{p}
N0l2.{p}
S0.lower & S0.{p} & N0.lower
S0.lower & N0.lower & N0.{p}
S0.lower & S0.{p} & N0.{p}
S0.{p} & N0.lower & N0.{p}
S0.{p} & distance(S0,N0)
N0.{p} & distance(S0,N0)
S1.{p} & S1r.{p} & S1r2.{p}
S0.{p} & S0l.{p} & S0l2.{p}
S0.{p} & S0r.{p} & S0r2.{p}
N0.{p} & N0l.{p} & N0l2.{p}
S0.{p} & S0.right-set
S0.{p} & S0.left-set
N0.{p} & N0.left-set
S1.{p} & S1.right-set
S0.{p} & N0.{p} & S0[+1].{p}
S0.{p} & N0.{p} & N0[-1].{p}
S1.{p} & S0.{p} & S0[-1].{p}
"""

# The coarser tags, where there are two kinds.
COARSE_TAGS = """
S0..2.{q}
N0..2.{q}
S0l.{q}
S0r.{q}
S1r.{q}
N0l.{q}
S0.{q} & N0.{q}
S1.{q} & S0.{q}
S1.{q} & S0.{q} & N0.{q}
S0.{q} & N0.{q} & N1.{q}
S0.lower & N0.{q}
S0.{q} & N0.lower
S1.lower & S0.{q}
S1.{q} & S0.lower
"""

FEATURES = """
S0..1.{f}
N0..1.{f}
S0.{f} & N0.{f}
S1.{f} & S0.{f}
S0.{f} & S0.{p} & N0.{p}
S0.{p} & N0.{p} & N0.{f}
"""


def default_parsing_templates(columns: Sequence[str], labelled: bool = True) -> list[str]:
    """The templates for these columns: `xpos` and `upos` are tags, others are looked at like `feats`.

    >>> len(default_parsing_templates(["word"])) < len(default_parsing_templates(["word", "upos"]))
    True
    """
    tags = [name for name in ("xpos", "upos") if name in columns]
    others = [name for name in columns if name not in ("word", "lemma", *tags)]
    if not tags and others:
        tags, others = others[:1], others[1:]
    blocks = [WORDS] + ([MORE_WORDS] if labelled else [])
    if tags:
        blocks += [block.format(p=tags[0]) for block in (TAGS, *([MORE_TAGS] if labelled else []))]
    if len(tags) > 1:
        blocks.append(COARSE_TAGS.format(q=tags[1]))
    blocks += [FEATURES.format(p=tags[0], f=name) for name in others]
    return [line for block in blocks for line in block.split("\n") if line]
