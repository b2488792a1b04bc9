"""How all figures look."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import matplotlib

# Okabe and Ito (2008): told apart by colour-blind readers too. Black is the trajectory, yellow is too pale.
BLUE, VERMILION, GREEN, PURPLE, SKY, ORANGE = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"
PALETTE = (BLUE, VERMILION, GREEN, PURPLE, SKY, ORANGE)
INK, PALE = "#222222", "#9a9a9a"

_SETTINGS: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.formatter.limits": (-4, 5),
    "axes.formatter.useoffset": False,
    "axes.labelcolor": INK,
    "axes.labelsize": 9,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9,
    "figure.facecolor": "white",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: the same picture everywhere
    "font.size": 8.5,
    "image.cmap": "RdBu_r",
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 0.9,
    "lines.solid_joinstyle": "round",
    "pdf.fonttype": 42,
    "savefig.facecolor": "auto",
    "svg.fonttype": "path",
    "svg.hashsalt": "hpcfit",  # the same names inside each file: the same bytes for the same input
    "text.color": INK,
    "xtick.color": INK,
    "xtick.labelsize": 8,
    "xtick.major.width": 0.6,
    "ytick.color": INK,
    "ytick.labelsize": 8,
    "ytick.major.width": 0.6,
}


@contextmanager
def styled() -> Iterator[None]:
    """matplotlib's defaults with these settings, whatever the user's own are."""
    with matplotlib.rc_context():
        matplotlib.rcParams.update({k: v for k, v in matplotlib.rcParamsDefault.items() if k != "backend"})
        matplotlib.rcParams.update(_SETTINGS)
        yield


def literal(text: str, most: int = 40) -> str:
    """Text that matplotlib shows as it is: no formulas, one line, not endless."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    shown = shown if len(shown) <= most else shown[: most - 1] + "…"
    return shown.replace("$", r"\$")


def label(name: str, units: Mapping[str, str]) -> str:
    """A name with its unit."""
    unit = units.get(name, "")
    return literal(f"{name} [{unit}]" if unit else name)
