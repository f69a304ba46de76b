"""The file system below a folder, and what must be said of it."""

from pathlib import Path

import pytest

from load.stack.disk import filesystem, warning

MOUNTS = r"""
1 0 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
2 1 0:30 / /dev/shm rw shared:2 - tmpfs tmpfs rw
3 1 8:1 / /mnt/two\040words rw - xfs /dev/sda1 rw
4 1 8:2 / /srv rw - btrfs /dev/sdb rw
5 4 0:31 / /srv rw - tmpfs tmpfs rw
""".strip()


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/nowhere/yet", "ext4"),
        ("/dev/shm/stack", "tmpfs"),
        ("/dev/shmall", "ext4"),
        ("/mnt/two words/data", "xfs"),
        ("/srv/data", "tmpfs"),
    ],
)
def test_the_nearest_mount_counts_when_several_lie_above(folder: str, kind: str) -> None:
    assert filesystem(Path(folder), mounts=MOUNTS) == kind


def test_this_machine_names_its_file_system_when_asked() -> None:
    assert filesystem(Path("/proc/self")) == "proc"


def test_a_figure_is_no_figure_when_the_disk_is_memory() -> None:
    assert "a figure measured on tmpfs is no figure" in str(warning("tmpfs"))
    assert warning("ext4") is None
