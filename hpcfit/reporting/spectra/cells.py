"""The cells of the tables of a spectrum, for terminals and for pages."""

from __future__ import annotations

import numpy as np

from hpcfit.records import Spectrum
from hpcfit.reporting.layout import matched, number
from hpcfit.reporting.spectra import summary

HEADER = ("exponent", "error", "95 %", "bits / time", "bits / orbit", "remark")
CHECK_HEADER = ("found", "expected", "remark")
DRAW_HEADER = ("estimate", "error", "mean of draws", "spread", "least", "greatest")
MOST_TRAJECTORIES = 12  # that are all listed; of more, those that are not in the means
MOST_EXPONENTS = 4  # of one trajectory


def row_cells(row: summary.Row, spectrum: Spectrum) -> tuple[str, ...]:
    """One exponent, as under HEADER."""
    per_orbit = row.exponent / np.log(2.0) / spectrum.orbits
    scale = row.bound if row.vanishes else row.error
    return (
        matched(row.exponent, scale),
        "" if row.vanishes else number(row.error, 3),
        ("< " if row.vanishes else "± ") + number(row.half_width, 3),
        "" if row.vanishes else number(row.exponent / np.log(2.0), 4),
        "" if row.vanishes or np.isnan(per_orbit) else number(per_orbit, 4),
        "vanishes: at most C/T" if row.vanishes else "",
    )


def check_cells(check: summary.Check) -> tuple[str, ...]:
    """One diagnostic, as under CHECK_HEADER."""
    expected = "" if np.isnan(check.expected) else number(check.expected, 10)
    if check.expected == 0.0:
        expected = f"0 within {number(check.allowed, 3)}"
    remark = check.remark if check.good else f"{check.remark} more than allowed".strip()
    digits = 10 if check.expected else 3
    return (number(check.value, digits if np.isfinite(check.expected) else 3), expected, remark)


def trajectory_header(spectrum: Spectrum) -> tuple[str, ...]:
    """Number, kind and exponents."""
    return ("trajectory", "kind", *(f"λ{k + 1}" for k in range(_shown(spectrum))))


def trajectory_cells(spectrum: Spectrum) -> list[tuple[str, ...]]:
    """The trajectories one by one, or of many those that are not in the means."""
    kinds, rates = summary.kinds(spectrum), summary.per_trajectory(spectrum)
    own = summary.own(spectrum)
    listed = np.flatnonzero(own)
    if len(listed) > MOST_TRAJECTORIES:
        listed = np.flatnonzero(own & ~summary.averaged(spectrum))
    return [
        (str(lane), str(kinds[lane]), *(number(rate, 5) for rate in rates[lane, : _shown(spectrum)]))
        for lane in listed
    ]


def draw_cells(spectrum: Spectrum) -> list[tuple[str, ...]]:
    """Each exponent over the draws from the covariance of a fit, as under DRAW_HEADER."""
    values = summary.drawn(spectrum)
    if len(values) < 2:
        return []
    spread, ends = values.std(axis=0, ddof=1), (values.min(axis=0), values.max(axis=0))
    return [
        (
            f"λ{k + 1}",
            matched(float(spectrum.exponents[k]), float(spread[k])),
            number(float(spectrum.errors[k]), 3) if np.isfinite(spectrum.errors[k]) else "",
            matched(float(values[:, k].mean()), float(spread[k])),
            number(float(spread[k]), 3),
            *(matched(float(end[k]), float(spread[k])) for end in ends),
        )
        for k in range(len(spectrum.exponents))
    ]


def endings(spectrum: Spectrum) -> list[str]:
    """Why some trajectories stopped early."""
    return [
        f"trajectory {each.lane} stopped at t = {number(each.time, 6)}: {each.outcome.value} ({each.cause})"
        for each in spectrum.failures
    ]


def notes(spectrum: Spectrum) -> list[str]:
    """What the columns are."""
    texts = ["Natural logarithms per unit of time; errors are standard errors, ± the half width at 95 %."]
    if spectrum.zeros:
        texts.append(
            "Exponents vanish where the growth stays bounded or rises like ln t: they are within C/T of "
            "zero, C being the most that the growth reached."
        )
    if np.isfinite(spectrum.orbits):
        texts.append(f"An orbit takes {number(1.0 / spectrum.orbits, 5)} units of time.")
    return texts


def _shown(spectrum: Spectrum) -> int:
    return min(len(spectrum.exponents), MOST_EXPONENTS)
