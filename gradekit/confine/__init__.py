"""Takes from a Linux process what it does not need: the network, the filesystem, other processes, privileges.

Knows nothing of grading and imports the standard library alone, so that it can be loaded beside student code. The
kernel's interfaces are called through ctypes: bubblewrap and nsjail start a program, and what is confined here is a
fork of a process that has torch and Triton in its memory already; the Landlock and seccomp packages on PyPI are
unfinished or need a C library that containers lack.

    confinement.py  all of it, for one process, as a level from 0 to 3, and what of it this machine offers
    landlock.py     the filesystem, TCP, signals, by path (no privilege needed)
    seccomp.py      system calls that are refused (no privilege needed)
    identity.py     capabilities, and as root an unprivileged user
    namespaces.py   a network, processes and a root folder of its own (as root, or where user namespaces are allowed)
    paths.py        what a Python process must be able to read, and temporary folders
    linux.py        system calls by name
"""

from gradekit.confine.confinement import LEVELS, RECOMMENDED, Means
