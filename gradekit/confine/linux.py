"""Linux system calls by name, through ctypes; an error is an OSError."""

from __future__ import annotations

import ctypes
import os
import platform
from typing import Any

NUMBERS: dict[str, tuple[int, int]] = {
    "accept": (43, 202), "accept4": (288, 242), "acct": (163, 89), "add_key": (248, 217), "adjtimex": (159, 171),
    "bind": (49, 200), "bpf": (321, 280), "capset": (126, 91), "chroot": (161, 51), "clock_adjtime": (305, 266),
    "clock_settime": (227, 112), "clone": (56, 220), "clone3": (435, 435), "connect": (42, 203),
    "delete_module": (176, 106), "fanotify_init": (300, 262), "fcntl": (72, 25), "finit_module": (313, 273),
    "fremovexattr": (199, 16), "fsconfig": (431, 431), "fsetxattr": (190, 7), "fsmount": (432, 432),
    "fsopen": (430, 430), "fspick": (433, 433), "init_module": (175, 105), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "io_uring_setup": (425, 425), "ioctl": (16, 29), "ioperm": (173, -1),
    "iopl": (172, -1), "ioprio_set": (251, 30), "kcmp": (312, 272), "kexec_file_load": (320, 294),
    "kexec_load": (246, 104), "keyctl": (250, 219), "kill": (62, 129), "landlock_add_rule": (445, 445),
    "landlock_create_ruleset": (444, 444), "landlock_restrict_self": (446, 446), "listen": (50, 201),
    "listmount": (458, 458), "lookup_dcookie": (212, 18), "lremovexattr": (198, 15), "lsetxattr": (189, 6),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "migrate_pages": (256, 238), "modify_ldt": (154, -1),
    "mount": (165, 40), "mount_setattr": (442, 442), "move_mount": (429, 429), "move_pages": (279, 239),
    "mq_open": (240, 180), "msgget": (68, 186), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    "open_tree": (428, 428), "perf_event_open": (298, 241), "personality": (135, 92), "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "pivot_root": (155, 41), "prctl": (157, 167),
    "prlimit64": (302, 261), "process_madvise": (440, 440), "process_mrelease": (448, 448),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "ptrace": (101, 117), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "reboot": (169, 142), "removexattr": (197, 14), "request_key": (249, 218),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
    "seccomp": (317, 277), "semget": (64, 190), "setdomainname": (171, 162), "sethostname": (170, 161),
    "setns": (308, 268), "setpgid": (109, 154), "setpriority": (141, 140), "setsid": (112, 157),
    "settimeofday": (164, 170), "setxattr": (188, 5), "shmget": (29, 194), "socket": (41, 198),
    "statmount": (457, 457), "swapoff": (168, 225), "swapon": (167, 224), "syslog": (103, 116), "tgkill": (234, 131),
    "tkill": (200, 130), "umount2": (166, 39), "unshare": (272, 97), "userfaultfd": (323, 282),
    "vhangup": (153, 58),
}  # fmt: skip
"""(x86-64, aarch64) by name; -1 where the machine has no such call."""

NEWEST = 462
"""The highest number that this table was made with: a kernel may know calls after it, which nobody has judged."""

MACHINES = {"x86_64": 0, "aarch64": 1}

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_SET_CHILD_SUBREAPER = 1, 4, 24, 38, 36
PR_SET_KEEPCAPS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, PR_CAP_AMBIENT_CLEAR_ALL = 8, 47, 2, 4

_libc = ctypes.CDLL(None, use_errno=True)


def number(name: str) -> int | None:
    """The number of a call on this machine; None where it has none, or the machine is not one of MACHINES."""
    column = MACHINES.get(platform.machine())
    if column is None or NUMBERS[name][column] < 0:
        return None
    return NUMBERS[name][column]


def syscall(name: str, *arguments: Any) -> int:
    """The result of a system call; integers are passed as longs, bytes and None as pointers.

    Raises:
        OSError: the kernel refuses, or this machine's numbers are not known.
    """
    code = number(name)
    if code is None:
        raise OSError(38, f"{name} is not known on {platform.machine()}")
    passed = [ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments]
    ctypes.set_errno(0)
    result = _libc.syscall(ctypes.c_long(code), *passed)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")
    return int(result)


def prctl(option: int, *arguments: int) -> int:
    """`prctl(2)` with up to four arguments."""
    return syscall("prctl", option, *arguments, *[0] * (4 - len(arguments)))


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    """`mount(2)`."""
    syscall("mount", _path(source), _path(target), _path(kind), flags, _path(data or None))


def _path(text: str | None) -> bytes | None:
    return None if text is None else os.fsencode(text)
