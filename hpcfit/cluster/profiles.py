"""How a cluster takes campaigns: the user's own configuration, what a job may add, and the command line.

Shell lines (launcher, modules, setup) come from the configuration alone: a job file, which may be anybody's,
gives values and --key=value options.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from hpcfit.cluster.times import seconds_of
from hpcfit.records import InputError, Mistake

# What a job file may ask for beside the keys: what a task gets, not what runs, where it writes, who is told.
RESOURCES = (
    *("begin", "constraint", "cpu-freq", "deadline", "distribution", "exclude", "exclusive", "gpus", "gres"),
    *("hint", "licenses", "mincpus", "nice", "nodelist", "nodes", "ntasks-per-node", "prefer", "priority"),
    *("reservation", "switches", "threads-per-core", "tmp", "tres-per-task", "cluster-constraint"),
)
OURS = (
    *("account", "array", "chdir", "comment", "cpus-per-task", "dependency", "error", "export", "hold"),
    *("input", "job-name", "mem", "mem-per-cpu", "no-requeue", "ntasks", "open-mode", "output", "parsable"),
    *("partition", "qos", "requeue", "signal", "test-only", "time", "wait", "wrap"),
)
_OPTION = re.compile(r"--([a-z][a-z-]*)(?:=(.*))?")


@dataclass(frozen=True)
class Profile:
    """What a task gets, and what its script says before it begins."""

    name: str = ""
    partition: str = ""
    account: str = ""
    qos: str = ""
    time: str = ""  # limit of a task; '': as long as the pilot says
    memory: str = ""  # of a rank
    ranks: int = 1  # of a task
    max_tasks: int = 1000  # of a campaign
    max_running: int = 0  # tasks at once; 0: as many as the cluster lets run
    options: tuple[str, ...] = ()  # further --key=value of sbatch
    cpu: str = ""  # that machine code is built for, as in x86-64-v3; '': the one of this machine
    launcher: str = "srun --mpi=pmix"  # shell
    modules: tuple[str, ...] = ()  # loaded in their order
    setup: tuple[str, ...] = ()  # shell lines


KEYS = tuple(field.name for field in fields(Profile) if field.name != "name")
SHELL = ("cpu", "launcher", "modules", "setup")  # the configuration's alone


def configuration_file() -> Path:
    """$HPCFIT_CLUSTERS, else clusters.toml in the user's configuration."""
    given = os.environ.get("HPCFIT_CLUSTERS")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "hpcfit" / "clusters.toml"


def read_profile(name: str | None, file: Path | None = None) -> Profile:
    """The profile of this name; without one the default, or where there is no configuration the plain one."""
    file = file or configuration_file()
    try:
        text = file.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        if name:
            problem = f"there is no cluster '{name}': no such file"
            raise InputError(Mistake(str(file), problem, "write it, or leave out --cluster")) from None
        return Profile()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(Mistake(str(file), f"cannot be read: {error}", "check it")) from None
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(Mistake(str(file), f"not valid TOML: {error}", "texts need quotes")) from None
    chosen = name or document.pop("default", None)
    known = [key for key, value in document.items() if isinstance(value, dict)]
    if chosen is None:
        return Profile()
    if chosen not in known:
        shown = ", ".join(known) or "none"
        raise InputError(Mistake(str(file), f"there is no cluster '{chosen}'", f"it has: {shown}"))
    return combined(Profile(name=chosen), document[chosen], f"{file}: {chosen}", shell=True)


def combined(
    profile: Profile, given: Mapping[str, Any], place: str, *, shell: bool = False, foreign: bool = False
) -> Profile:
    """A profile in which some values are replaced.

    shell: shell lines may be given here. foreign: not by the user, who may ask for resources only.
    """
    mistakes = []
    values: dict[str, Any] = {}
    for key, value in given.items():
        try:
            if key not in KEYS or (key in SHELL and not shell):
                known = KEYS if shell else [k for k in KEYS if k not in SHELL]
                raise InputError(f"unknown key; known are {', '.join(known)}")
            values[key] = _READERS[key](value)
            if key == "options" and foreign:
                _check_resources(values[key])
        except InputError as error:
            problem, _, remedy = str(error).partition("; ")
            mistakes.append(Mistake(place, problem, remedy, key, value))
    if mistakes:
        raise InputError(mistakes)
    if "options" in values:
        values["options"] = _merged(profile.options, values["options"])
    return Profile(**{**vars(profile), **values})


def _merged(before: tuple[str, ...], after: tuple[str, ...]) -> tuple[str, ...]:
    """Options of which the later ones replace those of the same name."""
    by_name = {option.partition("=")[0]: option for option in (*before, *after)}
    return tuple(by_name.values())


def _check_resources(options: tuple[str, ...]) -> None:
    for option in options:
        name = option.removeprefix("--").partition("=")[0]
        if name not in RESOURCES:
            known = ", ".join(RESOURCES)
            raise InputError(f"{option} belongs into the user's configuration; a job may give {known}")


def _line(value: Any) -> str:
    """A text of one line."""
    if not isinstance(value, str) or not value.strip():
        raise InputError("must be a text in quotes")
    if not value.isprintable():
        raise InputError("holds a character that cannot be printed; write it on one line")
    return value


def _shell(value: Any) -> str:
    """A piece of shell text: tabs and new lines are the user's own."""
    if not isinstance(value, str) or "\0" in value:
        raise InputError("must be a text in quotes")
    return value


def _time(value: Any) -> str:
    text = _line(value)
    seconds_of(text)
    return text


def _memory(value: Any) -> str:
    text = _line(value)
    if not re.fullmatch(r"[1-9]\d*[KMGT]?", text):
        raise InputError("must be a whole number with its unit; as in 2G or 500M")
    return text


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10**6:
        raise InputError("must be a whole number from 1 to 1000000")
    return value


def _several(reader: Callable[[Any], str]) -> Callable[[Any], tuple[str, ...]]:
    def read(value: Any) -> tuple[str, ...]:
        if not isinstance(value, list | tuple):
            raise InputError("must be a list of texts")
        return tuple(reader(each) for each in value)

    return read


def _option(value: Any) -> str:
    text = _line(value)
    found = _OPTION.fullmatch(text)
    if not found:
        raise InputError(f"'{text}' is no option; write it as in --constraint=rome")
    if found[1] in OURS:
        raise InputError(f"--{found[1]} is set by hpcfit; use the keys of the profile")
    return text


_READERS: dict[str, Callable[[Any], Any]] = {
    "partition": _line,
    "account": _line,
    "qos": _line,
    "time": _time,
    "memory": _memory,
    "ranks": _whole,
    "max_tasks": _whole,
    "max_running": _whole,
    "options": _several(_option),
    "cpu": _line,
    "launcher": _shell,
    "modules": _several(_line),
    "setup": _several(_shell),
}
