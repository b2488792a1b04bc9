"""A drill: faults during a campaign on a private SLURM, which must end as if nothing had happened.

python -m tests.drill.campaign [--faults 40] [--members 20000] [--seed 1]
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from hpcfit.files.campaigns import done_members, notes
from hpcfit.records.campaigns import count
from tests.drill.faults import FAULTS, Scene
from tests.journeys.campaign_material import S18, assert_same_numbers, hpcfit, numbers
from tests.minicluster import empty_queue, minicluster, queue

SMALL_DISK = "64m"
LONGEST = 3600.0  # seconds


def main() -> int:
    parser = argparse.ArgumentParser(description="Faults during a campaign.")
    parser.add_argument("--faults", type=int, default=40)
    parser.add_argument("--members", type=int, default=20_000)
    parser.add_argument("--tasks", type=int, default=40)
    parser.add_argument("--points", type=int, default=100, help="of each series: how long a fit takes")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    dice = random.Random(options.seed)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # daemons are stopped then, too
    with tempfile.TemporaryDirectory(prefix="drill", dir="/tmp") as name, small_disk(Path(name)) as small:
        folder = Path(name) / "disk"
        job = S18.replace("members = 2000", f"members = {options.members}")
        (folder / "s18.toml").write_text(job.replace("count = 100", f"count = {options.points}"))
        with minicluster(2, 2, MINICLUSTER_DEAD="10") as cluster:
            undisturbed(folder)
            scene = Scene(folder / "disturbed", cluster, dice, small)
            submit(scene, options.members, options.tasks)
            tally = disturb(scene, options.members, options.faults)
        compare(folder, options.members)
        tell(scene, tally)
    return 0


@contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """A file system of its own with little room, for root; else a folder, and the disk is never full."""
    disk = folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK}", "hpcfit-drill", str(disk)]
    small = subprocess.run(mount, capture_output=True).returncode == 0
    try:
        yield small
    finally:
        if small:
            subprocess.run(["umount", "--lazy", str(disk)], check=True)


def undisturbed(folder: Path) -> None:
    clock = time.monotonic()
    done = hpcfit("submit", "s18.toml", "-d", "undisturbed", "--local", cwd=folder, seconds=LONGEST)
    assert done.returncode == 0, done.stderr
    say(f"the undisturbed campaign took {time.monotonic() - clock:.0f} s")


def submit(scene: Scene, members: int, tasks: int) -> None:
    chunk = max(members // tasks // 5, 1)
    options = ("--tasks", tasks, "--ranks", 2, "--chunk", chunk, "--time", "30", "--partition", "main")
    done = hpcfit("submit", "s18.toml", "-d", scene.folder.name, *options, cwd=scene.folder.parent)
    assert done.returncode == 0, done.stderr


def disturb(scene: Scene, members: int, faults: int) -> Counter[str]:
    """Faults at equal distances along the work; whenever nothing is alive any more, resume."""
    kinds = [kind for _ in range(faults) for kind in scene.dice.sample(list(FAULTS), len(FAULTS))][:faults]
    tally: Counter[str] = Counter()
    result, end, made = scene.folder / "result.h5", time.monotonic() + LONGEST, 0
    while not (result.exists() and empty_queue()):
        assert time.monotonic() < end, f"no end in {LONGEST:.0f} s\n{queue()}"
        done = count(done_members(scene.folder))
        if made < faults and not result.exists() and done >= 0.9 * members * made / faults:
            kind = kinds[made]
            told = FAULTS[kind](scene)
            if not told and not nobody_at_work():
                kind, told = "nothing to spoil", "tried again"
            elif told:
                made += 1
            tally[kind] += bool(told)
            say(f"{made:3} of {faults}, {done:6,} members done: {kind}: {told or 'nobody at work'}")
        if not result.exists() and nobody_at_work():
            tally["resumed"] += 1
            resumed = hpcfit("resume", ".", cwd=scene.folder)
            assert resumed.returncode == 0, resumed.stderr
        time.sleep(0.2)
    assert made == faults, f"the campaign ended after {made} faults"
    for twin in scene.twins:
        twin.communicate(timeout=120)
    return tally


def nobody_at_work() -> bool:
    """No job is left, or only such as a controller that was killed forgot to release."""
    command = ["squeue", "--noheader", "--format=%r"]
    shown = subprocess.run(command, capture_output=True, text=True)
    return shown.returncode == 0 and set(shown.stdout.split()) <= {"JobHeldUser"}


def compare(folder: Path, members: int) -> None:
    """Nothing missing, nothing twice, nothing different."""
    disturbed, calm = folder / "disturbed" / "result.h5", folder / "undisturbed" / "result.h5"
    np.testing.assert_array_equal(numbers(disturbed)["members"], np.arange(1, members + 1))
    assert_same_numbers(disturbed, calm)
    say(f"all {members:,} members once, and bit by bit those of the undisturbed campaign")


def tell(scene: Scene, tally: Counter[str]) -> None:
    attempts = list(notes(scene.folder))
    statuses = Counter(str(note.get("status")) for _, _, note in attempts)
    aside = len(list(scene.folder.glob("*/*.unreadable*")))
    for kind, times in sorted(tally.items()):
        say(f"{times:5} {kind}")
    ended = ", ".join(f"{times} with status {status}" for status, times in sorted(statuses.items()))
    say(f"{len(attempts):5} attempts at tasks: {ended} (None: killed)")
    say(f"{aside:5} files set aside")


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
