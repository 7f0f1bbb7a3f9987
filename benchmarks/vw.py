"""Vowpal Wabbit on the tagging benchmark: its built-in C++ task, and the same task written against its Python hook.

``python -m benchmarks.vw [--passes 1] [--tokens 800]`` prints what both reach; ``python -m benchmarks.vw --tagging``
prints how fast the command line tags a large file. Needs ``pip install vowpalwabbit``.

The strategies carry this project's names (*learned, reference, mixture, none*). Vowpal Wabbit's mixture is annealed,
not constant: the learned policy's share is 1-(1-alpha)^t after t training examples, so alpha is chosen such that it
passes one half half-way through training; its mean share is then about that of a constant mixture of one half.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from vowpalwabbit import pyvw

from benchmarks import corpora
from benchmarks.data import Sentence, count_tokens, load

__all__ = ["ROLL_OUTS", "Result", "TagResult", "annealing_rate", "builtin", "hook", "parser", "run", "tag_file"]
__all__ += ["write", "write_trees"]

ROLL_OUTS = ("none", "reference", "mixture", "learned")
_STRATEGIES = {"none": "none", "reference": "ref", "mixture": "mix", "learned": "learn"}
_PARSER = "--search_task dep_parser --search 5 --one_learner --root_label 2 --num_label 2 --search_history_length 3 "
_PARSER += "--search_no_caching -b 24 --holdout_off"
_HELD_OUT_SENTENCES = 100


class Result(NamedTuple):
    """What one training run reached.

    ``seconds`` is training's wall time without start-up, and ``tokens_per_second`` = tokens x passes / ``seconds``.
    ``cpu_seconds`` is user and system time over the same stretch; it exceeds ``seconds`` where Vowpal Wabbit's parser
    thread runs beside its learner. ``startup_seconds`` is the wall time that was subtracted.
    """

    accuracy: float
    tokens_per_second: float
    seconds: float
    cpu_seconds: float
    startup_seconds: float


class TagResult(NamedTuple):
    """How fast a file was tagged; ``seconds`` is wall time without start-up, which is ``startup_seconds``.

    ``cores`` is user CPU time over wall time, start-up taken from both: more than 1 where reading, tagging and writing
    overlap in threads.
    """

    tokens_per_second: float
    seconds: float
    startup_seconds: float
    cores: float


def annealing_rate(tokens: int, passes: int) -> float:
    """Return the alpha with which the learned policy's share, 1-(1-alpha)^t, is one half half-way through training.

    >>> f"{annealing_rate(81_938, 5):.1e}"
    '3.4e-06'
    """
    return -math.expm1(math.log(0.5) / (tokens * passes / 2))


def builtin(
    train: list[Sentence],
    test: list[Sentence],
    n_labels: int,
    roll_in: str,
    roll_out: str,
    passes: int,
    workdir: Path,
) -> Result:
    """Train and test the built-in sequence task in a process of its own, as a user of the command line would."""
    train_file, tiny_file, test_file = (workdir / name for name in ("train.vw", "tiny.vw", "test.vw"))
    for file, sentences in ((train_file, train), (tiny_file, train[:1]), (test_file, test)):
        write(file, sentences)
    tokens = count_tokens(train)
    options = ["--search_task", "sequence", "--search", str(n_labels), "--affix", "-2w,+2w"]
    options += ["--search_neighbor_features", "-1:w,1:w", "-b", "24", "--holdout_off"]
    options += ["--search_rollin", _STRATEGIES[roll_in], "--search_rollout", _STRATEGIES[roll_out]]
    if "mixture" in (roll_in, roll_out):
        options += ["--search_alpha", repr(annealing_rate(tokens, passes))]

    def fit(file: Path) -> tuple[float, float]:
        # A cache is only there to be read again; on a single pass it would be work for nothing.
        again = ["-k", "--cache_file", f"{file}.cache", "--passes", str(passes)] if passes > 1 else []
        return run(["-d", str(file), *again, *options, "-f", f"{file}.model"])

    # One sentence costs what start-up costs: the interpreter, the weights' allocation, the scan that saves the model.
    startup_wall, startup_cpu = fit(tiny_file)
    wall, cpu = fit(train_file)
    predictions = workdir / "predictions.txt"
    run(["-d", str(test_file), "-t", "-i", f"{train_file}.model", "-p", str(predictions)])
    seconds = wall - startup_wall
    return Result(_accuracy(predictions, test), tokens * passes / seconds, seconds, cpu - startup_cpu, startup_wall)


def parser(
    train: list[corpora.Tree], test: list[corpora.Tree], roll_in: str, roll_out: str, passes: int, workdir: Path
) -> Result:
    """Train and test the built-in parser likewise; the accuracy is UAS, with words that it leaves headless repaired."""
    files = train_file, tiny_file, test_file = tuple(workdir / name for name in ("train.vw", "tiny.vw", "test.vw"))
    for file, trees in zip(files, (train, train[:1], test), strict=True):
        write_trees(file, trees)
    tokens = sum(len(tree.words) for tree in train)
    options = [*_PARSER.split(), "--search_rollin", _STRATEGIES[roll_in], "--search_rollout", _STRATEGIES[roll_out]]
    if "mixture" in (roll_in, roll_out):  # it is annealed with every decision: about 2n - 4 in a sentence of n words
        options += ["--search_alpha", repr(annealing_rate(2 * tokens - 4 * len(train), passes))]
    if passes > 1:
        options += ["-k", "--cache_file", str(workdir / "cache"), "--passes", str(passes)]
    (startup, startup_cpu), (wall, cpu) = (
        run(["-d", str(file), *options, "-f", f"{file}.model"]) for file in (tiny_file, train_file)
    )
    predictions = workdir / "predictions.txt"
    run(["-d", str(test_file), "-t", "-i", f"{train_file}.model", "-p", str(predictions)])
    heads = [[int(word.partition(":")[0]) for word in block.split()] for block in corpora.blocks(predictions)]
    uas = corpora.attachment(test, [corpora.repaired(found) for found in heads])
    return Result(uas, tokens * passes / (wall - startup), wall - startup, cpu - startup_cpu, startup)


def tag_file(model: Path, test_file: Path, workdir: Path) -> TagResult:
    """Tag a file in Vowpal Wabbit's format by its command line, from file to file; predictions go to ``workdir``.

    Start-up (the interpreter, loading the model) is what the same command takes on the file's first sentence.
    """
    first_file, predictions = workdir / "first.vw", workdir / "tagged.txt"
    tokens = 0
    with test_file.open("rb") as lines, first_file.open("wb") as first:
        ended = False
        for line in lines:
            tokens += line != b"\n"
            if not ended:
                first.write(line)
            ended = ended or line == b"\n"

    def tag(file: Path) -> tuple[float, float]:
        before = os.times().children_user
        wall, _ = run(["-d", str(file), "-t", "-i", str(model), "-p", str(predictions)])
        return wall, os.times().children_user - before

    startup_wall, startup_user = tag(first_file)
    wall, user = tag(test_file)
    with predictions.open("rb") as lines:
        tagged = sum(len(line.split()) for line in lines)
    if tagged != tokens:
        raise RuntimeError(f"{test_file} has {tokens} tokens, of which {tagged} were tagged; correct its format")
    seconds = wall - startup_wall
    return TagResult(tokens / seconds, seconds, startup_wall, (user - startup_user) / seconds)


def hook(
    train: list[Sentence],
    n_labels: int,
    roll_out: str,
    max_tokens: int,
    *,
    roll_in: str = "learned",
    tuned: bool = True,
) -> Result:
    """Train the hook's task for one pass on the sentences that make up the first ``max_tokens`` tokens.

    ``tuned=False`` builds an example for every prediction and names what it conditions on, as Vowpal Wabbit's own demos
    do; ``tuned=True`` is the fastest equivalent found: examples are built only when asked for and kept for the
    sentence's other roll-outs, and nothing is conditioned on, since the features hold the history already.
    The accuracy is that on the next sentences, up to a hundred; nan where none are left.
    """
    chosen, held_out = _split(train, max_tokens)
    tokens = count_tokens(chosen)
    options = f"--quiet -b 24 --search {n_labels} --search_task hook"
    options += f" --search_rollin {_STRATEGIES[roll_in]} --search_rollout {_STRATEGIES[roll_out]}"
    if "mixture" in (roll_in, roll_out):
        options += f" --search_alpha {annealing_rate(tokens, 1)!r}"
    started = time.perf_counter()
    workspace = pyvw.Workspace(options)
    task = workspace.init_search_task(_TunedTagging if tuned else _DocumentedTagging)
    startup_wall = time.perf_counter() - started
    wall, cpu = time.perf_counter(), time.process_time()
    task.learn(chosen)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    correct = sum(
        guess == tag + 1
        for sentence in held_out
        for guess, tag in zip(task.predict(sentence), sentence.tags, strict=True)
    )
    accuracy = correct / count_tokens(held_out) if held_out else math.nan
    return Result(accuracy, tokens / wall, wall, cpu, startup_wall)


def write(file: Path, sentences: list[Sentence], *, repeats: int = 1, labels: bool = True) -> None:
    """Write one token a line, labels from 1 where asked for, and an empty line after each sentence."""
    text = "".join(
        "".join(
            f"{tag + 1 if labels else ''} |w {_escape(word)}\n"
            for word, tag in zip(sentence.words, sentence.tags, strict=True)
        )
        + "\n"
        for sentence in sentences
    )
    with file.open("w", encoding="utf-8") as out:
        for _ in range(repeats):
            out.write(text)


def write_trees(file: Path, trees: list[corpora.Tree], *, repeats: int = 1) -> None:
    """Write one token a line: its head and 2 for a root, 1 for another, the word and its tag."""
    with file.open("w", encoding="utf-8") as out:
        for tree in trees * repeats:
            for word, tag, head in zip(*tree, strict=True):
                out.write(f"{head},{1 if head else 2} |w {_escape(word)} |p {_escape(tag)}\n")
            out.write("\n")


class _DocumentedTagging(pyvw.SearchTask):  # type: ignore[misc]  # the package has no types
    """Tagging as the hook's demos write it: one example for every call of ``predict``, whether it is read or not."""

    def __init__(self, workspace: Any, search: Any, n_actions: int) -> None:
        super().__init__(workspace, search, n_actions)
        search.set_options(search.AUTO_HAMMING_LOSS)

    def _setup(self, sentence: Sentence) -> None:
        self.inputs = [_input_features(sentence.words, position) for position in range(len(sentence.words))]

    def _run(self, sentence: Sentence) -> list[int]:
        output: list[int] = []
        previous = 0
        for position, tag in enumerate(sentence.tags):
            features = _with_history(self.inputs[position], previous)
            example = self.vw.example({"f": features})
            guess = self.sch.predict(example, position + 1, tag + 1, condition=(position, "p"))
            self.vw.finish_example([example])
            output.append(guess)
            previous = guess
        return output


class _TunedTagging(_DocumentedTagging):
    """The same predictions with less work in Python: examples are made when asked for, and once per state."""

    def _setup(self, sentence: Sentence) -> None:
        super()._setup(sentence)
        self.examples: dict[tuple[int, int], Any] = {}

    def _takedown(self, sentence: Sentence) -> None:
        for example in self.examples.values():
            self.vw.finish_example([example])

    def _example(self, position: int, previous: int) -> Any:
        example = self.examples.get((position, previous))
        if example is None:
            features = _with_history(self.inputs[position], previous)
            # No label in the text: with one, Vowpal Wabbit would cache predictions by position and ignore the history.
            example = self.examples[position, previous] = self.vw.example("|f " + " ".join(features))
        return example

    def _run(self, sentence: Sentence) -> list[int]:
        output: list[int] = []
        previous = 0
        predict = self.sch.predict
        for position, tag in enumerate(sentence.tags):
            guess = predict(partial(self._example, position, previous), position + 1, tag + 1)
            output.append(guess)
            previous = guess
        return output


def _input_features(words: list[str], position: int) -> list[str]:
    """Return the features of a position that do not depend on earlier tags; Vowpal Wabbit adds the bias itself."""
    word = words[position]
    before = words[position - 1] if position else "<s>"
    after = words[position + 1] if position + 1 < len(words) else "</s>"
    shape = "".join("X" if c.isupper() else "x" if c.islower() else "0" if c.isdigit() else "-" for c in word)
    features = (f"w={word}", f"b={before}", f"a={after}", f"p={word[:2]}", f"s={word[-2:]}", f"h={shape}")
    return [_escape(feature) for feature in features]


def _with_history(inputs: list[str], previous: int) -> list[str]:
    """Add the previous tag, alone, with the word, and with its suffix: the history that the built-in task has, too."""
    return [*inputs, f"t={previous}", f"tw={previous},{inputs[0]}", f"ts={previous},{inputs[4]}"]


def _escape(text: str) -> str:
    """Replace the two characters that have a meaning in Vowpal Wabbit's text format.

    >>> _escape("3:1")
    '3_COLON_1'
    """
    return text.replace(":", "_COLON_").replace("|", "_BAR_")


def _write(file: Path, sentences: list[Sentence]) -> None:
    """Write one token a line, labels from 1, and an empty line after each sentence."""
    with file.open("w", encoding="utf-8") as out:
        for sentence in sentences:
            for word, tag in zip(sentence.words, sentence.tags, strict=True):
                out.write(f"{tag + 1} |w {_escape(word)}\n")
            out.write("\n")


def run(arguments: list[str]) -> tuple[float, float]:
    """Run Vowpal Wabbit to its end and return its wall and its CPU seconds."""
    before, started = os.times(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "vowpalwabbit", *arguments], capture_output=True, text=True, check=False
    )
    wall, after = time.perf_counter() - started, os.times()
    if done.returncode:
        raise RuntimeError(f"vowpalwabbit {' '.join(arguments)} failed:\n{done.stderr[-2000:]}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, cpu


def _accuracy(predictions: Path, test: list[Sentence]) -> float:
    """Return the share of tags that a prediction file, one line of labels a sentence, has right."""
    lines = [line.split() for line in predictions.read_text(encoding="utf-8").splitlines() if line.strip()]
    correct = 0
    for line, sentence in zip(lines, test, strict=True):
        correct += sum(int(guess) == tag + 1 for guess, tag in zip(line, sentence.tags, strict=True))
    return correct / count_tokens(test)


def _split(sentences: list[Sentence], max_tokens: int) -> tuple[list[Sentence], list[Sentence]]:
    """Take sentences up to ``max_tokens`` tokens, at least one, and then up to a hundred more to test on."""
    taken, tokens = 0, 0
    for sentence in sentences:
        tokens += len(sentence.words)
        if taken and tokens > max_tokens:
            break
        taken += 1
    return sentences[:taken], sentences[taken : taken + _HELD_OUT_SENTENCES]


def _print_tagging() -> None:
    """Train on CRAFT for one pass without roll-outs, and tag its test part 20 times over."""
    corpus = corpora.craft()
    (train, test), names = corpora.numbered(corpus.train, corpus.test)
    with tempfile.TemporaryDirectory() as folder:
        workdir = Path(folder)
        trained = builtin(train, test, len(names), "learned", "none", 1, workdir)
        write(workdir / "repeated.vw", test, repeats=20, labels=False)
        result = tag_file(workdir / "train.vw.model", workdir / "repeated.vw", workdir)
    print(f"craft: accuracy {100 * trained.accuracy:.2f}, trained at {trained.tokens_per_second:,.0f} tokens/s")
    print(
        f"tagging from file to file: {result.tokens_per_second:,.0f} tokens/s ({result.seconds:.2f} s and "
        f"{result.startup_seconds:.2f} s of start-up) on {result.cores:.2f} cores"
    )


def main() -> None:
    """Print a table of both tasks under each roll-out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--passes", type=int, default=1, help="passes of the built-in task over the training part")
    parser.add_argument("--tokens", type=int, default=800, help="tokens the hook's task is trained on, in one pass")
    parser.add_argument("--tagging", action="store_true", help="measure tagging from file to file, on CRAFT, instead")
    options = parser.parse_args()
    if options.tagging:
        _print_tagging()
        return
    corpus = load()
    print(f"{corpus.name}: {count_tokens(corpus.train)} training tokens, {len(corpus.tags)} tags; roll-in learned")
    print(f"{'task':<28}{'roll-out':<11}{'tokens/s':>10}{'wall s':>9}{'cpu s':>9}{'start s':>9}{'accuracy':>10}")

    def show(task: str, roll_out: str, result: Result) -> None:
        figures = f"{result.seconds:9.2f}{result.cpu_seconds:9.2f}{result.startup_seconds:9.2f}{result.accuracy:10.4f}"
        print(f"{task:<28}{roll_out:<11}{result.tokens_per_second:10.0f}{figures}", flush=True)

    for roll_out in ROLL_OUTS:
        # A directory for each run, since a cache left by the one before would be read instead of the data.
        with tempfile.TemporaryDirectory() as directory:
            result = builtin(
                corpus.train, corpus.test, len(corpus.tags), "learned", roll_out, options.passes, Path(directory)
            )
        show(f"built-in, {options.passes} pass(es)", roll_out, result)
    for tuned in (True, False):
        for roll_out in ROLL_OUTS:
            result = hook(corpus.train, len(corpus.tags), roll_out, options.tokens, tuned=tuned)
            show("Python hook, tuned" if tuned else "Python hook, as documented", roll_out, result)


if __name__ == "__main__":
    main()
