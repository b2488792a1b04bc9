"""Times as SLURM writes them."""

from __future__ import annotations

import re

from hpcfit.records import InputError

_DAY, _HOUR, _MINUTE = 86400, 3600, 60
_FORMS = re.compile(
    r"(?:(?P<days>\d+)-(?P<day_hours>\d+)(?::(?P<day_minutes>\d+))?(?::(?P<day_seconds>\d+))?"
    r"|(?P<hours>\d+):(?P<hour_minutes>\d+):(?P<hour_seconds>\d+)"
    r"|(?P<minutes>\d+)(?::(?P<minute_seconds>\d+))?)"
)


def seconds_of(text: str) -> int:
    """Of 90, 90:00, 01:30:00, 1-12, 1-12:30 or 1-12:30:00."""
    found = _FORMS.fullmatch(text.strip())
    if not found:
        raise InputError(f"'{text}' is no time; write it as in 01:30:00, 1-12:00:00 or 90 (minutes)")
    given = {name: int(value or 0) for name, value in found.groupdict().items()}
    total = (
        given["days"] * _DAY
        + (given["day_hours"] + given["hours"]) * _HOUR
        + (given["day_minutes"] + given["hour_minutes"] + given["minutes"]) * _MINUTE
        + (given["day_seconds"] + given["hour_seconds"] + given["minute_seconds"])
    )
    if not total:
        raise InputError(f"'{text}' is no time at all; give some minutes")
    return total


def time_text(seconds: float) -> str:
    """As in 1-02:03:04 or 02:03:04, whole seconds."""
    days, rest = divmod(round(seconds), _DAY)
    hours, rest = divmod(rest, _HOUR)
    clock = f"{hours:02}:{rest // _MINUTE:02}:{rest % _MINUTE:02}"
    return f"{days}-{clock}" if days else clock
