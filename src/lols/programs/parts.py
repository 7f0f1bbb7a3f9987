"""What runs a program besides the program itself: who reads the arguments of its decisions, and who scores them."""

from __future__ import annotations

from lols.programs.candidate_scorer import CandidateScorer
from lols.programs.candidates import CandidateChoices
from lols.programs.choices import ActionChoices
from lols.programs.program import Program
from lols.programs.scorer import Scorer


def parts_of(program: Program, compiled: bool) -> tuple[ActionChoices, Scorer]:
    """Choices and a scorer for a program: of numbered or named actions, or of candidates."""
    if program.actions is None:
        return CandidateChoices(), CandidateScorer(compiled)
    return ActionChoices(program.actions, program.labels), Scorer(compiled)
