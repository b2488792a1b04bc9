"""What a page says of a path."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from hpcfit.records import Path
from hpcfit.reporting.html import table
from hpcfit.reporting.layout import number
from hpcfit.reporting.paths import figures as pictures
from hpcfit.reporting.paths import portraits, summary
from hpcfit.reporting.paths.overview import overview

__all__ = ["TABLES_AT", "facts", "figures", "overview", "tables"]
TABLES_AT = 2  # after the figures


def figures(path: Path) -> list[tuple[str, Figure]]:
    """The figures that this path has something for, with captions."""
    if not summary.reached(path):
        return []
    points = path.kind == "map"
    marks = "points" if points else "line"
    seen = f"The trajectory ({marks})"
    seen += ", the data with noise (dots)" if path.observed is not None else ""
    seen += ", the recording (crosses)" if path.data is not None else ""
    found = [(f"{seen} over time.", pictures.trajectories(path, points=points))]
    phase = "Phase space; the coloured dot is the start."
    if len(path.times) > portraits.LONGEST_LINE and not points:
        phase += f" The line is the first {portraits.LONGEST_LINE:,} points, the grey dots are all others."
    found.append((phase, pictures.phase_portraits(path, points=points)))
    if any(block is not None and block.size for block in (path.by_start, path.by_parameters)):
        found.append(("Growth of the sensitivities.", pictures.sensitivities(path)))
    if path.invariant is not None:
        found.append(("Drift of the conserved quantity.", pictures.invariant(path)))
    return found


def facts(path: Path) -> list[tuple[str, str]]:
    """What stands at the head of the page."""
    found = [("Model", path.model), ("States", f"{len(path.state_names):,}")]
    found.append(("Times", f"{len(path.times):,}"))
    if len(path.times):
        found.append(
            ("Span", f"{path.times[0]:.6g} to {path.times[-1]:.6g} {path.units.get('t', '')}".rstrip())
        )
    found.append(("Steps", f"{path.steps:,}"))
    end = summary.end_row(path)
    if not path.converged and end is not None:
        found.append(("Finite up to t", number(end[0], 6)))
    if path.seed is not None:
        found.append(("Seed", str(path.seed)))
    drift = summary.drift(path)
    if drift is not None:
        found.append(("Drift of invariant", number(drift[1], 3)))
    return found


def tables(path: Path, provenance: Mapping[str, object]) -> str:
    """Parameters and states at both ends; `provenance` is for other kinds."""
    units, blocks = path.units, []
    if path.parameter_names:
        values = zip(path.parameter_names, path.parameters, strict=True)
        rows = [(n, number(v, 10), units.get(n, "")) for n, v in values]
        blocks.append(table("Parameters", ("name", "value", "unit"), rows))
    end = summary.end_row(path)
    last = np.full(len(path.state_names), np.nan) if end is None else end[1]
    when = "end" if end is None or path.converged else f"at t = {number(end[0], 6)}"
    states = [
        (n, number(path.start[k]), number(last[k]), units.get(n, "")) for k, n in enumerate(path.state_names)
    ]
    blocks.append(table("States", ("name", "start", when, "unit"), states))
    noises = [
        (n.name, number(n.sigma_mean, 4), number(n.rms_noise, 4), units.get(n.name, ""))
        for n in summary.noises(path)
    ]
    if noises:
        blocks.append(table("Noise", ("name", "mean sigma", "rms noise", "unit"), noises))
    residuals = [
        (r.name, number(r.rms, 4), number(r.in_sigma, 4), units.get(r.name, ""))
        for r in summary.residuals(path)
    ]
    if residuals:
        blocks.append(table("Recording", ("name", "rms residual", "in sigma", "unit"), residuals))
    largest = [
        (word, number(summary.largest(block), 4))
        for word, block in (("start", path.by_start), ("parameters", path.by_parameters))
        if block is not None and block.size
    ]
    if largest:
        blocks.append(table("Sensitivities", ("by", "largest entry"), largest))
    return f'<div class="tables">\n{"".join(blocks)}</div>'
