"""The numbers that stand for a spectrum, for all kinds of pages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcfit.records import Array, Spectrum
from hpcfit.reporting.layout import matched, number

KINDS = ("chaotic", "regular", "failed")


@dataclass(frozen=True)
class Row:
    """One exponent with all that is known of it; NaN: not known."""

    number: int  # 1 is the largest
    exponent: float
    error: float  # NaN where there is a bound
    half_width: float  # of the 95 % interval; the bound of an exponent that vanishes
    bound: float  # C/T; NaN where there is an error

    @property
    def vanishes(self) -> bool:
        return not np.isnan(self.bound)


@dataclass(frozen=True)
class Check:
    """Something that must be so: what it is, what was found, and what that is compared with."""

    name: str
    value: float
    expected: float
    allowed: float  # NaN: only shown
    remark: str = ""

    @property
    def good(self) -> bool:
        return np.isnan(self.allowed) or abs(self.value - self.expected) <= self.allowed


def rows(spectrum: Spectrum) -> list[Row]:
    """The exponents, largest first."""
    return [
        Row(k + 1, *(float(values[k]) for values in columns))
        for columns in [(spectrum.exponents, spectrum.errors, half_widths(spectrum), spectrum.bounds)]
        for k in range(len(spectrum.exponents))
    ]


def half_widths(spectrum: Spectrum) -> Array:
    """Of the 95 % intervals; 1.96 errors where the record does not say."""
    if spectrum.half_widths is not None:
        return spectrum.half_widths
    return np.where(np.isfinite(spectrum.bounds), spectrum.bounds, 1.96 * spectrum.errors)


def per_trajectory(spectrum: Spectrum) -> Array:
    """Exponents (L, k) of each trajectory; NaN of those that failed."""
    blocks = spectrum.growth.shape[1]
    with np.errstate(invalid="ignore"):
        rates: Array = spectrum.growth.sum(axis=1) / (max(blocks, 1) * spectrum.block)
    return rates


def kinds(spectrum: Spectrum) -> NDArray[np.str_]:
    """What each trajectory (L,) is: one of KINDS."""
    found = np.where(spectrum.regular, "regular", "chaotic")
    for failure in spectrum.failures:
        found[failure.lane] = "failed"
    return found


def own(spectrum: Spectrum) -> NDArray[np.bool_]:
    """Trajectories (L,) of the estimate itself, not of draws from its covariance."""
    if spectrum.draws is None:
        return np.ones(spectrum.trajectories, dtype=bool)
    return spectrum.draws == 0


def averaged(spectrum: Spectrum) -> NDArray[np.bool_]:
    """Trajectories (L,) in the means: the chaotic ones, or the regular ones if there are no others."""
    found = np.where(own(spectrum), kinds(spectrum), "drawn")
    chosen = found == "chaotic"
    return chosen if chosen.any() else found == "regular"


def drawn(spectrum: Spectrum) -> Array:
    """Exponents (D, k) of the draws that gave some."""
    if spectrum.draw_exponents is None:
        return np.zeros((0, len(spectrum.exponents)))
    return spectrum.draw_exponents[np.isfinite(spectrum.draw_exponents).all(axis=1)]


def whole(spectrum: Spectrum) -> bool:
    """Whether all exponents were asked for."""
    return len(spectrum.exponents) == len(spectrum.state_names)


def checks(spectrum: Spectrum) -> list[Check]:
    """The diagnostics of a run: what theory says that must hold."""
    found, nothing = [], float("nan")
    scale = float(np.abs(spectrum.exponents).sum())
    if whole(spectrum) and np.isfinite(spectrum.divergence):
        total = float(spectrum.exponents.sum())
        what = "log |det|" if spectrum.kind == "map" else "divergence"
        allowed = 1e-6 * scale + 1e-9
        found.append(Check(f"sum of exponents, mean {what}", total, spectrum.divergence, allowed))
    if whole(spectrum) and spectrum.hamiltonian:
        pairs = spectrum.exponents + spectrum.exponents[::-1]
        largest = float(np.abs(pairs).max())
        found.append(Check("pairing, largest |λi + λj|", largest, 0.0, 1e-6 * scale + 1e-9))
    zeros = [row for row in rows(spectrum) if row.vanishes]
    if zeros:
        largest = max(abs(row.exponent) for row in zeros)
        allowed = max(row.bound for row in zeros)
        numbers = ", ".join(f"λ{row.number}" for row in zeros)
        found.append(Check("zero exponents, largest modulus", largest, 0.0, allowed, numbers))
    if np.isfinite(spectrum.drift):
        found.append(Check("drift of the invariant, relative", spectrum.drift, nothing, nothing))
    return found


def lane_counts(spectrum: Spectrum) -> str:
    """How many trajectories of which kind."""
    found = kinds(spectrum)[own(spectrum)]
    counts = [(int((found == kind).sum()), kind) for kind in KINDS]
    return ", ".join(f"{count:,} {kind}" for count, kind in counts if count) or "none"


def orbit_bits(spectrum: Spectrum) -> Array:
    """Binary digits per orbit (5.10); NaN where turns are not known."""
    rate: Array = spectrum.exponents / np.log(2.0) / spectrum.orbits
    return rate


def with_error(value: float, error: float) -> str:
    """A value and its standard error."""
    if np.isnan(value):
        return "–"
    return f"{matched(value, error)} ± {number(error, 3)}" if error > 0.0 else number(value, 6)


def facts(spectrum: Spectrum) -> list[tuple[str, str]]:
    """The main numbers in words."""
    steps = "iterations" if spectrum.kind == "map" else "time units"
    after = f", after a transient of {number(spectrum.transient, 6)}" if spectrum.transient else ""
    found = [
        ("trajectories", lane_counts(spectrum)),
        ("duration", f"{spectrum.duration:,.10g} {steps} each{after}"),
        ("Kaplan-Yorke dimension", with_error(spectrum.dimension, spectrum.dimension_error)),
        ("entropy at most", with_error(spectrum.entropy, spectrum.entropy_error)),
    ]
    if np.isfinite(spectrum.doubling_time):
        found.append(("errors double in", with_error(spectrum.doubling_time, spectrum.doubling_time_error)))
    if spectrum.integrals is not None:
        found.append(("isolating integrals", f"{spectrum.integrals} (half of {spectrum.zeros} zeros)"))
    if spectrum.draw_exponents is not None:
        some = f"{len(drawn(spectrum)):,} of {len(spectrum.draw_exponents):,}"
        found.append(("draws of a fit", f"{some} with a spectrum"))
    if spectrum.driven:
        found.append(("driven", "time has one more exponent, 0, which is not listed"))
    blocks = f"{spectrum.growth.shape[1]:,} of {number(spectrum.block, 6)}"
    found += [
        ("blocks", f"{blocks}, orthonormal every {number(spectrum.interval, 4)}"),
        ("solve time", f"{spectrum.seconds:.3g} s"),
    ]
    return found if spectrum.seed is None else [*found, ("seed", str(spectrum.seed))]
