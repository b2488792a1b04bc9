"""One colour for each exponent, the same in all pictures of a spectrum."""

from __future__ import annotations

from typing import Any

from hpcfit.reporting.style import BLUE, GREEN, ORANGE, PALETTE, PURPLE, VERMILION

ORDER = (BLUE, GREEN, VERMILION, PURPLE, ORANGE)
MOST_HUES = len(ORDER)


def colour(number: int, count: int) -> Any:
    """Of exponent `number` (0 is the largest) of `count`: hues for few, from warm to cold for many."""
    if count <= MOST_HUES:
        return ORDER[number]
    import matplotlib

    return matplotlib.colormaps["viridis"](0.95 * number / max(count - 1, 1))


def of_trajectory(number: int) -> str:
    return PALETTE[number % len(PALETTE)]
