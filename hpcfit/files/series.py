"""Series in result files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hpcfit.files.hdf5 import columns, names_of, put
from hpcfit.records import Series


def put_series(group: Any, series: Series, units: Mapping[str, str]) -> None:
    """Times, values and standard deviations as three arrays of a group."""
    own = columns(series.names, units)
    put(group, "times", series.times, dims=("time",), units=units.get("t", "1"))
    put(group, "values", series.values, dims=("time", "quantity"), **own)
    if series.sigma is not None:
        put(group, "sigma", series.sigma, dims=("time", "quantity"), **own)
    if series.sigma_t is not None:
        put(group, "sigma_t", series.sigma_t, dims=("time",), units=units.get("t", "1"))


def get_series(group: Any) -> Series:
    return Series(
        names=names_of(group["values"]),
        times=group["times"][()],
        values=group["values"][()],
        sigma=group["sigma"][()] if "sigma" in group else None,
        sigma_t=group["sigma_t"][()] if "sigma_t" in group else None,
    )
