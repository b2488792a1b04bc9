"""A result as one page that needs nothing else: HTML, PDF or a picture."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path as File
from typing import Any

from hpcfit.records import EnsembleResult, FitResult, InputError, Path, Spectrum
from hpcfit.reporting import html as parts
from hpcfit.reporting import rendering, tables
from hpcfit.reporting.ensembles import page as ensemble_page
from hpcfit.reporting.fits import page as fit_page
from hpcfit.reporting.layout import flat
from hpcfit.reporting.paths import page as path_page
from hpcfit.reporting.spectra import page as spectrum_page
from hpcfit.reporting.sweeps.costs import TASK_HEADER, task_rows, without_campaign
from hpcfit.reporting.textpages import COLUMNS_A_PAGE, text_pages

SUFFIXES = (".html", ".pdf", ".png")
_PAGES: dict[type, Any] = {
    Path: path_page,
    FitResult: fit_page,
    EnsembleResult: ensemble_page,
    Spectrum: spectrum_page,
}


def write_report(
    record: tables.Record,
    provenance: Mapping[str, object],
    job_text: str,
    title: str,
    target: File,
    suffix: str,
) -> None:
    """Write the report of the kind that `suffix` names to `target`."""
    own, kind = _PAGES[type(record)], suffix.lower()
    if kind == ".html":
        page = html(record, provenance, job_text, title)
        target.write_bytes(page.encode("utf-8", "replace"))
    elif kind == ".pdf":
        text = tables.as_text(record, provenance, unicode=False, width=COLUMNS_A_PAGE, plots=False)
        drawn = [figure for _, figure in own.figures(record)]
        rendering.write_pages([*drawn, *text_pages(text, job_text, title)], target)
    elif kind == ".png":
        target.write_bytes(rendering.picture(own.overview(record, title), "png", dpi=200))
    else:
        raise InputError(f"a report cannot be '{suffix or 'without suffix'}'; use {', '.join(SUFFIXES)}")


def html(record: tables.Record, provenance: Mapping[str, object], job_text: str, title: str) -> str:
    """One self-contained page."""
    own = _PAGES[type(record)]
    badge, cause = tables.ending(record)
    sections = [parts.header(title, badge, record.converged, cause, own.facts(record))]
    drawn = [parts.figure(caption, figure) for caption, figure in own.figures(record)]
    if drawn:
        sections.append(parts.section("Figures", "".join(drawn)))
    sections.insert(own.TABLES_AT, parts.section("Tables", own.tables(record, provenance)))
    if provenance:
        rows = parts.table("", ("what", "value"), list(flat(without_campaign(provenance))), words=True)
        if tasks := task_rows(provenance):
            rows += parts.table("Tasks", TASK_HEADER, tasks, left=("hosts", "job"))
        sections.append(parts.section("Provenance", rows))
    if job_text:
        sections.append(parts.section("Job file", f"<pre>{escape(job_text)}</pre>"))
    return parts.document(title, sections)
