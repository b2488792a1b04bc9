"""All scenarios of the two PARFIT papers, run and laid beside what is printed: `make papers`.

Kallrath, Schlöder and Bock (1993): S11 to S36. Baake, Baake, Bock and Briggs (1992): L1 to R5.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hpcfit.commands.loading import load
from hpcfit.commands.work import run_ensemble, run_fit
from hpcfit.leastsq.statistics import fisher_factor
from hpcfit.mpi.serial import SERIAL
from hpcfit.records import FitResult

JOBS = Path(__file__).parent
MEMBERS = 200  # noise realisations behind a typical standard error
EXACT = ("L1", "L2", "L4", "R1", "R2", "R4", *(f"S1{k}" for k in range(1, 7)))
CLASS = ("L5", "R5")  # one model out of all quadratic ones


@dataclass(frozen=True)
class Printed:
    """What a paper says of one scenario."""

    iterations: int | None = None
    errors: dict[str, float] = field(default_factory=dict)  # absolute, or standard errors x sqrt(7 sigma)
    half_widths: dict[str, float] = field(default_factory=dict)


def scenarios() -> dict[str, Path]:
    """The job of every scenario."""
    found = sorted(JOBS.glob("*_199[23]/*.toml"))
    return {path.stem.upper(): path for path in found if not path.stem.startswith("lyapunov")}


def printed() -> dict[str, Printed]:
    """The papers' tables."""
    known: dict[str, Printed] = {}
    for row in _rows(JOBS / "kallrath_1993" / "printed.csv"):
        errors = {name: float(row[name]) for name in ("x1", "x2", "x3", "x4", "a", "b", "c") if row[name]}
        known[row["scenario"]] = Printed(int(row["iterations"]), errors)
    for row in _rows(JOBS / "baake_1992" / "printed.csv"):
        entry = known.setdefault(row["scenario"], Printed())
        entry.errors[row["parameter"]] = float(row["error"])
        if row["half_width"]:
            entry.half_widths[row["parameter"]] = float(row["half_width"])
    return known


def _rows(path: Path) -> Iterator[dict[str, str]]:
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    return iter(csv.DictReader(lines))


def run(name: str) -> FitResult:
    """One scenario, with the noise of its job."""
    return run_fit(SERIAL, load(scenarios()[name]), 0)


def typical_errors(name: str, members: int = MEMBERS) -> dict[str, float]:
    """Median standard errors over noise realisations 1..members."""
    asked = ['kind="ensemble"', 'ensemble.of="fit"', f"ensemble.members={members}", "fit.derived={}"]
    found = run_ensemble(SERIAL, load(scenarios()[name], asked))
    return dict(zip(found.names, np.median(found.errors, axis=0).tolist(), strict=True))


def deviations(result: FitResult) -> dict[str, float]:
    """Estimate minus truth of every parameter."""
    return {name: value - result.truth[name] for name, value in result.parameters.items()}


def standardised(result: FitResult) -> dict[str, float]:
    """The same in standard errors."""
    return {name: value / result.errors[name] for name, value in deviations(result).items()}


def error_ratios(name: str, says: Printed) -> dict[str, float]:
    """Our typical standard errors x sqrt(7 sigma), over those printed in Tables I to III."""
    noise = load(scenarios()[name]).job["truth"]["noise"]
    factor = math.sqrt(7.0 * noise.sd)
    ours = typical_errors(name)
    return {unknown: factor * ours[unknown] / value for unknown, value in says.errors.items()}


def half_widths(name: str, result: FitResult) -> dict[str, float]:
    """gamma times the typical standard error of every parameter."""
    gamma = fisher_factor(len(result.unknowns.names), result.degrees_of_freedom)
    ours = typical_errors(name)
    return {parameter: gamma * ours[parameter] for parameter in result.parameter_names}


def identified(result: FitResult) -> tuple[int, int]:
    """How many true zeros lie in their joint 95 % interval, and how many other coefficients exclude zero."""
    inside = {
        name: abs(value) <= result.gamma * result.errors[name] for name, value in result.parameters.items()
    }
    zeros = [name for name in inside if result.truth[name] == 0.0]
    return sum(inside[name] for name in zeros), sum(not inside[name] for name in inside if name not in zeros)


def row(name: str, says: Printed) -> list[str]:
    """One line of the table: paper beside hpcfit."""
    result = run(name)
    counts = f"{result.iterations} / {result.linearisations}"
    head = [name, str(says.iterations or ""), counts, result.outcome.value]
    if name in EXACT:
        paper = "< 5e-5" if name.startswith("S") else f"{max(says.errors.values()):.0e}"
        ours = f"{max(abs(value) for value in deviations(result).values()):.0e}"
        return [*head, f"largest error {paper}", ours]
    worst = max(abs(value) for value in standardised(result).values())
    own = f"largest error {worst:.1f} standard errors"
    if name in CLASS:
        zeros, others = identified(result)
        return [*head, "model identified", f"{zeros} of 23 zeros inside, {others} of 7 others outside; {own}"]
    if says.half_widths:
        ours_wide = ", ".join(f"{value:.2g}" for value in half_widths(name, result).values())
        wide = ", ".join(f"{value:.2g}" for value in says.half_widths.values())
        return [*head, f"half widths {wide}", f"{ours_wide}; {own}"]
    ratios = error_ratios(name, says)
    return [
        *head,
        "standard errors",
        f"{min(ratios.values()):.2f} to {max(ratios.values()):.2f} of them; {own}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenarios", nargs="*", help="default: all 31")
    chosen = [name.upper() for name in parser.parse_args().scenarios]
    print(
        "| scenario | paper's iterations | exact iterations / all linearisations | outcome | paper | hpcfit |"
    )
    print("|---|---|---|---|---|---|")
    for name, says in sorted(printed().items()):
        if not chosen or name in chosen:
            print("| " + " | ".join(row(name, says)) + " |", flush=True)


if __name__ == "__main__":
    main()
