"""Install the wheel in dist/ into a fresh environment, and run the README's first example with it, from another folder.

`make dist` does so: `python -m scripts.try_wheel`. Nothing of the checkout is on the path of the environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from tests.docs.blocks import Block, python_blocks

ROOT = Path(__file__).parents[1]


def run(*command: str | Path, folder: Path) -> str:
    """What a command prints that runs in a folder, with nothing of the checkout: no settings, no compiled kernels."""
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LOLS_"))}
    settings["XDG_CACHE_HOME"] = str(folder / "cache")
    try:
        return subprocess.run(command, cwd=folder, env=settings, stdout=subprocess.PIPE, text=True, check=True).stdout
    except subprocess.CalledProcessError as error:
        sys.exit(f"{Path(command[0]).name} ended with exit code {error.returncode}")


def try_example(python: str | Path, example: Block, folder: Path) -> str:
    """What an example prints as a program; the end, with a message, if that is something else than its page says."""
    (folder / "example.py").write_text(example.code, "utf-8")
    printed = run(python, "example.py", folder=folder)
    if not example.is_printed_by(printed):
        sys.exit(f"the example of line {example.line} printed:\n{printed}in place of:\n{example.prints}")
    return printed


def main() -> None:
    (wheel,) = (ROOT / "dist").glob("*.whl")
    example = next(python_blocks(ROOT / "README.md"))
    with tempfile.TemporaryDirectory(prefix="lols-dist-") as name:
        folder = Path(name)
        programs = folder / "venv" / "bin"
        print(f"==> installing {wheel.name} into a fresh environment, {folder / 'venv'}", flush=True)
        venv.create(folder / "venv", with_pip=True)
        pip = (programs / "python", "-I", "-m", "pip", "--quiet", "--disable-pip-version-check")
        subprocess.run((*pip, "install", wheel), check=True)
        place = run(programs / "python", "-c", "import lols; print(lols.__file__)", folder=folder).strip()
        print(f"{run(programs / 'lols', '--version', folder=folder).strip()} in {Path(place).parent}")
        print(f"==> running the example of README.md, line {example.line}, in {folder}", flush=True)
        print(try_example(programs / "python", example, folder), end="")
        print("==> it prints what the README says")


if __name__ == "__main__":
    main()
