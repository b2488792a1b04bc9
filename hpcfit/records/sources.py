"""Where data come from: memory, a file, or another rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hpcfit.records.paths import Series


class Source(Protocol):
    """The data of one experiment; a `Series` is one that is in memory."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def count(self) -> int:
        """How many times there are."""

    @property
    def has_sigma(self) -> bool: ...

    @property
    def has_sigma_t(self) -> bool: ...

    def rows(self, first: int, last: int) -> Series:
        """From one time to another, which is not included."""


@dataclass(frozen=True)
class Heading:
    """What ranks know of a series that rank 0 has."""

    names: tuple[str, ...]
    count: int
    has_sigma: bool
    has_sigma_t: bool = False

    def rows(self, first: int, last: int) -> Series:
        raise LookupError("rank 0 has the values")
