"""A path as a page for the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import numpy as np

from hpcfit.records import Path
from hpcfit.reporting import textplot
from hpcfit.reporting.layout import beside, cut, number, plain, provenance_lines, shortened, table, visible
from hpcfit.reporting.paths import summary

MOST_ROWS = 12  # of one table
MOST_PARAMETERS = 40
MOST_PLOTS = 8
TALL_PLOTS = 4  # up to so many, a plot is two lines high


def as_text(
    path: Path, provenance: Mapping[str, object], *, unicode: bool = True, width: int = 90, plots: bool = True
) -> str:
    """What a path is, how it ended and how it looks."""
    blocks = [_title(path, width), beside(_tables(path), width)]
    remarks = _remarks(path)
    if remarks:
        blocks.append(remarks)
    if plots and summary.reached(path):
        blocks.append(_plots(path, width, unicode))
    if provenance:
        blocks.append(provenance_lines(provenance, width))
    page = "\n\n".join("\n".join(block) for block in blocks if block) + "\n"
    return page if unicode else plain(page)


def _title(path: Path, width: int) -> list[str]:
    head = shortened(visible(path.model), width - 12) + " · simulate"
    mark = "• " if path.converged else "! "
    ended = textwrap.wrap(visible(mark + summary.status(path)), width, subsequent_indent="  ")
    return [head, "═" * len(head), *ended, *textwrap.wrap("  " + summary.span(path), width)]


def _tables(path: Path) -> list[list[str]]:
    units = path.units
    blocks = []
    if path.parameter_names:
        values = zip(path.parameter_names, path.parameters, strict=True)
        parameters: list[tuple[str, ...]] = [(n, number(v, 10), units.get(n, "")) for n, v in values]
        blocks.append(table(("parameter", "value", "unit"), cut(parameters, MOST_PARAMETERS), left=(0, 2)))
    end = summary.end_row(path)
    last = "end" if end is None or path.converged else f"t = {number(end[0], 5)}"
    states: list[tuple[str, ...]] = [
        (n, number(path.start[k]), "–" if end is None else number(end[1][k]), units.get(n, ""))
        for k, n in enumerate(path.state_names)
    ]
    blocks.append(table(("state", "start", last, "unit"), cut(states, MOST_ROWS), left=(0, 3)))
    noises: list[tuple[str, ...]] = [
        (n.name, number(n.sigma_mean, 4), number(n.rms_noise, 4), units.get(n.name, ""))
        for n in summary.noises(path)
    ]
    if noises:
        blocks.append(
            table(("observed", "mean sigma", "rms noise", "unit"), cut(noises, MOST_ROWS), left=(0, 3))
        )
    residuals: list[tuple[str, ...]] = [
        (r.name, number(r.rms, 4), number(r.in_sigma, 4), units.get(r.name, ""))
        for r in summary.residuals(path)
    ]
    if residuals:
        head = ("recording", "rms residual", "in sigma", "unit")
        blocks.append(table(head, cut(residuals, MOST_ROWS), left=(0, 3)))
    return blocks


def _remarks(path: Path) -> list[str]:
    lines = []
    drift = summary.drift(path)
    if drift is not None:
        lines.append(f"invariant      {number(drift[0])} at the start, largest drift {number(drift[1], 3)}")
    largest = [
        f"{number(summary.largest(values), 4)} by {word}"
        for word, values in (("start", path.by_start), ("parameters", path.by_parameters))
        if values is not None and values.size
    ]
    if largest:
        lines.append(f"sensitivities  largest entry {', '.join(largest)}")
    return lines


def _plots(path: Path, width: int, unicode: bool) -> list[str]:
    names = [*path.state_names, *summary.extra_names(path)]
    shown, rows = names[:MOST_PLOTS], summary.reached(path)
    label = min(max(len(name) for name in shown), 16)
    height = 2 if len(shown) <= TALL_PLOTS else 1
    edge = 11 if height == 2 else 24  # room for the range on the right
    lines: list[str] = []
    for name in shown:
        values = summary.trajectory(path, name, path.times)[:rows]
        size = max(width - label - edge, 10)
        drawn = textplot.curve(path.times[:rows], values, size, unicode=unicode, height=height)
        finite = values[np.isfinite(values)]
        low, high = (
            number(v, 3) for v in ((finite.min(), finite.max()) if len(finite) else (np.nan, np.nan))
        )
        ranges = [high, low] if height == 2 else [f"{low} to {high}"]
        titles = [shortened(visible(name), label), ""]
        for title, row, ends in zip(titles, drawn, ranges, strict=False):
            lines.append(f"{title:<{label}}  {row}  {ends}")
    if len(names) > len(shown):
        lines.append(f"… {len(names) - len(shown)} more")
    return lines
