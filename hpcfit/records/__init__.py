"""The frozen nouns that the rooms hand to each other."""

from hpcfit.records.arrays import Array
from hpcfit.records.campaigns import Campaign, Interval, Part, gaps, slices, united
from hpcfit.records.fits import (
    Constraint,
    EnsembleResult,
    Estimates,
    Extent,
    FitResult,
    Iteration,
    Pieces,
    Stretch,
)
from hpcfit.records.mistakes import InputError, Mistake
from hpcfit.records.outcomes import Failure, Outcome
from hpcfit.records.paths import TIMES, Crossings, Lanes, Noise, Path, Series, Switchings
from hpcfit.records.sources import Heading, Source
from hpcfit.records.spectra import Bundle, Carried, Convergence, Growth, Halt, Section, Spectrum

__all__ = [
    "TIMES",
    "Array",
    "Bundle",
    "Campaign",
    "Carried",
    "Constraint",
    "Convergence",
    "Crossings",
    "EnsembleResult",
    "Estimates",
    "Extent",
    "Failure",
    "FitResult",
    "Growth",
    "Halt",
    "Heading",
    "InputError",
    "Interval",
    "Iteration",
    "Lanes",
    "Mistake",
    "Noise",
    "Outcome",
    "Part",
    "Path",
    "Pieces",
    "Section",
    "Series",
    "Source",
    "Spectrum",
    "Stretch",
    "Switchings",
    "gaps",
    "slices",
    "united",
]
