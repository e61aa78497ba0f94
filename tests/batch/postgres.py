"""A PostgreSQL server of a test's own, where the programs and a driver for one are installed."""

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DRIVER = "psycopg"
USERS = ("postgres", "nobody")
"""As whom the server runs where these tests run as root, which it refuses to."""


def _programs() -> Path | None:
    """The folder of initdb and pg_ctl."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "pg_ctl").is_file()), None)


def missing() -> str:
    """What is not there, or an empty text."""
    if importlib.util.find_spec(DRIVER) is None:
        return f"there is no {DRIVER} here"
    return "" if _programs() else "there is no PostgreSQL server here"


def _identity() -> dict[str, Any]:
    """How subprocess is told to become somebody who is not root."""
    if os.getuid() != 0:
        return {}
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    chosen = next(known[name] for name in USERS if name in known)
    return {"user": chosen.pw_uid, "group": chosen.pw_gid, "extra_groups": ()}


@contextmanager
def server() -> Iterator[str]:
    """The URL of an empty database, reached through a socket in a folder of its own; it ends with the block."""
    programs, identity = _programs(), _identity()
    assert programs is not None

    def run(program: str, *words: str) -> None:
        subprocess.run(
            [programs / program, *words], cwd=folder, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            **identity,
        )  # fmt: skip

    with tempfile.TemporaryDirectory(prefix="gk-pg-", dir="/tmp") as folder:  # a socket's path must be short
        if identity:
            os.chown(folder, identity["user"], identity["group"])
        data, log = f"{folder}/data", f"{folder}/log"
        run("initdb", "-D", data, "-U", "class", "-A", "trust", "-E", "UTF8", "--no-sync")
        options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
        run("pg_ctl", "-D", data, "-l", log, "-w", "-o", options, "start")
        try:
            yield f"postgresql+{DRIVER}://class@/postgres?host={folder}"
        finally:
            run("pg_ctl", "-D", data, "-m", "immediate", "stop")
