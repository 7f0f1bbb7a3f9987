"""Draw the pictures of the guides: a parse explained, confidence and accuracy, a bandit's loss and regret.

    LOLS_DATA=FOLDER python docs/tools/guides.py [NAME...]

The first two learn from the public treebank EWT in the folder of data sets. Writes docs/pictures/.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import lols
from lols.bandit.worlds.outcome import summarise
from lols.bandit.worlds.simulate import simulate_seeds
from lols.bandit.worlds.world import WorldSpec
from lols.plots.bandit import bandit_figure
from lols.plots.look import LINE, SERIES, SOFT, drawing, new_figure
from lols.plots.scores import reliability_figure

sys.path.insert(0, str(Path(__file__).parent))

from pictures import PICTURES, write

WIDTH, HEIGHT = 1060, 1230  # of the explained parse
FRAME = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">
<style>{style}
main {{ padding: 12px 16px; }} figure.of-tree {{ width: auto; max-width: none; left: 0; transform: none; }}
body {{ background: none; }} .waiting {{ font-size: 13px; color: var(--soft); }}</style>
<foreignObject width="{width}" height="{height}"><body xmlns="http://www.w3.org/1999/xhtml">{body}</body></foreignObject>
</svg>
"""


def sentences(name: str) -> list[Any]:
    """The sentences of a file of the treebank."""
    path = Path(os.environ["LOLS_DATA"]) / f"ewt-{name}.conllu.gz"
    return list(lols.io.read_conllu(path))


def parse() -> None:
    """The page of `lols explain --html`: a parser's decisions for a sentence, and what others would cost."""
    train = sentences("train")[:5000]
    parser = lols.Parser(seed=1).fit(train, [sentence.tree for sentence in train])
    parser.save("parser.lols")
    few = [each for each in sentences("dev") if len(each) == 6]
    predicted = parser.predict(few)
    wrong = [sum(head != found[0] for (head, _), found in zip(each.tree, tree)) for each, tree in zip(few, predicted)]
    chosen = few[wrong.index(1)]
    print(chosen.words)
    lols.io.write_conllu("one.conllu", [chosen])
    page = parser.explain_file("one.conllu", 1, top=2).page()
    body = re.search(r"<body>(.*)</body>", page, re.S)[1]  # type: ignore[index]
    style = re.sub(r"@media \(max-width.*", "", re.search(r"<style>(.*?)</style>", page, re.S)[1])  # type: ignore[index]
    body = re.sub(
        r"<details.*?<summary>(.*?)</summary>.*?</details>", r"<span class='waiting'>\1</span>", body, flags=re.DOTALL
    )
    picture = FRAME.format(width=WIDTH, height=HEIGHT, style=style, body=body)
    (PICTURES / "parse.svg").write_text(picture, "utf-8")


def reliability() -> None:
    """Confidence and accuracy of a tagger on test data."""
    train, dev, test = (sentences(name) for name in ("train", "dev", "test"))
    tags = [[each.tags("upos") for each in part] for part in (train, dev, test)]
    words = [[each.words for each in part] for part in (train, dev, test)]
    tagger = lols.Tagger(seed=1).fit(words[0], tags[0], dev=(words[1], tags[1]))
    seen = tagger.evaluate(words[2], tags[2]).reliability
    print(seen.error)
    write(reliability_figure({"": seen}), PICTURES / "reliability.svg")


def bandit() -> None:
    """A bandit's loss on generated pages, with the options of docs/bandit.md."""
    options = {"epsilon": 0.2, "randomise": "steps"}
    outcomes = simulate_seeds(WorldSpec("layout"), options, 20000, range(5), jobs=1)
    write(bandit_figure(summarise(outcomes)), PICTURES / "bandit.svg")


@drawing
def regret() -> Any:
    """The regret of Algorithm 2 by rounds: the table of docs/results/bandit.md on logarithmic scales."""
    text = (PICTURES.parent / "results" / "bandit.md").read_text("utf-8")
    table = text[text.index("| 20 seeds, mean | N = 10³ |") :].partition("\n\n")[0]
    rows = [[cell.strip(" *") for cell in line.split("|")[1:6]] for line in table.splitlines()[2:]]
    shown = {"ε(N)": 4, "ridge, left side": 0, "ridge, including exploration": 3, "adagrad, left side, 4 seeds": 2}
    shown["nag, left side, 4 seeds"] = 1
    figure = new_figure(7.2, 4.2)
    axes = figure.subplots()
    for name, *cells in rows:
        if name in shown:
            points = [(10**k, float(cell)) for k, cell in enumerate(cells, start=3) if cell]
            axes.plot(*zip(*points), label=name, **SERIES[shown[name]])
    axes.plot([1e3, 1e6], [0.3, 0.03], color=LINE, linewidth=1.2)
    axes.text(2e3, 0.265, "slope -1/3", color=SOFT, fontsize=9)
    axes.set(xscale="log", yscale="log", xlabel="rounds N", ylabel="regret")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.legend(loc="lower left")
    write(figure, PICTURES / "regret.svg")


def main(names: list[str]) -> None:
    """Draw all pictures, or those named."""
    drawn = {"parse": parse, "reliability": reliability, "bandit": bandit, "regret": regret}
    for name in names or drawn:
        print(name, flush=True)
        drawn[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
