"""`lols reproduce`: the paper's tables and claims, run again."""

from __future__ import annotations

import contextlib
import shlex
import sys
import time
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from lols.cli.base import app, option
from lols.cli.console import say
from lols.cli.workers import engine_of


@app.command()
def reproduce(
    part: Annotated[
        str,
        typer.Argument(
            metavar="[story|table2|table3|table4|theory|bandit|all]",
            help="story: a policy overtakes its teacher; table2: classification; table3: tagging; table4: parsing; "
            "theory: what can be computed exactly; bandit: learning from the loss of what was shown.",
            show_default=False,
        ),
    ] = "all",
    data: Annotated[
        str | None,
        option("The folder with the public data sets; without it data are generated.", metavar="DIR"),
    ] = None,
    download: Annotated[
        bool,
        option("Fetch public data sets that are missing from their homes, into a cache (LOLS_CACHE).", "--download"),
    ] = False,
    quick: Annotated[bool, option("Less data, fewer passes: under three minutes.", "--quick")] = False,
    seeds: Annotated[
        int | None,
        option("Runs of each cell: 2 with --quick, else 3 if that takes less than 80 minutes of one core, or 1."),
    ] = None,
    only: Annotated[
        list[str] | None,
        option(
            "Run only this row of the tables, such as learned/mixture or beta=0.25; may be given several times.",
            metavar="ROW",
        ),
    ] = None,
    workers: Annotated[
        int | None, option("Cells at a time: as many as there are cores.", "--workers", "--jobs")
    ] = None,
    engine: Annotated[str | None, option("Who runs the cells: processes of this machine unless given; or ray.")] = None,
    address: Annotated[str | None, option("The Ray cluster; without it a local Ray is started.")] = None,
    json_file: Annotated[str | None, option("Keep all figures here, as they come.", "--json", metavar="FILE")] = None,
    html: Annotated[str | None, option("Write a report with pictures, one file.", metavar="FILE")] = None,
    plots: Annotated[str | None, option("Write the pictures into this folder, as PNG files.", metavar="DIR")] = None,
    resume: Annotated[bool, option("Go on from what the --json file has.", "--resume")] = False,
) -> None:
    """Run the paper's experiments again: its tables with ours, and which of its claims hold here.

    `lols reproduce table3 --quick`
    """
    from lols.io.whole_file import check_output
    from lols.plots.look import check_folder, check_matplotlib
    from lols.reproduction import run
    from lols.reproduction.console import print_sections
    from lols.reproduction.describe import describe
    from lols.reproduction.report import write_plots, write_report
    from lols.reproduction.story import story_section
    from lols.training.progress import duration

    if html is not None:
        check_output(html)
        check_matplotlib()
    if plots is not None:
        check_folder(plots)
    chosen = engine_of({"engine": engine, "address": address, "workers": workers if engine else None})
    command = _command(part, data, quick, seeds, only or [])

    def show(name: str, found: Any) -> None:
        if name == "story":
            with bar.away():
                print_sections([story_section(found)], say)

    bar = _Bar()
    try:
        with bar:
            result = run.reproduce(
                part,
                data=data,
                download=download,
                quick=quick,
                seeds=seeds,
                only=only or [],
                workers=workers,
                engine=chosen,
                file=json_file,
                resume=resume,
                watch=bar.watch,
                say=bar.say,
                show=show,
                command=command,
            )
    except KeyboardInterrupt:
        kept = (
            f"what is done is in {json_file}: go on with --resume" if json_file else "use --json to keep what is done"
        )
        print(f"lols: stopped; {kept}", file=sys.stderr)
        raise typer.Exit(130) from None
    print_sections(describe({**result, "story": None}), say)
    say.print(f"Done in {duration(result['seconds'])}.")
    if json_file is not None:
        say.print(f"Figures: {json_file}")
    if html is not None:
        write_report(result, html)
        say.print(f"Report: {html}")
    if plots is not None:
        say.print(f"Pictures: {len(write_plots(result, plots))} in {plots}")


def _command(part: str, data: str | None, quick: bool, seeds: int | None, only: list[str]) -> str:
    """The command that gives the same figures."""
    words = ["lols reproduce", part]
    words += ["--quick"] if quick else []
    words += [f"--data {shlex.quote(data)}"] if data is not None else []
    words += [f"--seeds {seeds}"] if seeds is not None else []
    words += [f"--only {shlex.quote(row)}" for row in only]
    return " ".join(words)


class _Bar:
    """How far it is, and what is running: a bar on terminals, else a line now and then."""

    def __init__(self) -> None:
        self.bar: Any = None
        self.told, self.began = -1, time.monotonic()
        if sys.stderr.isatty():
            from rich import progress
            from rich.console import Console

            self.bar = progress.Progress(
                progress.TextColumn("{task.completed}/{task.total}"),
                progress.BarColumn(20),
                progress.TimeElapsedColumn(),
                progress.TextColumn("{task.description}", markup=False),
                console=Console(stderr=True),
                transient=True,
                redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),  # else it belongs into its file
            )
            self.task = self.bar.add_task("", total=None)

    def __enter__(self) -> _Bar:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def watch(self, done: int, total: int, running: list[str], left: float) -> None:
        """Show how far it is, about how much time is left, and what is running."""
        minutes = round(left / 60.0)
        remains = f"about {minutes} min left" if minutes else "less than a minute left" if done < total else ""
        if self.bar is not None:
            self.bar.update(self.task, completed=done, total=total, description=" · ".join([remains, *running]))
        elif (tenth := 10 * done // max(total, 1)) > self.told:
            self.told = tenth
            words = [f"{done} of {total} done", f"{time.monotonic() - self.began:.0f} s", remains]
            words += [] if tenth else ["the first run compiles"]
            print(", ".join(word for word in words if word), file=sys.stderr, flush=True)

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Take the bar off the terminal while something is printed."""
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()

    def say(self, words: str) -> None:
        """Show a few words."""
        if self.bar is not None:
            self.bar.update(self.task, description=words)
