"""Submissions of matmul that order their tiles in many ways: right ones, and ones that leave tiles out or write them twice."""

from tests.beside import beside

TEXTS = beside(__file__)

_HEAD = TEXTS["head"]
_COMPUTE = "compute(a_ptr, b_ptr, c_ptr, M, N, K, sam, sak, sbk, sbn, tile_m, tile_n, BLOCK)"


def _text(order: str, grid: str, loop: str = "") -> str:
    """A submission: `order` gives tile_m and tile_n; `loop` goes over tiles around it."""
    lines = [*filter(None, order.strip().splitlines()), _COMPUTE]
    body = "\n".join("    " * (2 if loop else 1) + line for line in lines)
    before = "".join(f"    {line}\n" for line in loop.strip().splitlines())
    return _HEAD.format(order=before + body, grid=grid)


_GROUPED = """
group = tile // (GROUP * tiles_n)
first = group * GROUP
height = min(tiles_m - first, GROUP)
within = tile % (GROUP * tiles_n)
tile_m, tile_n = first + within % height, within // height
"""
_ONE = "tile = tl.program_id(0)\n"
_ROWS = "tile_m, tile_n = tile // tiles_n, tile % tiles_n"
_BY_TURNS = "for tile in range(tl.program_id(0), tiles_m * tiles_n, PROGRAMS):"
_CHUNKS = """
each = tl.cdiv(tiles_m * tiles_n, PROGRAMS)
for tile in range(tl.program_id(0) * each, min(tl.program_id(0) * each + each, tiles_m * tiles_n)):
"""
_COUNTED = """
each = tiles_m * tiles_n // PROGRAMS
if tl.program_id(0) < tiles_m * tiles_n % PROGRAMS:
    each += 1
for turn in range(0, each):
"""
TILES, PERSISTENT = "(tiles,)", "(24,)"

RIGHT = {
    "rows": _text(_ONE + _ROWS, TILES),
    "columns": _text(_ONE + "tile_m, tile_n = tile % tiles_m, tile // tiles_m", TILES),
    "two axes": _text(
        "tile_m, tile_n = tl.program_id(1), tl.program_id(0)", "(triton.cdiv(N, 32), triton.cdiv(M, 32))"
    ),
    "grouped": _text(_ONE + _GROUPED, TILES),
    "grouped, rest of all": _text(_ONE + _GROUPED.replace("within % height", "tile % height"), TILES),
    "grouped columns": _text(
        _ONE
        + _GROUPED.replace("tiles_n", "_")
        .replace("tiles_m", "tiles_n")
        .replace("_)", "tiles_m)")
        .replace("tile_m, tile_n", "tile_n, tile_m"),
        TILES,
    ),
    "swizzled": _text(
        _ONE + "tile_m, tile_n = tl.swizzle2d(tile // tiles_n, tile % tiles_n, tiles_m, tiles_n, GROUP)", TILES
    ),
    "back and forth": _text(
        _ONE
        + "tile_m = tile // tiles_n\nrest = tile % tiles_n\ntile_n = tl.where(tile_m % 2 == 0, rest, tiles_n - 1 - rest)",
        TILES,
    ),
    "last first": _text("tile = tiles_m * tiles_n - 1 - tl.program_id(0)\n" + _ROWS, TILES),
    "persistent": _text(_ROWS, PERSISTENT, _BY_TURNS),
    "persistent, few": _text(_ROWS, "(min(24, tiles),)", _BY_TURNS),
    "persistent, step of the grid": _text(
        _ROWS, "(min(24, tiles),)", _BY_TURNS.replace("PROGRAMS", "tl.num_programs(0)")
    ),
    "persistent, grouped": _text(_GROUPED, PERSISTENT, _BY_TURNS),
    "persistent, in chunks": _text(_ROWS, PERSISTENT, _CHUNKS),
    "persistent, counted": _text("tile = tl.program_id(0) + turn * PROGRAMS\n" + _ROWS, PERSISTENT, _COUNTED),
    "persistent, all turns": _text(
        "tile = tl.program_id(0) + turn * PROGRAMS\nif tile < tiles_m * tiles_n:\n" + "    " + _ROWS, PERSISTENT,
        "for turn in range(0, tl.cdiv(tiles_m * tiles_n, PROGRAMS)):",
    ).replace("        compute(", "            compute("),
}
WRONG = {
    "grouped, no smaller last": (RIGHT["grouped"].replace("min(tiles_m - first, GROUP)", "GROUP")),
    "grouped, no smaller last beyond 64 rows": RIGHT["grouped"].replace(
        "min(tiles_m - first, GROUP)", "tl.where(tiles_m <= 64, min(tiles_m - first, GROUP), GROUP)"
    ),
    "grouped, no smaller last beyond 512 rows": RIGHT["grouped"].replace(
        "min(tiles_m - first, GROUP)", "tl.where(tiles_m <= 512, min(tiles_m - first, GROUP), GROUP)"
    ),
    "grouped, divided by GROUP": RIGHT["grouped"].replace("within // height", "within // GROUP"),
    "grouped, by the other size": RIGHT["grouped"].replace("GROUP * tiles_n", "GROUP * tiles_m"),
    "grouped, rest of GROUP": RIGHT["grouped"].replace("within % height", "within % GROUP"),
    "grouped, no ceiling": RIGHT["grouped"].replace(
        "tiles_m, tiles_n = tl.cdiv(M, BLOCK)", "tiles_m, tiles_n = M // BLOCK"
    ),
    "rows, by the other size": RIGHT["rows"].replace(
        "tile // tiles_n, tile % tiles_n", "tile // tiles_m, tile % tiles_m"
    ),
    "rows, rest of the other size": RIGHT["rows"].replace("tile % tiles_n", "tile % tiles_m"),
    "back and forth, one off": RIGHT["back and forth"].replace("tiles_n - 1 - rest", "tiles_n - rest"),
    "persistent, capped": RIGHT["persistent"].replace(
        "tiles_m * tiles_n, PROGRAMS", "min(tiles_m * tiles_n, 4096), PROGRAMS"
    ),
    "persistent, 16 bits": RIGHT["persistent"].replace(
        "tiles_m * tiles_n, PROGRAMS", "(tiles_m * tiles_n) & 65535, PROGRAMS"
    ),
    "persistent, step too long": RIGHT["persistent"].replace("tiles_n, PROGRAMS", "tiles_n, PROGRAMS + 1"),
    "persistent, last tile left out": RIGHT["persistent"].replace("tiles_n, PROGRAMS", "tiles_n - 1, PROGRAMS"),
    "persistent, chunks rounded down": RIGHT["persistent, in chunks"].replace(
        "tl.cdiv(tiles_m * tiles_n, PROGRAMS)", "tiles_m * tiles_n // PROGRAMS"
    ),
    "persistent, rest forgotten": RIGHT["persistent, counted"].replace("each += 1", "each += 0"),
    "persistent, grouped, no smaller last": RIGHT["persistent, grouped"].replace(
        "min(tiles_m - first, GROUP)", "GROUP"
    ),
    "rows, in steps of seven": RIGHT["rows"].replace(
        "tile = tl.program_id(0)", "tile = (tl.program_id(0) * 7) % (tiles_m * tiles_n)"
    ),
    "grid capped": RIGHT["rows"].replace("kernel[(tiles,)]", "kernel[(min(tiles, 4096),)]"),
}

SPLIT = TEXTS["split"]
RIGHT["split K"] = SPLIT
WRONG["split K, a part left out"] = SPLIT.replace("(4 * tiles,)", "(3 * tiles,)")
WRONG["split K, parts and tiles mixed up"] = SPLIT.replace(
    "% SPLIT, tl.program_id(0) // SPLIT", "// SPLIT % SPLIT, tl.program_id(0) // SPLIT"
)
WRONG["split K, added up by tiles"] = SPLIT.replace(
    "(triton.cdiv(M * N, 1024),)", "(triton.cdiv(M, 32) * triton.cdiv(N, 32),)"
).replace("BLOCK=1024", "BLOCK=512")
