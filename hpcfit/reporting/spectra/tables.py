"""A spectrum as JSON, as CSV, as a page of text; two spectra compared."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hpcfit.records import Spectrum
from hpcfit.reporting.spectra import summary
from hpcfit.reporting.spectra.comparison import compare
from hpcfit.reporting.spectra.terminal import as_text
from hpcfit.reporting.strict import csv_page, strict_page

__all__ = ["as_csv", "as_json", "as_text", "compare"]
HEADER = (
    *("number", "exponent", "error", "bound", "confidence95_low", "confidence95_high"),
    *("bits_per_time", "bits_per_orbit"),
)


def as_json(spectrum: Spectrum, provenance: Mapping[str, object]) -> dict[str, object]:
    """The numbers of a spectrum as strict JSON: what is not finite is null."""
    half = summary.half_widths(spectrum)
    center = np.where(np.isfinite(spectrum.bounds), 0.0, spectrum.exponents)
    page: dict[str, object] = {
        "kind": "lyapunov",
        "model": spectrum.model,
        "outcome": spectrum.outcome.name,
        "outcome_text": spectrum.outcome.value,
        "cause": spectrum.cause,
        "converged": spectrum.converged,
        "exponents": spectrum.exponents,
        "errors": spectrum.errors,
        "bounds": spectrum.bounds,
        "confidence95": np.column_stack([center - half, center + half]),
        "bits_per_time": spectrum.exponents / np.log(2.0),
        "bits_per_orbit": summary.orbit_bits(spectrum) if np.isfinite(spectrum.orbits) else None,
        "dimension": spectrum.dimension,
        "dimension_error": spectrum.dimension_error,
        "entropy": spectrum.entropy,
        "entropy_error": spectrum.entropy_error,
        "doubling_time": spectrum.doubling_time,
        "doubling_time_error": spectrum.doubling_time_error,
        "zeros": spectrum.zeros,
        "integrals": spectrum.integrals,
        "duration": spectrum.duration,
        "transient": spectrum.transient,
        "block": spectrum.block,
        "interval": spectrum.interval,
        "trajectories": spectrum.trajectories,
        "regular": np.flatnonzero(spectrum.regular),
        "failed": [failure.lane for failure in spectrum.failures],
        "each": _trajectories(spectrum),
        "divergence": spectrum.divergence,
        "sum": float(spectrum.exponents.sum()) if summary.whole(spectrum) else None,
        "pairing": _pairing(spectrum),
        "drift": spectrum.drift,
        "driven": spectrum.driven,
        "draws": _draws(spectrum),
        "steps": spectrum.steps,
        "warnings": spectrum.warnings,
        "section": _section(spectrum),
        "history": _history(spectrum),
        "seed": spectrum.seed,
        "timings": {"solve": spectrum.seconds},
        "provenance": provenance,
    }
    return strict_page(page)


def _trajectories(spectrum: Spectrum) -> list[dict[str, object]]:
    kinds, rates = summary.kinds(spectrum), summary.per_trajectory(spectrum)
    ends = {failure.lane: failure for failure in spectrum.failures}
    found: list[dict[str, object]] = []
    for lane in range(spectrum.trajectories):
        entry: dict[str, object] = {
            "number": lane,
            "kind": str(kinds[lane]),
            "draw": int(spectrum.draws[lane]) if spectrum.draws is not None else 0,
            "start": dict(zip(spectrum.state_names, spectrum.starts[lane], strict=True)),
            "parameters": dict(zip(spectrum.parameter_names, spectrum.parameters[lane], strict=True)),
            "exponents": rates[lane],
        }
        if lane in ends:
            end = ends[lane]
            entry |= {"stopped": end.time, "outcome": end.outcome.name, "cause": end.cause}
        found.append(entry)
    return found


def _draws(spectrum: Spectrum) -> dict[str, object] | None:
    if spectrum.draw_exponents is None:
        return None
    return {"exponents": spectrum.draw_exponents, "errors": spectrum.draw_errors}


def _pairing(spectrum: Spectrum) -> float | None:
    if not (spectrum.hamiltonian and summary.whole(spectrum)):
        return None
    return float(np.abs(spectrum.exponents + spectrum.exponents[::-1]).max())


def _section(spectrum: Spectrum) -> dict[str, object] | None:
    if spectrum.section is None:
        return None
    section = spectrum.section
    return {
        "surface": section.surface,
        "direction": section.direction,
        "axes": section.axes,
        "points": len(section.points),
    }


def _history(spectrum: Spectrum) -> dict[str, object] | None:
    if spectrum.history is None:
        return None
    history = spectrum.history
    return {
        "times": history.times,
        "exponents": history.exponents,
        "half_widths95": history.half_widths,
    }


def as_csv(spectrum: Spectrum) -> str:
    """One row an exponent, with all digits."""
    orbits = summary.orbit_bits(spectrum)
    rows = (
        (
            row.number,
            row.exponent,
            row.error,
            row.bound,
            (0.0 if row.vanishes else row.exponent) - row.half_width,
            (0.0 if row.vanishes else row.exponent) + row.half_width,
            float(row.exponent / np.log(2.0)),
            float(orbits[row.number - 1]),
        )
        for row in summary.rows(spectrum)
    )
    return csv_page(HEADER, rows)
