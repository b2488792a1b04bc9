"""Long spectra against what is known, and those of the papers' fitted values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hpcfit import spectrum
from hpcfit.models import catalogue
from hpcfit.models.define import Model
from jobs import spectra
from tests.studies.test_spectrum import FORCED, JERK, LORENZ

pytestmark = pytest.mark.science
HENON: dict[str, Any] = {"start": [0.1, 0.1], "parameters": [1.4, 0.3]}


@pytest.mark.parametrize(
    ("model", "given", "duration", "known", "rounding", "precise"),
    [
        (catalogue.find("lorenz"), LORENZ, 500_000.0, (0.90564, 0.0, -14.57231), 5e-6, 3e-4),
        (catalogue.find("henon_map"), HENON, 2_000_000, (0.41922, -1.62319), 5e-6, 1e-4),
        (JERK, {"start": [0.1, 0, 0], "parameters": [0.6]}, 500_000.0, (0.0362, 0.0, -0.6362), 5e-5, 2e-4),
        (FORCED, {"start": [1, 1], "parameters": [5, 5, 2.466]}, 250_000.0, (0.098, -6.839), 5e-4, 1e-3),
    ],
    ids=["lorenz", "henon_map", "linz_sprott", "van_der_pol"],
)
def test_known_exponents(
    model: Model,
    given: dict[str, Any],
    duration: float,
    known: tuple[float, ...],
    rounding: float,
    precise: float,
) -> None:
    """Within four errors, or the bound, and the rounding of the printed digits."""
    found = spectrum(model, **given, duration=duration, trajectories=8)
    assert np.nanmax(found.errors) < precise
    size = np.where(np.isnan(found.bounds), found.errors, found.bounds)
    assert (np.abs(found.exponents - known) < 4.0 * size + rounding).all()


@pytest.mark.parametrize("number", spectra.TABLES)
def test_tables_of_kallrath_1993(number: str) -> None:
    """Two single runs of 10^6 differ by the spread of such runs; three of those, and rounding."""
    found = spectra.table(number)
    first, second, third, fourth = found.run.exponents
    assert abs(first - spectra.TABLES[number]) < 3.0 * found.spread + spectra.ROUNDING
    assert max(abs(second), abs(third)) < 2e-5
    assert abs(first + fourth) < 1e-11
    assert found.run.drift < 1e-12


@pytest.mark.parametrize("name", spectra.PRINTED)
def test_dimensions_of_baake_1992(name: str) -> None:
    middle, width = spectra.DIMENSIONS[name[0]]
    assert abs(spectra.of_fit("baake_1992", name).dimension - middle) <= width
