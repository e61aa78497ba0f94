"""The command `gradekit`, and `python -m gradekit`: in a fork of a process that has torch, or in this one."""

import signal
import sys

from gradekit.server import client


def main() -> None:
    """Runs the command line."""
    arguments = sys.argv[1:]
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # see watching
        code = client.run(arguments) if client.applies(arguments) else None
        if code is not None:
            sys.exit(code)
        from gradekit.cli import main as here

        here(prog_name="gradekit")
    except KeyboardInterrupt:  # before click takes it
        sys.exit(128 + signal.SIGINT)


if __name__ == "__main__":
    main()
