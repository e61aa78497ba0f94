"""Imports torch and triton once, then forks a child for each submission: confined before any student code runs, and
ended with all that it started.

The grader speaks over one Unix socket: {"do": "fork"} comes with the descriptor of a socket for the new child, which
is answered with its process id, as it is known here; {"do": "end", "pid": n} kills that child and all that it started,
and is answered with how the child ended. When the grader goes, every child goes with it.
"""

import contextlib
import os
import resource
import select
import signal
import socket
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from gradekit import wire
from gradekit.compat import torch_import
from gradekit.confine import confinement, identity, namespaces
from gradekit.confine.confinement import Confinement, enter_root
from gradekit.confine.paths import remove, settle_in

USERS = 256  # how many user ids the children take in turn, as root: two that live at one time never have the same

OPEN_FILES = 256

PULSE_SECONDS = 0.25

MEMORY_BYTES = 1 << 30  # of all processes of one submission: with the grader, a check stays below 2 GiB

FILE_BYTES, FILES = 512 << 20, 20_000  # of all files of one submission, and how many they may be

DATA_BYTES = 3 * MEMORY_BYTES // 2
"""What one process may have to write to: more than it may keep, for the stacks of threads count whole."""


class Children:
    """The children of one server, with files in `scratch`; its /proc/self/statm is open as `statm`, /proc as `proc`."""

    def __init__(self, confinement: Confinement, scratch: str, statm: int, proc: int) -> None:
        self.confinement = confinement
        self.scratch = scratch
        self.statm, self.proc = statm, proc
        self.made = 0
        if confinement.user is not None:
            os.chmod(scratch, 0o711)  # each child must reach its own folder in there
        self.homes: dict[int, str] = {}
        self.users: dict[int, int | None] = {}
        self.ended: dict[int, int] = {}

    def fork(self, sock: socket.socket, told: Sequence[int], allowed: dict[str, int]) -> int:
        """The id of a new child that answers on `sock`, may read `told`, if any, and use what is `allowed`."""
        self.made += 1
        first = self.confinement.user
        confinement = replace(self.confinement, user=None if first is None else first + self.made % USERS)
        home = tempfile.mkdtemp(prefix="submission-", dir=self.scratch)
        server, pid = os.getpid(), os.fork()
        if pid == 0:
            self._become_child(sock, told, allowed, home, confinement, server)
        self.homes[pid], self.users[pid] = home, confinement.user
        return pid

    def end(self, pid: int) -> int:
        """Kills a child and all that it started; its wait status, which tells how it ended if it had ended before."""
        if pid not in self.homes:
            return 0  # it may be one of a server before this one
        if pid not in self.ended:
            _kill(os.killpg, pid)  # before waiting: until then the number is nobody else's
            _kill(os.kill, pid)
            self.ended[pid] = os.waitpid(pid, 0)[1]
        user = self.users.pop(pid)
        if user is not None and user >= identity.HIGH and not self.confinement.means.seccomp:
            namespaces.possible(_kill_all_of, user)  # it may have left its process group
        remove(self.homes.pop(pid))
        return self.ended.pop(pid)

    def reap(self) -> None:
        """Reaps what has ended: children, whose status is kept until it is asked for, and what they had started."""
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] in self.homes:
                    self.ended[found[0]] = found[1]
                    _kill(os.killpg, found[0])

    def end_those_with_too_many_files(self) -> None:
        """Where files are in no memory that is limited for all: such a child ends as by the signal for large files."""
        if self.confinement.means.root:
            return
        for pid, home in self.homes.items():
            if pid not in self.ended and too_much(home):
                _kill(os.killpg, pid)
                _kill(os.kill, pid)
                os.waitpid(pid, 0)
                self.ended[pid] = signal.SIGXFSZ

    def end_all(self) -> None:
        """Ends every child."""
        for pid in list(self.homes):
            self.end(pid)

    # --- in the child ------------------------------------------------------------------------------------------------

    def _become_child(
        self, sock: socket.socket, told: Sequence[int], allowed: dict[str, int], home: str, confinement: Confinement,
        server: int,
    ) -> None:  # fmt: skip
        status = 1
        try:
            os.setsid()
            settle_in(home)
            self._limit(allowed)
            wire.send_descriptors(sock, _schedstat(self.proc))
            confinement.enter(home, server, tasks=allowed["processes"])
            from gradekit.tracer import child

            alone, file = _alone_with(sock, told)
            wire.send(alone, {"ok": "confined"})
            child.serve(alone, file)
            status = 0
        finally:
            os._exit(status)  # nothing of the server's may run in the child's end

    def _limit(self, allowed: dict[str, int]) -> None:
        """Memory is counted on top of what torch and triton map already. Threads map more than they write to."""
        pages = [int(count) * resource.getpagesize() for count in os.pread(self.statm, 100, 0).split()]
        mapped, data = pages[0], pages[5]
        confinement.lower(
            {
                resource.RLIMIT_AS: mapped + allowed["memory_bytes"],
                resource.RLIMIT_DATA: data + min(allowed["memory_bytes"], DATA_BYTES),
                resource.RLIMIT_FSIZE: allowed["file_bytes"],
                resource.RLIMIT_CPU: allowed["cpu_seconds"],
                resource.RLIMIT_NOFILE: OPEN_FILES,
                resource.RLIMIT_CORE: 0,
            }
        )


def _kill(kill: Callable[[int, int], None], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        kill(number, signal.SIGKILL)


def _schedstat(proc: int) -> list[int]:
    """An open file that tells how long this process was ready to run; none where the system does not count."""
    with contextlib.suppress(OSError):
        return [os.open("self/schedstat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)]
    return []


def _alone_with(sock: socket.socket, told: Sequence[int]) -> tuple[socket.socket, wire.ForkedCache | None]:
    """`sock` as descriptor 3, a file as 4, and no other but the standard ones, which lead nowhere."""
    kept = [os.dup(number) for number in (sock.detach(), *told)]  # so that neither takes the other's number
    for place, number in enumerate(kept, start=3):
        os.dup2(number, place)
    os.closerange(3 + len(kept), 1 << 20)
    return socket.socket(fileno=3), wire.ForkedCache(0, 4) if told else None


def _kill_all_of(user: int) -> None:
    """Kills every process of a user at once, as none but that user can."""
    identity.become(user)
    os.kill(-1, signal.SIGKILL)


# --- nobody takes more than a share of the machine --------------------------------------------------------------------
#
# The kernel limits each process and each file; how many there are multiplies that. Here they are added up, a few times
# each second, and whoever is over is ended. The supervisor, which sees every process, adds up memory; the server, which
# has made the folders, adds up files, where they are not in memory anyway.


@dataclass(frozen=True)
class Process:
    """One process of a submission: its `session`, and the bytes that it has of its `own`, which no file holds."""

    pid: int
    session: int
    own: int


def over_memory(server: int, most: int = MEMORY_BYTES) -> list[Process]:
    """The processes of submissions that have more memory than `most` bytes together, beyond what the `server` gave
    them. A submission is a session: a process that it starts cannot leave it."""
    given = _own(server)
    sums, members = defaultdict[int, int](int), defaultdict[int, list[Process]](list)
    for process in _below(server):
        sums[process.session] += max(process.own - given, 0)
        members[process.session].append(process)
    return [process for session, total in sums.items() if total > most for process in members[session]]


def end_process(process: Process) -> None:
    """Kills a process, if its number still means the same one."""
    with contextlib.suppress(OSError):
        handle = os.pidfd_open(process.pid)
        try:
            if _session(process.pid) == process.session:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


def enforce(server: int) -> None:
    """Ends the processes of submissions that have too much memory."""
    for process in over_memory(server):
        end_process(process)


def _below(pid: int) -> Iterator[Process]:
    for child in _children(pid):
        with contextlib.suppress(OSError, ValueError, IndexError):
            yield Process(child, _session(child), _own(child))
        yield from _below(child)


def _children(pid: int) -> Iterator[int]:
    with contextlib.suppress(OSError, ValueError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                yield from map(int, file.read().split())


def _session(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[3])


def _own(pid: int) -> int:
    with open(f"/proc/{pid}/status", "rb") as file:
        lines = [line.split() for line in file if line.startswith((b"RssAnon:", b"RssShmem:", b"VmSwap:"))]
    return sum(int(line[1]) << 10 for line in lines)


def too_much(folder: str, most: int = FILE_BYTES, most_files: int = FILES) -> bool:
    """Whether `folder` has over `most` bytes, over `most_files` files and folders, or one that nobody may look into."""
    size, count = 0, 0
    unreadable: list[OSError] = []
    for path, folders, files in os.walk(folder, onerror=unreadable.append):
        for name in (*folders, *files):
            with contextlib.suppress(FileNotFoundError):
                size += os.lstat(os.path.join(path, name)).st_blocks * 512
            count += 1
            if size > most or count > most_files:
                return True
    return any(isinstance(error, PermissionError) for error in unreadable)


# --- the server -------------------------------------------------------------------------------------------------------


def serve(descriptor: int, scratch: str, confinement: Confinement) -> None:
    """Serves the socket `descriptor` until its other end closes, with files in `scratch`; children are confined."""
    statm = os.open("/proc/self/statm", os.O_RDONLY)  # while /proc can be seen
    proc = os.open("/proc", os.O_PATH | os.O_DIRECTORY)
    if confinement.means.root:
        enter_root(scratch, confinement.rules)
    torch_import.without_parts()
    from gradekit.tracer import child  # imports triton

    control = socket.socket(fileno=descriptor)
    child.warm_up()
    wire.send(control, {"ok": "ready", "means": confinement.means.as_data(), "pace": child.pace()})
    children = Children(confinement, scratch, statm, proc)
    try:
        while True:
            _await_request(control, children)
            _answer(control, children)
    except wire.WireError:
        pass
    finally:
        children.end_all()
        os._exit(0)  # sooner than taking torch apart


def _await_request(control: socket.socket, children: Children) -> None:
    """Reaps children that have ended and ends those with too much memory, until a request comes."""
    poller = select.poll()
    poller.register(control, select.POLLIN)
    children.reap()
    while not poller.poll(1000 * PULSE_SECONDS if children.homes else None):
        children.reap()
        children.end_those_with_too_many_files()


def _answer(control: socket.socket, children: Children) -> None:
    descriptors = wire.receive_descriptors(control, most=2)
    request = wire.receive(control, wire.CONTROL_CAP)
    if request["do"] == "fork":
        with socket.socket(fileno=descriptors[0]) as sock:
            wire.send(control, {"pid": children.fork(sock, descriptors[1:], request["limits"])})
        for number in descriptors[1:]:
            os.close(number)
    else:
        wire.send(control, {"status": children.end(request["pid"])})
