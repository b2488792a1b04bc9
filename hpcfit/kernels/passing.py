"""Pass 2b: series whose coefficients are used in the stage that makes them and never again need no memory."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from hpcfit.kernels.recurrences import Recurrence


def words(lines: Iterable[str]) -> set[str]:
    """All names that occur in pieces of C."""
    return {word for line in lines for word in re.findall(r"\w+", line)}


def passing_names(recurrences: Sequence[Recurrence], kept: Collection[str]) -> set[str]:
    """Names of series that neither convolutions nor later stages nor anybody in `kept` look back at."""
    needed = set(kept)
    for r in recurrences:
        needed |= words(name for pair in r.convolutions for name in pair)
        needed |= set(re.findall(r"(\w+)\[0\]", r.finish))
        needed |= {r.name} if r.arrays else set()
    return {r.name for r in recurrences} - needed


def as_locals(lines: Iterable[str], names: Collection[str], k: str) -> list[str]:
    """The same C with variables in place of the coefficients k of these series."""
    if not names:
        return list(lines)
    use = re.compile(rf"\b({'|'.join(sorted(names))})\[{k}\]")
    made = re.compile(rf"^(\s*)({'|'.join(sorted(names))})_{k} = ")
    return [made.sub(rf"\1const v \2_{k} = ", use.sub(rf"\1_{k}", line)) for line in lines]
