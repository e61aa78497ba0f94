"""Submissions that reach for what is outside of their process: at import, by every way in that we know.

Each is Python that runs at the top level. What it lays hands on goes into `got`, which the submission's entry then says
aloud, so that a secret that was read is found in what the grader was told. Names in braces are the world's: see
world.py. `needs` is the level of isolation that promises to contain it; at a lower one it is not tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent, indent

HEAD = """\
import ctypes, errno, fcntl, glob, io, os, resource, signal, socket, struct, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
got = []
def name_me():
    libc.prctl(15, {marker!r}.encode(), 0, 0, 0)
def reach(function):
    try:
        got.append(function())
    except BaseException as error:
        got.append(repr(error))
    return function
def entry(x):
    raise RuntimeError(repr(got)[:1900])
"""


@dataclass(frozen=True)
class Escape:
    """One way out: what the submission does, and the level from which on it is contained."""

    group: str
    name: str
    body: str
    needs: int = 1

    @property
    def id(self) -> str:
        return f"{self.group}: {self.name}"

    def text(self, world: dict[str, object]) -> str:
        """The submission, in that world."""
        body = self.body if "\n" in self.body else f"return ({self.body})"
        text = HEAD + "\n@reach\ndef attempt():\n" + indent(dedent(body).strip("\n"), "    ") + "\n"
        for name, value in world.items():
            text = text.replace("{" + name + "!r}", repr(value)).replace("{" + name + "}", str(value))
        return text


def _reads(name: str, expression: str, needs: int = 2) -> Escape:
    return Escape("reads", name, expression, needs)


def _writes(name: str, body: str, needs: int = 2) -> Escape:
    return Escape("writes", name, body, needs)


def _network(name: str, body: str, needs: int = 1) -> Escape:
    return Escape("network", name, body, needs)


def _survives(name: str, body: str, needs: int = 1) -> Escape:
    return Escape("survives", name, body, needs)


def _hurts(name: str, body: str, needs: int = 1) -> Escape:
    return Escape("hurts others", name, body, needs)


def _rises(name: str, body: str, needs: int = 1) -> Escape:
    return Escape("rises", name, body, needs)


READS = (
    _reads("a file of somebody else's", "open({secret!r}).read()"),
    _reads("through a descriptor's folder", "os.read(os.open('secret.txt', 0, dir_fd=os.open({folder!r}, 0)), 99)"),
    _reads("through a link of its own", "(os.symlink({secret!r}, 'link'), open('link').read())"),
    _reads("through a hard link", "(os.link({secret!r}, 'hard'), open('hard').read())"),
    _reads("by dots", "open('../' * 40 + {secret!r}.lstrip('/')).read()"),
    _reads("by mapping", "__import__('mmap').mmap(os.open({secret!r}, 0), 0, prot=1)[:]"),
    _reads("by import", "__import__('importlib.machinery').machinery.SourceFileLoader('m', {secret!r}).get_data({secret!r})"),
    _reads("by running a reader", "subprocess.run(['cat', {secret!r}], capture_output=True).stdout"),
    _reads("by running a shell", "subprocess.run('cat ' + {secret!r}, shell=True, capture_output=True).stdout"),
    _reads("by running Python", "subprocess.run([sys.executable, '-c', 'print(open(' + repr({secret!r}) + ').read())'], capture_output=True)"),
    _reads("the names in a folder", "os.listdir({folder!r}) and {token!r}"),
    _reads("with a raw system call", "(lambda b: (libc.read(libc.open({secret!r}.encode(), 0), b, 99), b.raw))(ctypes.create_string_buffer(99))"),
    _reads("with openat2", "(lambda b, h: (libc.syscall(437, -100, {secret!r}.encode(), h, 24), libc.read(libc.syscall(437, -100, {secret!r}.encode(), h, 24), b, 99), b.raw))(ctypes.create_string_buffer(99), ctypes.create_string_buffer(24))"),
    _reads("the grader's environment", "open('/proc/{grader}/environ', 'rb').read() and {token!r}"),
    _reads("the environment of all", "[open(p, 'rb').read() for p in glob.glob('/proc/[0-9]*/environ') if '/%d/' % os.getpid() not in p and os.access(p, 4)]"),
    _reads("the grader's memory", "open('/proc/{grader}/mem', 'rb') and {token!r}", 1),
    _reads("the grader's memory, to write to it", "open('/proc/{grader}/mem', 'r+b') and {token!r}", 1),
    _reads("the server's memory", "open('/proc/%d/mem' % os.getppid(), 'r+b') and {token!r}", 1),
    _reads("the grader's open files", "os.listdir('/proc/{grader}/fd') and {token!r}", 1),
    _reads("the server's open files", "os.listdir('/proc/%d/fd' % os.getppid()) and {token!r}", 1),
    _reads("the victim's environment", "open('/proc/{victim}/environ', 'rb').read()"),
    _reads("the solution", "open({solution!r}).read()"),
    _reads("gradekit's own judge", "open({package!r} + '/judge/compare.py').read() and {token!r}"),
    _reads("gradekit's judge, by import", "__import__('importlib').import_module('gradekit.judge.compare') and {token!r}"),
    _reads("the list of users", "open('/etc/passwd').read().replace('root', {token!r})"),
    _reads("the machine's disks", "open(glob.glob('/dev/[vsn][dv]*')[0], 'rb').read(512) and {token!r}"),
    _reads("the kernel's log", "subprocess.run(['dmesg'], capture_output=True).stdout[:1] and {token!r}"),
)  # fmt: skip

WRITES = (
    _writes("into somebody's file", "open({canary!r}, 'a').write('spoilt')"),
    _writes("over somebody's file", "open({canary!r}, 'w').write('spoilt')"),
    _writes("a new file beside it", "open({folder!r} + '/new', 'w').write('spoilt')"),
    _writes("away with somebody's file", "os.unlink({canary!r})"),
    _writes("another name for it", "os.rename({canary!r}, {folder!r} + '/renamed')"),
    _writes("a shorter file", "os.truncate({canary!r}, 0)"),
    _writes("a link beside it", "os.symlink('/etc/passwd', {folder!r} + '/link')"),
    _writes("a pipe beside it", "os.mkfifo({folder!r} + '/pipe')"),
    _writes("a device beside it", "os.mknod({folder!r} + '/device', 0o600 | 0o020000, os.makedev(1, 5))"),
    _writes("a folder beside it", "os.mkdir({folder!r} + '/inner')"),
    _writes("its permissions", "os.chmod({canary!r}, 0o777)", 3),
    _writes("a report for the grader", "open({folder!r} + '/report.json', 'w').write('{}')"),
    _writes("the grader's tests", "open({package!r} + '/judge/compare.py', 'a').write('# spoilt')"),
    _writes("compiled code for gradekit", "os.makedirs({package!r} + '/judge/__pycache__', exist_ok=True) or open({package!r} + '/judge/__pycache__/spoilt.pyc', 'w')"),
    _writes("a package for everybody", "open(sys.modules['torch'].__path__[0] + '/../spoilt_by_gradekit_test.pth', 'w')"),
    _writes("into torch", "open(sys.modules['torch'].__path__[0] + '/spoilt_by_gradekit_test.py', 'w')"),
    _writes("into temporary files", "open('/tmp/' + {marker!r}, 'w')"),
    _writes("into shared memory", "open('/dev/shm/' + {marker!r}, 'w')"),
    _writes("into the user's home", "open(os.path.join({home!r}, '.' + {marker!r}), 'w')"),
    _writes("into Triton's cache", "os.makedirs(os.path.join({home!r}, '.triton', {marker!r}))"),
    _writes("by a shell", "subprocess.run('echo spoilt >> ' + {canary!r}, shell=True)"),
    _writes("at exit", "__import__('atexit').register(lambda: open({canary!r}, 'a').write('spoilt'))"),
    _writes("from a thread, later", "threading.Thread(target=lambda: (time.sleep(0.3), open({canary!r}, 'a').write('spoilt'))).start()"),
    _writes("from a finaliser", "globals().__setitem__('last', type('Last', (), {'__del__': lambda self: open({canary!r}, 'a').write('spoilt')})())"),
    _writes("from a signal's handler", "signal.signal(signal.SIGTERM, lambda *a: open({canary!r}, 'a').write('spoilt'))"),
)  # fmt: skip

NETWORK = (
    _network("TCP", "socket.create_connection(('127.0.0.1', {port}), 1).send(b'x')"),
    _network("TCP by name", "socket.create_connection(('localhost', {port}), 1).send(b'x')"),
    _network("UDP", "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {udp}))"),
    _network("IPv6", "socket.socket(socket.AF_INET6).connect(('::1', {port6}))"),
    _network("a socket in the filesystem", "socket.socket(socket.AF_UNIX).connect({unix!r})"),
    _network("an abstract socket", "socket.socket(socket.AF_UNIX).connect({abstract!r})"),
    _network("raw packets", "socket.socket(socket.AF_PACKET, socket.SOCK_RAW) and {token!r}"),
    _network("netlink", "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) and {token!r}"),
    _network("a library", "__import__('urllib.request').request.urlopen('http://127.0.0.1:{port}/', timeout=1)"),
    _network("a raw system call", "libc.connect(libc.socket(2, 1, 0), struct.pack('=HH4s8x', 2, socket.htons({port}), bytes([127, 0, 0, 1])), 16)"),
    _network("io_uring", "libc.syscall(425, 8, ctypes.create_string_buffer(120)) >= 0 and {token!r}"),
    _network("32-bit calls", "libc.syscall(0x40000029, 2, 1, 0) >= 0 and {token!r}"),
    _network("a port of its own", "(lambda s: (s.bind(('0.0.0.0', {free})), s.listen()) and {token!r})(socket.socket())"),
    _network("another process", "subprocess.run(['/bin/bash', '-c', 'echo x > /dev/tcp/127.0.0.1/{port}'])"),
)  # fmt: skip

SURVIVES = (
    _survives("a fork", "os.fork() or (name_me(), time.sleep(300))"),
    _survives("a fork of a fork", "os.fork() or (os.fork() and os._exit(0)) or (name_me(), time.sleep(300))"),
    _survives("a session of its own", "os.fork() or (name_me(), os.setsid(), time.sleep(300))"),
    _survives("a session of its own, whatever the answer", "os.fork() or (name_me(), libc.setsid(), time.sleep(300))"),
    _survives("a process group of its own", "os.fork() or (name_me(), libc.setpgid(0, 0), time.sleep(300))"),
    _survives("a daemon", "os.fork() or (libc.setsid(), os.fork() and os._exit(0)) or (name_me(), time.sleep(300))"),
    _survives("a clone with another parent", "libc.syscall(56, 0x8000 | 17, 0, 0, 0, 0) or (name_me(), time.sleep(300))"),
    _survives("a child that nothing kills", "os.fork() or (name_me(), [signal.signal(n, signal.SIG_IGN) for n in range(1, 32) if n not in (9, 19)], time.sleep(300))"),
    _survives("a child without the parent's death signal", "libc.prctl(1, 0, 0, 0, 0), os.fork() or (name_me(), time.sleep(300))"),
    _survives("a grandchild in the background", "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)  # ' + {marker!r}], start_new_session=True)"),
    _survives("a shell's background", "subprocess.run('nohup sleep 300 ' + {marker!r} + ' &', shell=True)"),
    _survives("fifty children", "[os.fork() or (name_me(), time.sleep(300)) for _ in range(50)]"),
    _survives("a fork bomb", "name_me()\nwhile True:\n    try: os.fork()\n    except OSError: time.sleep(0.1)"),
    _survives("threads", "[threading.Thread(target=lambda: (name_me(), time.sleep(300))).start() for _ in range(20)]"),
    _survives("a stopped child", "os.fork() or (name_me(), os.kill(os.getpid(), signal.SIGSTOP))"),
    _survives("a subreaper's children", "libc.prctl(36, 1, 0, 0, 0), os.fork() or (os.fork() and os._exit(0)) or (name_me(), time.sleep(300))"),
)  # fmt: skip

HURTS = (
    _hurts("may signal the grader", "os.kill({grader}, 0) or {token!r}"),
    _hurts("may signal its parent", "os.kill(os.getppid(), 0) or {token!r}"),
    _hurts("kills the victim", "os.kill({victim}, signal.SIGKILL)"),
    _hurts("stops the victim", "os.kill({victim}, signal.SIGSTOP)"),
    _hurts("kills the victim's group", "os.killpg({victim}, signal.SIGKILL)"),
    _hurts("may signal everybody", "os.kill(-1, 0) or {token!r}"),
    _hurts("kills by a thread's number", "libc.syscall(200, {victim}, 9), libc.syscall(234, {victim}, {victim}, 9)"),
    _hurts("kills by a queue", "libc.syscall(129, {victim}, 9, ctypes.create_string_buffer(128))"),
    _hurts("kills by a descriptor", "libc.syscall(424, libc.syscall(434, {victim}, 0), 9, None, 0)"),
    _hurts("signals through a file's owner", "(lambda r, w: (fcntl.fcntl(r, 8, {victim}), fcntl.fcntl(r, 10, 9), fcntl.fcntl(r, 4, fcntl.fcntl(r, 3) | 0x2000), os.write(w, b'x')))(*os.pipe())"),
    _hurts("traces the victim", "libc.ptrace(16, {victim}, 0, 0) == 0 and {token!r}"),
    _hurts("reads the victim's memory", "(lambda b: libc.process_vm_readv({victim}, struct.pack('QQ', ctypes.addressof(b), 8), 1, struct.pack('QQ', 4096, 8), 1, 0) >= 0 and {token!r})(ctypes.create_string_buffer(8))"),
    _hurts("limits the victim", "resource.prlimit({victim}, resource.RLIMIT_NOFILE, (0, 0))"),
    _hurts("limits the grader", "resource.prlimit({grader}, resource.RLIMIT_CPU, (1, 1))"),
    _hurts("slows the victim", "os.setpriority(os.PRIO_PROCESS, {victim}, 19)"),
    _hurts("slows its user", "os.setpriority(os.PRIO_USER, os.getuid(), 19)"),
    _hurts("moves the victim to another core", "os.sched_setaffinity({victim}, [0])"),
    _hurts("takes a core for itself", "os.sched_setscheduler({victim}, os.SCHED_FIFO, os.sched_param(50))"),
    _hurts("takes the victim's files", "libc.syscall(438, libc.syscall(434, {victim}, 0), 0, 0) >= 0 and {token!r}"),
    _hurts("types into the terminal", "fcntl.ioctl(os.open('/dev/tty', os.O_RDWR), 0x5412, b'x') or {token!r}"),
)  # fmt: skip

RISES = (
    _rises("becomes root", "os.setuid(0) or 1"),
    _rises("becomes root by a file", "subprocess.run(['sudo', '-n', 'cat', {secret!r}], capture_output=True).stdout"),
    _rises("makes a user's namespace", "libc.unshare(0x10000000) == 0 and {token!r}"),
    _rises("makes one by clone", "libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0) > 0 and {token!r}"),
    _rises("makes one by clone3", "libc.syscall(435, struct.pack('11Q', 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0), 88) > 0 and {token!r}"),
    _rises("enters the grader's namespaces", "libc.setns(os.open('/proc/{grader}/ns/net', 0), 0) == 0 and {token!r}"),
    _rises("mounts", "libc.mount(b'none', b'.', b'tmpfs', 0, None) == 0 and {token!r}"),
    _rises("takes a mount away", "libc.umount2(b'/usr/lib', 2) == 0 and {token!r}"),
    _rises("changes its root", "os.chroot('.') or {token!r}"),
    _rises("takes capabilities", "libc.syscall(126, struct.pack('=Ii', 0x20080522, 0), struct.pack('=6I', *[1 << 21] * 6)) == 0 and {token!r}"),
    _rises("loads a module", "libc.syscall(313, os.open('/dev/null', 0), b'', 0) == 0 and {token!r}"),
    _rises("loads a program into the kernel", "libc.syscall(321, 5, ctypes.create_string_buffer(128), 128) >= 0 and {token!r}"),
    _rises("counts the machine's events", "libc.syscall(298, ctypes.create_string_buffer(128), 0, -1, -1, 0) >= 0 and {token!r}"),
    _rises("reads keys", "libc.syscall(250, 0, -3, 1) >= 0 and {token!r}"),
    _rises("opens by handle", "libc.syscall(304, -100, struct.pack('=Ii8s', 8, 1, b''), 0) >= 0 and {token!r}"),
    _rises("names the machine", "socket.sethostname({marker!r}) or {token!r}"),
    _rises("sets the clock", "time.clock_settime(time.CLOCK_REALTIME, 0) or {token!r}"),
    _rises("raises its own limits", "resource.setrlimit(resource.RLIMIT_AS, (-1, -1)) or {token!r}"),
    _rises("raises the number of its processes", "resource.setrlimit(resource.RLIMIT_NPROC, (-1, -1)) or {token!r}"),
)  # fmt: skip

ESCAPES = READS + WRITES + NETWORK + SURVIVES + HURTS + RISES
