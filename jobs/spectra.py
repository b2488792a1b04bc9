"""Lyapunov spectra of the two PARFIT papers, run and laid beside what is printed: part of `make papers`.

Kallrath, Schlöder and Bock (1993), Tables I to III, and the values fitted in S17 to S36. Baake, Baake, Bock
and Briggs (1992), from the values fitted in L1 to R5. What is there already in build/papers is not run again.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hpcfit.__main__ import main as hpcfit
from hpcfit.files.results import load
from hpcfit.records import Spectrum
from jobs.papers import JOBS

BUILT = Path("build/papers")
SINGLE_RUNS = 16  # whose spread tells how far one run of 10^6 may lie from another
ROUNDING = 5e-4  # of the printed exponents
TABLES = {"1": 0.044, "2": 0.053, "3": 0.037}  # lambda_1
FITTED = {"1": (17, 18, 19), "2": range(21, 27), "3": range(31, 37)}
DIMENSIONS = {"l": (2.083, 0.001), "r": (2.009, 0.002)}
PRINTED = {
    "l1": "1.24, -0.01, -14.90",
    "l2": "1.22, 0.00, -14.88",
    "l3": "1.23, 0.00, -14.92",
    "l4": "1.24, 0.00, -14.91",
    "l5": "1.24, 0.00, -14.93",
    "r1": "0.09, 0.01, -9.88",
    "r2": "0.10, 0.03, -9.74",
    "r3": "0.07, 0.01, -9.81",
    "r4": "0.09, 0.01, -9.79",
    "r5": "0.08, 0.00, -9.68",
}


@dataclass(frozen=True)
class Table:
    """One table of Kallrath et al.: a run as it is printed, and the spread of such runs."""

    run: Spectrum
    spread: float  # of lambda_1


def result(job: Path, name: str, *overrides: str) -> Path:
    """The result of a job with some keys set, run where it is not there yet."""
    BUILT.mkdir(parents=True, exist_ok=True)
    target = BUILT / f"{name}.h5"
    options = [part for override in overrides for part in ("--set", override)]
    status = hpcfit(["-q", "run", str(job), "-o", str(target), *options])
    if status == 2:  # that of another version of the job
        hpcfit(["-q", "run", str(job), "-o", str(target), *options, "--overwrite"])
    return target


def spectrum_of(job: Path, name: str, *overrides: str) -> Spectrum:
    record = load(result(job, name, *overrides)).record
    assert isinstance(record, Spectrum)
    return record


def table(number: str) -> Table:
    job = JOBS / "kallrath_1993" / f"lyapunov_{number}.toml"
    many = spectrum_of(job, f"many_{number}", f"lyapunov.trajectories={SINGLE_RUNS}")
    single = many.growth[~many.regular, :, 0].sum(axis=1) / many.duration
    return Table(spectrum_of(job, f"lyapunov_{number}"), float(single.std(ddof=1)))


def of_fit(folder: str, name: str) -> Spectrum:
    """The spectrum of a scenario's fitted values."""
    fitted = result(JOBS / folder / f"{name}.toml", name).resolve()
    return spectrum_of(
        JOBS / folder / f"lyapunov_{name}.toml", f"lyapunov_{name}", f'lyapunov.from="{fitted}"'
    )


def tables() -> None:
    head = (
        "lambda_1 printed",
        "hpcfit",
        "spread of single runs",
        "lambda_2, lambda_3",
        "lambda_1 + lambda_4",
    )
    print(f"\n| | {' | '.join(head)} | drift of the energy |\n|---|---|---|---|---|---|---|")
    for number, says in TABLES.items():
        found = table(number)
        first, second, third, fourth = found.run.exponents
        zeros = f"{second:.1e}, {third:.1e}"
        row = (f"{says}", f"{first:.5f}", f"{found.spread:.5f}", zeros, f"{first + fourth:.0e}")
        print(f"| Table {'I' * int(number)} | {' | '.join(row)} | {found.run.drift:.0e} |", flush=True)


def fitted_tables() -> None:
    print("\n| fitted values | lambda_1 | against the true values | outcome |\n|---|---|---|---|")
    for number, scenarios in FITTED.items():
        true = float(table(number).run.exponents[0])
        for scenario in scenarios:
            found = of_fit("kallrath_1993", f"s{scenario}")
            change = f"{100.0 * (found.exponents[0] / true - 1.0):+.1f} %"
            how = "regular" if found.regular.any() else "chaotic"
            if found.failures:
                change, how = "", f"escapes at t = {found.failures[0].time:.4g}"
            print(f"| S{scenario} | {found.exponents[0]:.5f} | {change} | {how} |", flush=True)


def dimensions() -> None:
    head = "| fitted values | exponents printed | exponents | Kaplan–Yorke printed | Kaplan–Yorke |"
    print(f"\n{head}\n|---|---|---|---|---|")
    for name, says in PRINTED.items():
        middle, width = DIMENSIONS[name[0]]
        found = of_fit("baake_1992", name)
        own = ", ".join(f"{value:.3f}" for value in np.where(np.isnan(found.bounds), found.exponents, 0.0))
        inside = "inside" if abs(found.dimension - middle) <= width else "**outside**"
        spread = f"{found.dimension:.4f} ± {found.dimension_error:.1g}"
        print(f"| {name.upper()} | {says} | {own} | {middle} ± {width} | {spread}, {inside} |", flush=True)


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    tables()
    fitted_tables()
    dimensions()


if __name__ == "__main__":
    main()
