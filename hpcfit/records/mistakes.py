"""What is wrong with an input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Mistake:
    """One thing that is wrong with an input: where, what, and the remedy."""

    place: str  # a file, an argument, a command line; may be empty
    problem: str
    remedy: str = ""
    key: str = ""
    value: object = None

    def __str__(self) -> str:
        shown = "" if self.value is None else f" = {_short(self.value)}"
        said = self.problem + (f"; {self.remedy}" if self.remedy else "")
        line = ": ".join(part for part in (self.place, self.key + shown, said) if part)
        return line.replace("\n", "\\n")  # one mistake, one line


def _short(value: object) -> str:
    shown = _as_toml(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _as_toml(value: object) -> str:
    """A value as it would stand in a job file."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_as_toml(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_as_toml(entry) for entry in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


class InputError(ValueError):
    """Input that cannot be used; the message names the place, the value and the remedy."""

    def __init__(self, mistakes: str | Mistake | Sequence[Mistake]) -> None:
        single = Mistake("", mistakes) if isinstance(mistakes, str) else mistakes
        self.mistakes = [single] if isinstance(single, Mistake) else list(single)
        super().__init__("\n".join(str(mistake) for mistake in self.mistakes))

    def __reduce__(self) -> tuple[type[InputError], tuple[list[Mistake]]]:
        return InputError, (self.mistakes,)  # errors travel between ranks
