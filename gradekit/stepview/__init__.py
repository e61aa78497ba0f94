"""gradekit view: one program of a grid played step by step, beside the student's source.

recording.py     looks on while the chosen programs run, and keeps their steps as a page draws them
played.py        which call is played, under which conditions it fails, and the record of its steps
view_command.py  the command
"""


class Limit:
    """How much of a call one page plays."""

    WORK = 300_000_000  # of its run, in the engine's units: about a nanosecond each
    DULL, LARGE = 24, 1024  # elements of an example: of fewer, a larger one is played; at most, to see several programs
    PROGRAMS, BYTES = 12, 1_500_000  # that it plays; of all steps: programs that would make it larger are left out
    FIRST_STEPS, LAST_STEPS = 600, 200  # of one program that are kept
    DRAWN = 512  # rows of touched elements, of more the box around them; cells of which the numbers are kept
    ROW = 128  # cells of the strip of a tile of one dimension
