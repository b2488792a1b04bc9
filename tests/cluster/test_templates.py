"""The templates under slurm/ are what submit would write, and can be used by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcfit.cluster.profiles import Profile, read_profile
from hpcfit.cluster.scripts import Array, Work, array_script, merge_script

ROOT = Path(__file__).parents[2]
WORK = Work("campaign", "python3", 3600, "by-hand")
TEMPLATES = {
    "tasks.sh": array_script(Profile(ranks=4), WORK, Array(0, 3, tuple(range(8)))),
    "merge.sh": merge_script(Profile(), WORK, []),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_templates_are_what_submit_writes(name: str) -> None:
    assert (ROOT / "slurm" / name).read_text() == TEMPLATES[name]


def test_the_example_of_profiles_can_be_read() -> None:
    assert read_profile(None, ROOT / "slurm" / "clusters.toml").ranks == 4
    assert read_profile("big", ROOT / "slurm" / "clusters.toml").max_running == 100
