"""The models that come with hpcfit, by name."""

from __future__ import annotations

from hpcfit.models.catalogue import bradley_1998, classics, maps, pendulums, switching
from hpcfit.models.define import Model
from hpcfit.models.names import nearest
from hpcfit.records import InputError

_FIXED: dict[str, Model] = {
    value.name: value
    for room in (classics, pendulums, maps, bradley_1998, switching)
    for value in vars(room).values()
    if isinstance(value, Model)
}
_SIZED = {"lorenz96": (classics.lorenz96, 4, 40)}  # factory, smallest size, usual size

NAMES = (*_FIXED, *_SIZED)
LARGEST_SIZE = 10_000


def find(name: str, size: int | None = None) -> Model:
    """A catalogue model; `size` is the number of states of those that come in any size."""
    if name in _SIZED:
        factory, smallest, usual = _SIZED[name]
        if size is not None and not smallest <= size <= LARGEST_SIZE:
            raise InputError(f"{name}: size {size} is outside {smallest}..{LARGEST_SIZE}; usual: {usual}")
        return factory(usual if size is None else size)
    if name not in _FIXED:
        raise InputError(f"no model '{name}' in the catalogue; {nearest(name, NAMES)}")
    if size is not None:
        raise InputError(
            f"{name}: has {len(_FIXED[name].states)} states and takes no size; remove size = {size}"
        )
    return _FIXED[name]
