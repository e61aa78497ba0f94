"""What a submission may use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What a submission may use.

    Seconds are those of computing, for loading and for one call, on the machine that they were chosen on: a slower one
    gets more (`ForkServer.pace`). A submission that waits, or has to wait for others on a busy machine, gets
    `tracer.WAITING` times as many by the clock. A call to be timed lowers every configuration of an autotuned kernel:
    nodes of syntax limit that (`gradekit.tracer.lowering_budget`), and `timed_seconds` are more than they take, beside
    all other calls. `cpu_seconds` are those of all calls together. All calls together
    may keep the grader waiting for `total_seconds`, and `more_seconds` for each of them, whether they compute or
    sleep; the time for which the machine had no processor free for them does not count. `memory_bytes` counts
    beyond what torch and triton take themselves; `file_bytes` is the size of one file; `processes` are those it may
    have at one time, threads included; of what it prints, `output_bytes` are kept; a program, as it comes over the
    wire, has at most `program_bytes`; the programs of all calls have at most `parts` steps and results.
    """

    import_seconds: float = 8.0
    call_seconds: float = 8.0
    timed_seconds: float = 100.0
    cpu_seconds: int = 1200
    total_seconds: float = 120.0
    more_seconds: float = 1.0
    memory_bytes: int = 4 << 30
    file_bytes: int = 64 << 20
    processes: int = 32
    output_bytes: int = 1 << 20
    program_bytes: int = 16 << 20
    parts: int = 500_000

    def of_process(self) -> dict[str, int]:
        """The limits that Linux enforces, by the names of its resource limits."""
        names = ("memory_bytes", "file_bytes", "cpu_seconds", "processes")
        return {name: getattr(self, name) for name in names}


DEFAULT = Limits()
