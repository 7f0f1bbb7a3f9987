"""Drawings, by matplotlib, which comes with the extra `plots`."""

from lols.plots.bandit import bandit_curves
from lols.plots.certificates import regret_plot
from lols.plots.look import check_plot
from lols.plots.scores import confusion, reliability_plot

__all__ = ["bandit_curves", "check_plot", "confusion", "regret_plot", "reliability_plot"]
