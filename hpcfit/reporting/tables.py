"""A result as JSON, as CSV, as a page of text; two results compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hpcfit.records import EnsembleResult, FitResult, InputError, Path, Spectrum
from hpcfit.reporting.ensembles import tables as ensemble_tables
from hpcfit.reporting.fits import tables as fit_tables
from hpcfit.reporting.paths import tables as path_tables
from hpcfit.reporting.spectra import tables as spectrum_tables

Record = Path | FitResult | EnsembleResult | Spectrum
_TABLES: dict[type, Any] = {
    Path: path_tables,
    FitResult: fit_tables,
    EnsembleResult: ensemble_tables,
    Spectrum: spectrum_tables,
}
_WORDS = {Path: "a simulation", FitResult: "a fit", EnsembleResult: "an ensemble", Spectrum: "a spectrum"}


def as_json(record: Record, provenance: Mapping[str, object]) -> dict[str, object]:
    """The numbers of a result as strict JSON: what is not finite is null."""
    page: dict[str, object] = _TABLES[type(record)].as_json(record, provenance)
    return page


def as_csv(record: Record) -> str:
    """The main table of a result; numbers read back to the same doubles, missing ones are empty."""
    page: str = _TABLES[type(record)].as_csv(record)
    return page


def as_text(
    record: Record,
    provenance: Mapping[str, object],
    *,
    unicode: bool = True,
    width: int = 90,
    plots: bool = True,
) -> str:
    """What a result is and how it came out, for a terminal."""
    page: str = _TABLES[type(record)].as_text(record, provenance, unicode=unicode, width=width, plots=plots)
    return page


def compare(first: Record, second: Record, names: tuple[str, str], *, unicode: bool = True) -> str:
    """Two results of one kind beside each other."""
    if type(first) is not type(second):
        words = f"{names[0]} is {_WORDS[type(first)]}, {names[1]} is {_WORDS[type(second)]}"
        raise InputError(f"{words}; give two results of the same kind")
    page: str = _TABLES[type(first)].compare(first, second, names, unicode=unicode)
    return page


def ending(record: Record) -> tuple[str, str]:
    """How a result ended, in words, and the cause."""
    if isinstance(record, EnsembleResult):
        good = sum(outcome is record.success for outcome in record.outcomes)
        return f"{good:,} of {len(record.outcomes):,} {record.success.value}", ""
    return record.outcome.value, "" if record.converged else record.cause
