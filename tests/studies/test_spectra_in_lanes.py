"""Spectra side by side: each has the bits that it has alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcfit.models import catalogue
from hpcfit.mpi.serial import SERIAL
from hpcfit.studies.spectra_in_lanes import spectra_in_lanes
from hpcfit.studies.spectrum import spectrum_stages
from hpcfit.studies.spectrum_asked import Asked

MODEL = catalogue.find("lorenz")


def problem(r: float, trajectories: int = 1, **asked: Any) -> dict[str, Any]:
    given = Asked(duration=20.0, trajectories=trajectories, **asked)
    return {"asked": given, "start": [1.0, 1.0, 20.0], "parameters": [10.0, r, 8 / 3]}


def test_company_changes_no_bit() -> None:
    """Some differ in their blocks, one ends by its errors, one has more trajectories."""
    several = [
        *(problem(r, interval=0.1, block=0.5) for r in (28.0, 30.0, 46.0)),
        problem(28.0, 3, interval=0.1, block=0.5),
        problem(28.0, interval=0.05, block=0.5),
        problem(28.0, error=0.5),
    ]
    found = spectra_in_lanes(MODEL, several)
    for given, own in zip(several, found, strict=True):
        *_, last = spectrum_stages(SERIAL, MODEL, **given)
        assert last.result is not None
        np.testing.assert_array_equal(own.growth, last.result.growth)
        np.testing.assert_array_equal(own.exponents, last.result.exponents)
        np.testing.assert_array_equal(own.starts, last.result.starts)
        assert (own.divergence, own.steps) == (last.result.divergence, last.result.steps)


def test_an_escape_belongs_to_its_own_problem() -> None:
    model = catalogue.find("henon_heiles")
    given: dict[str, Any] = {"parameters": [1.0, 1.0, -1.0]}
    asked = Asked(duration=50.0, interval=1.0, block=5.0, transient=0.0)
    starts = ([0.0, 0.0, 0.3, -0.41], [0.0, 0.0, 0.8, 0.8], [0.0, 0.0, 0.3, 0.2])
    found = spectra_in_lanes(model, [given | {"asked": asked, "start": start} for start in starts])
    assert [len(each.failures) for each in found] == [0, 1, 0]
    assert found[1].failures[0].lane == 0
    assert not found[1].converged
    assert np.isfinite(found[2].exponents).all()
