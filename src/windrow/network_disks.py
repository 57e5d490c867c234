"""Finds out whether a path lies on a network file system, where SQLite's locks do not hold."""

from __future__ import annotations

from pathlib import Path

from windrow.bounded import BoundedCache

__all__ = ["network_file_system"]

_NETWORK = frozenset({
    "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2",
    "orangefs", "pvfs2", "smb3", "smbfs", "fuse.blobfuse2", "fuse.davfs2", "fuse.gcsfuse", "fuse.glusterfs",
    "fuse.goofys", "fuse.juicefs", "fuse.mount-s3", "fuse.rclone", "fuse.s3fs", "fuse.sshfs",
})  # fmt: skip
_MOUNTS = Path("/proc/self/mountinfo")
_devices: BoundedCache[int, str | None] = BoundedCache("file systems", 256)
"""By device, since all paths of a device lie on one file system."""


def network_file_system(path: Path, mounts: Path = _MOUNTS) -> str | None:
    """Return the kind of network file system that holds a path, or None; None too where the system does not tell."""
    if mounts != _MOUNTS or not path.parent.exists():
        return _looked_up(path, mounts)
    return _devices.get_or_make(path.parent.stat().st_dev, lambda: _looked_up(path, mounts))


def _looked_up(path: Path, mounts: Path) -> str | None:
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    real = path.resolve()
    best, kind = -1, None
    for line in lines:
        point, file_system = _mount(line)
        if real.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), file_system
    return kind if kind in _NETWORK else None


def _mount(line: str) -> tuple[Path, str]:
    """Read a line of mountinfo: the mount point is the fifth field, the kind is the first after the dash."""
    before, _, after = line.partition(" - ")
    point = before.split(" ")[4]
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        point = point.replace(code, character)
    return Path(point), after.split(" ")[0]
