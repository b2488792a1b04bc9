"""Quantiles of the distributions behind intervals and tests; scipy is loaded only when one is asked for."""

from __future__ import annotations

from hpcfit.linear.inverse import Numbers
from hpcfit.records import Array


def student(degrees_of_freedom: int, probability: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(degrees_of_freedom, probability))


def fisher(first: int, second: int, probability: float) -> float:
    from scipy.special import fdtri

    return float(fdtri(first, second, probability))


def chi_square_above(degrees_of_freedom: Numbers, probability: float) -> Array:
    """What is passed with this (small) probability."""
    from scipy.special import chdtri

    limit: Array = chdtri(degrees_of_freedom, probability)
    return limit
