"""A path as JSON, as CSV, as a page of text; two paths compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hpcfit.records import Path
from hpcfit.reporting.paths import summary
from hpcfit.reporting.paths.comparison import compare
from hpcfit.reporting.paths.terminal import as_text
from hpcfit.reporting.strict import csv_page, strict_page

__all__ = ["as_csv", "as_json", "as_text", "compare"]


def as_json(path: Path, provenance: Mapping[str, object]) -> dict[str, object]:
    """The numbers of a path as strict JSON: what is not finite is null."""
    rows = summary.reached(path)
    times = path.times
    page: dict[str, object] = {
        "kind": "simulate",
        "model": path.model,
        "outcome": path.outcome.value,
        "cause": path.cause,
        "converged": path.converged,
        "steps": path.steps,
        "seed": path.seed,
        "start": _named(path.state_names, path.start),
        "parameters": _named(path.parameter_names, path.parameters),
        "times": {
            "first": times[0] if len(times) else None,
            "last": times[-1] if len(times) else None,
            "count": len(times),
            "last_finite": times[rows - 1] if rows else None,
        },
        "final_state": _named(path.state_names, path.states[-1] if len(times) else ()),
    }
    page |= _optional(path)
    page["provenance"] = provenance
    return strict_page(page)


def _optional(path: Path) -> dict[str, object]:
    """The parts that only some paths have."""
    page: dict[str, object] = {}
    drift = summary.drift(path)
    if drift is not None:
        page["invariant"] = {"first": drift[0], "drift": drift[1]}
    if path.observed is not None:
        page["observed"] = {
            noise.name: {"sigma_mean": noise.sigma_mean, "rms_noise": noise.rms_noise}
            for noise in summary.noises(path)
        }
    if path.data is not None:
        page["data"] = {
            found.name: {"rms_residual": found.rms}
            | ({"rms_residual_in_sigma": found.in_sigma} if path.data.sigma is not None else {})
            for found in summary.residuals(path)
        }
    if path.by_start is not None or path.by_parameters is not None:
        page["sensitivities"] = {
            "largest_by_start": summary.largest(path.by_start),
            "largest_by_parameters": summary.largest(path.by_parameters),
        }
    return page


def _named(names: Iterable[str], values: Iterable[float]) -> dict[str, object]:
    return dict(zip(names, values, strict=False))


def as_csv(path: Path) -> str:
    """The values over time; numbers read back to the same doubles, missing ones are empty."""
    columns = {"t": path.times}
    columns |= {name: path.states[:, k] for k, name in enumerate(path.state_names)}
    for name in summary.extra_names(path):
        columns[name] = summary.trajectory(path, name, path.times)
    for name in path.observed.names if path.observed else ():
        values = summary.column(path.observed, name, path.times)
        assert values is not None
        columns[f"{name}_observed"] = values
    return csv_page(list(columns), zip(*(values.tolist() for values in columns.values()), strict=True))
