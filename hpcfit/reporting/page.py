"""A path as one page that needs nothing else: HTML, PDF or a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path as File

import numpy as np
from matplotlib.figure import Figure

from hpcfit.records import InputError, Path
from hpcfit.reporting import figures, overview, portraits, rendering, summary
from hpcfit.reporting.layout import number

SUFFIXES = (".html", ".pdf", ".png")
OPEN_ROWS = 40  # a longer table is folded
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"  # the page fetches and runs nothing


def write_report(
    path: Path,
    provenance: Mapping[str, object],
    job_text: str,
    title: str,
    target: File,
    suffix: str,
    *,
    points: bool = False,
) -> None:
    """Write the report of the kind that `suffix` names to `target`; `points` for a map."""
    kind = suffix.lower()
    if kind == ".html":
        page = html(path, provenance, job_text, title, points=points)
        target.write_bytes(page.encode("utf-8", "replace"))
    elif kind == ".pdf":
        pages = overview.text_pages(path, provenance, job_text, title)
        rendering.write_pages([*(figure for _, figure in _figures(path, points)), *pages], target)
    elif kind == ".png":
        target.write_bytes(rendering.picture(overview.overview(path, title, points=points), "png", dpi=200))
    else:
        raise InputError(f"a report cannot be '{suffix or 'without suffix'}'; use {', '.join(SUFFIXES)}")


def html(
    path: Path, provenance: Mapping[str, object], job_text: str, title: str, *, points: bool = False
) -> str:
    """One self-contained page; everything that a user wrote is escaped."""
    sections = [_summary(path, title)]
    drawn = [_figure(caption, figure) for caption, figure in _figures(path, points)]
    if drawn:
        sections.append(_section("Figures", "".join(drawn)))
    sections.append(_section("Tables", _tables(path)))
    if provenance:
        rows = [(key, value) for key, value in summary.flat(provenance)]
        sections.append(_section("Provenance", _table("", ("what", "value"), rows, words=True)))
    if job_text:
        sections.append(_section("Job file", f"<pre>{escape(job_text)}</pre>"))
    style = resources.files("hpcfit.reporting").joinpath("page.css").read_text(encoding="utf-8")
    head = (
        '<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n"
    )
    body = "\n".join(sections) + "\n<footer>made by hpcfit report</footer>"
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}</head>\n<body>\n{body}\n</body>\n</html>\n'


def _figures(path: Path, points: bool) -> list[tuple[str, Figure]]:
    """The figures that this path has something for, with captions."""
    if not summary.reached(path):
        return []
    marks = "points" if points else "line"
    seen = f"The trajectory ({marks})"
    seen += ", the data with noise (dots)" if path.observed is not None else ""
    seen += ", the recording (crosses)" if path.data is not None else ""
    found = [(f"{seen} over time.", figures.trajectories(path, points=points))]
    phase = "Phase space; the coloured dot is the start."
    if len(path.times) > portraits.LONGEST_LINE and not points:
        phase += f" The line is the first {portraits.LONGEST_LINE:,} points, the grey dots are all others."
    found.append((phase, figures.phase_portraits(path, points=points)))
    if any(block is not None and block.size for block in (path.by_start, path.by_parameters)):
        found.append(("Growth of the sensitivities.", figures.sensitivities(path)))
    if path.invariant is not None:
        found.append(("Drift of the conserved quantity.", figures.invariant(path)))
    return found


def _figure(caption: str, figure: Figure) -> str:
    size = figure.get_size_inches() * 96 * 1.15
    source = rendering.data_address(figure)
    return (
        f'<figure><img src="{source}" width="{size[0]:.0f}" height="{size[1]:.0f}" alt="{escape(caption)}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>\n"
    )


def _section(name: str, content: str) -> str:
    return f"<section>\n<h2>{escape(name)}</h2>\n{content}\n</section>"


def _summary(path: Path, title: str) -> str:
    kind = "good" if path.converged else "bad"
    cause = f'<p class="quiet">{escape(path.cause)}</p>\n' if path.cause and not path.converged else ""
    facts = [("Model", path.model), ("States", f"{len(path.state_names):,}")]
    facts.append(("Times", f"{len(path.times):,}"))
    if len(path.times):
        facts.append(
            ("Span", f"{path.times[0]:.6g} to {path.times[-1]:.6g} {path.units.get('t', '')}".rstrip())
        )
    facts.append(("Steps", f"{path.steps:,}"))
    end = summary.end_row(path)
    if not path.converged and end is not None:
        facts.append(("Finite up to t", number(end[0], 6)))
    if path.seed is not None:
        facts.append(("Seed", str(path.seed)))
    drift = summary.drift(path)
    if drift is not None:
        facts.append(("Drift of invariant", number(drift[1], 3)))
    boxes = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in facts)
    return (
        f"<header>\n<h1>{escape(title)}</h1>\n"
        f'<span class="badge {kind}">{escape(path.outcome.value)}</span>\n{cause}'
        f'<dl class="facts">{boxes}</dl>\n</header>'
    )


def _tables(path: Path) -> str:
    units, blocks = path.units, []
    if path.parameter_names:
        values = zip(path.parameter_names, path.parameters, strict=True)
        rows = [(n, number(v, 10), units.get(n, "")) for n, v in values]
        blocks.append(_table("Parameters", ("name", "value", "unit"), rows))
    end = summary.end_row(path)
    last = np.full(len(path.state_names), np.nan) if end is None else end[1]
    when = "end" if end is None or path.converged else f"at t = {number(end[0], 6)}"
    states = [
        (n, number(path.start[k]), number(last[k]), units.get(n, "")) for k, n in enumerate(path.state_names)
    ]
    blocks.append(_table("States", ("name", "start", when, "unit"), states))
    noises = [
        (n.name, number(n.sigma_mean, 4), number(n.rms_noise, 4), units.get(n.name, ""))
        for n in summary.noises(path)
    ]
    if noises:
        blocks.append(_table("Noise", ("name", "mean sigma", "rms noise", "unit"), noises))
    residuals = [
        (r.name, number(r.rms, 4), number(r.in_sigma, 4), units.get(r.name, ""))
        for r in summary.residuals(path)
    ]
    if residuals:
        blocks.append(_table("Recording", ("name", "rms residual", "in sigma", "unit"), residuals))
    largest = [
        (word, number(summary.largest(block), 4))
        for word, block in (("start", path.by_start), ("parameters", path.by_parameters))
        if block is not None and block.size
    ]
    if largest:
        blocks.append(_table("Sensitivities", ("by", "largest entry"), largest))
    return f'<div class="tables">\n{"".join(blocks)}</div>'


def _table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]], *, words: bool = False) -> str:
    """A table without its empty columns, folded if it is long."""
    cells = list(rows)
    used = [k for k in range(len(header)) if k == 0 or any(row[k] for row in cells)]
    sides = ["name" if k == 0 or header[k] == "unit" else "" for k in used]
    lines = []
    if not words:
        lines.append("".join(_cell("th", header[k], side) for k, side in zip(used, sides, strict=True)))
    for row in cells:
        lines.append("".join(_cell("td", row[k], side) for k, side in zip(used, sides, strict=True)))
    body = "".join(f"<tr>{line}</tr>\n" for line in lines)
    opening = '<table class="words">' if words else "<table>"
    table = f"{opening}\n{body}</table>"
    if len(cells) > OPEN_ROWS:
        table = f"<details><summary>{len(cells):,} rows</summary>\n{table}</details>"
    heading = f"<h3>{escape(title)}</h3>\n" if title else ""
    return f'<div class="table">{heading}{table}</div>\n'


def _cell(tag: str, text: str, side: str) -> str:
    return f'<{tag} class="name">{escape(text)}</{tag}>' if side else f"<{tag}>{escape(text)}</{tag}>"
