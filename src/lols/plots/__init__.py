"""Drawings, by matplotlib, which comes with the extra `plots`."""

from lols.plots.bandit import bandit_curves
from lols.plots.certificates import regret_plot
from lols.plots.confusion import confusion
from lols.plots.look import check_plot
from lols.plots.reliability import reliability_plot

__all__ = ["bandit_curves", "check_plot", "confusion", "regret_plot", "reliability_plot"]
