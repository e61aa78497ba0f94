"""A network, processes and a root folder of a process's own, as root or where the kernel lets users make namespaces.

`leave` gives the calling process a network without a way out, and its next child is the first process of a world in
which no other can be named; when that child ends, the kernel ends whatever is left in there. `new_root`, called in that
child, leaves it a filesystem of the named paths alone, read-only, and an empty scratch folder in memory.
"""

import contextlib
import os
import signal
from collections.abc import Callable, Iterable

from gradekit.confine import linux
from gradekit.confine.linux import mount, syscall

_NEWNS, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = (1 << bit for bit in (17, 26, 27, 28, 29, 30))
_RDONLY, _NOSUID, _NODEV, _NOEXEC = 1, 2, 4, 8
_REMOUNT, _BIND, _REC, _PRIVATE = 1 << 5, 1 << 12, 1 << 14, 1 << 18
_DETACH = 2
_LOCKED = {8: _NOEXEC, 1024: 1 << 10, 2048: 1 << 11, 4096: 1 << 21}
"""Flags as statvfs names them, and as mount does: what a mount has already, a user's namespace may not take away."""


def attempted(action: Callable[..., object], *arguments: object) -> None:
    """Calls `action` in a process that then ends. Raises OSError where it did not succeed."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            action(*arguments)
            status = 0
        finally:
            os._exit(status)
    if os.waitpid(pid, 0)[1]:
        raise OSError("the attempt failed")


def possible(action: Callable[..., object], *arguments: object) -> bool:
    """Whether `attempted` raises nothing."""
    try:
        attempted(action, *arguments)
    except OSError:
        return False
    return True


def leave() -> None:
    """Leaves the network, and with the next fork others' processes. Raises OSError where that is not allowed here."""
    user, group = os.geteuid(), os.getegid()
    as_user = user != 0
    syscall("unshare", _NEWPID | _NEWNET | _NEWIPC | _NEWUTS | (_NEWUSER if as_user else 0))
    if as_user:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def die_with_parent(parent: int) -> None:
    """From now on, this process is killed when its parent `parent` ends; at once where that has ended."""
    with contextlib.suppress(OSError):  # a machine whose system calls have no known numbers
        linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() not in (parent, 0):  # 0: a parent in another process namespace
        os._exit(1)


def new_root(root: str, paths: Iterable[str], devices: Iterable[str], scratch: str, scratch_bytes: int) -> None:
    """Makes the empty folder `root` the root of the filesystem: see the module. Raises OSError where it may not."""
    syscall("unshare", _NEWNS)
    mount("none", "/", None, _REC | _PRIVATE)
    mount("tmpfs", root, "tmpfs", _NOSUID | _NODEV, "mode=755,size=4m")
    for path in sorted(paths):
        _show(root, path)
    for device in devices:
        _bind(device, _made(root, device))
    mount("tmpfs", _made(root, scratch, folder=True), "tmpfs", _NOSUID | _NODEV, f"mode=711,size={scratch_bytes}")
    mount(None, root, None, _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV)
    os.chdir(root)
    syscall("pivot_root", b".", b".")  # the old root is stacked below the new one, and taken away from there
    syscall("umount2", b".", _DETACH)
    os.chdir(scratch)


def _show(root: str, path: str) -> None:
    """Makes `path` visible, with the links that lead to it."""
    real = _follow(root, path)
    target = _made(root, real, folder=os.path.isdir(real))
    if os.path.ismount(target) or not os.path.exists(real):
        return
    _bind(real, target)
    flags = sum(as_mount for known, as_mount in _LOCKED.items() if os.statvfs(target).f_flag & known)
    mount(None, target, None, _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV | flags)


def _follow(root: str, path: str) -> str:
    """The real path of `path`; symbolic links on the way are made in `root` too."""
    at = ""
    for part in path.strip("/").split("/"):
        at = f"{at}/{part}"
        if os.path.islink(at):
            copy = root + at
            os.makedirs(os.path.dirname(copy), mode=0o755, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.symlink(os.readlink(at), copy)
            rest = path.strip("/").split("/")[at.count("/") :]
            return _follow(root, os.path.normpath(os.path.join(os.path.dirname(at), os.readlink(at), *rest)))
    return path


def _made(root: str, path: str, *, folder: bool = False) -> str:
    """Something to mount `path` on: a folder or an empty file of the same name in `root`."""
    target = root + path
    os.makedirs(target if folder else os.path.dirname(target), mode=0o755, exist_ok=True)
    if not folder and not os.path.exists(target):
        os.close(os.open(target, os.O_CREAT | os.O_RDONLY, 0o644))
    return target


def _bind(source: str, target: str) -> None:
    mount(source, target, None, _BIND | _REC)
