"""Small files for every estimator, on which the options of all commands are tried."""

from __future__ import annotations

from pathlib import Path

SENTENCES = [
    [("the", "DET", "DT", 2, "det"), ("dog", "NOUN", "NN", 3, "nsubj"), ("barks", "VERB", "VBZ", 0, "root")],
    [("a", "DET", "DT", 2, "det"), ("cat", "NOUN", "NN", 3, "nsubj"), ("sees", "VERB", "VBZ", 0, "root"),
     ("dogs", "NOUN", "NNS", 3, "obj"), (".", "PUNCT", ".", 3, "punct")],
    [("dogs", "NOUN", "NNS", 2, "nsubj"), ("bark", "VERB", "VBP", 0, "root"), (".", "PUNCT", ".", 2, "punct")],
    [("barks", "NOUN", "NNS", 2, "nsubj"), ("dog", "VERB", "VBP", 0, "root"), ("the", "DET", "DT", 4, "det"),
     ("cat", "NOUN", "NN", 2, "obj")],
]  # fmt: skip
COLOURS = ("red", "blue")
ROWS = [(age, colour) for age in range(20, 60) for colour in COLOURS]
ANSWERS = [(age, colour, "no" if age < 40 else "yes" if colour == "red" else "ask") for age, colour in ROWS]


def write_files(folder: Path) -> Path:
    """Data, templates, clusters, costs and a label map."""
    lines = []
    for sentence in SENTENCES * 4:
        for k, (word, upos, xpos, head, relation) in enumerate(sentence, 1):
            entity = "B-X" if upos == "NOUN" else "I-X" if upos == "VERB" else "O"
            misc = f"Alt={upos.replace('VERB', 'ACT')}|NER={entity}"
            cells = (k, word, word[:2], upos, xpos, "_", head, relation, "_", misc)
            lines.append("\t".join(map(str, cells)))
        lines.append("")
    (folder / "data.conllu").write_text("\n".join(lines) + "\n")
    (folder / "templates").write_text("word\n")
    (folder / "parser-templates").write_text("S0.word\nN0.word\n")
    (folder / "clusters").write_text("dog\t01\ncat\t01\nthe\t10\n")
    rows = ["age,colour,number,answer", *(f"{age},{colour},{7 * age % 5},{answer}" for age, colour, answer in ANSWERS)]
    (folder / "data.csv").write_text("\n".join(rows) + "\n")
    (folder / "costs.csv").write_text("ask,no,yes\n0,9,9\n1,0,1\n1,1,0\n")
    (folder / "map.csv").write_text("ask,no\nno,no\nyes,yes\n")
    return folder
