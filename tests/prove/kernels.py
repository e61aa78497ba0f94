"""Random kernels in TTIR, and what their accesses are: as the engine computes it, and as formulas say."""

import random
from dataclasses import dataclass

from gradekit.engine.ttir import parse
from gradekit.program import Launch, Scalar, View
from gradekit.prove.memory_rules import accesses
from gradekit.prove.probe import touched
from gradekit.prove.solve import Solver
from gradekit.prove.symbolic_values import PROGRAM, SymbolicPointer, lane
from gradekit.prove.terms import ZERO, Truth, term
from gradekit.prove.value_of import Evaluation, Undefined, value_of

ROWS, COLUMNS = 4, 8
GRID = (3, 2, 1)
TILE = f"tensor<{ROWS}x{COLUMNS}x%s>"

ON_TWO = ("addi", "subi", "muli", "divsi", "remsi", "divui", "remui", "floordivsi", "ceildivsi", "minsi", "maxsi", "minui",
          "maxui")  # fmt: skip
PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
SMALL = (1, 2, 3, 5, 7, 8, -1, -3)


@dataclass
class Kernel:
    """TTIR text, and the integer arguments a and b with which it is run."""

    text: str
    a: int
    b: int


class Writer:
    """Writes one kernel: values are tiles of i32 and of i1 (masks), each made from earlier ones by a random operation."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.count = 0
        self.numbers: list[str] = []
        self.masks: list[str] = []

    def add(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"    %v{self.count} = {text}")
        return f"%v{self.count}"

    def constant(self, number: int) -> str:
        return self.add(f"arith.constant dense<{number}> : {TILE % 'i32'}")

    def begin(self) -> None:
        """Tiles of a, b, the program's place, the rows and the columns."""
        i32 = TILE % "i32"
        for scalar in ("%a", "%b", self.add("tt.get_program_id x : i32"), self.add("tt.get_program_id y : i32"),
                       self.add("tt.get_num_programs x : i32")):  # fmt: skip
            self.numbers.append(self.add(f"tt.splat {scalar} : i32 -> {i32}"))
        for axis, size in ((1, ROWS), (0, COLUMNS)):
            line = self.add(f"tt.make_range {{end = {size} : i32, start = 0 : i32}} : tensor<{size}xi32>")
            shape = f"{size}x1" if axis else f"1x{size}"
            wide = self.add(
                f"tt.expand_dims {line} {{axis = {axis} : i32}} : tensor<{size}xi32> -> tensor<{shape}xi32>"
            )
            self.numbers.append(self.add(f"tt.broadcast {wide} : tensor<{shape}xi32> -> {i32}"))

        self.numbers.append(self.add(f"arith.addi {self.numbers[-1]}, {self.constant(-5)} : {i32}"))

    def step(self, name: str) -> None:
        """One more value, by the operation `name`."""
        pick, i32, i1 = self.random.choice, TILE % "i32", TILE % "i1"
        a = self.numbers[-1] if self.random.random() < 0.6 else pick(self.numbers)
        b = self.constant(pick(SMALL)) if self.random.random() < 0.5 else pick(self.numbers)
        if name in ON_TWO:
            self.numbers.append(self.add(f"arith.{name} {a}, {b} : {i32}"))
        elif name in ("shli", "shrsi", "shrui"):
            self.numbers.append(self.add(f"arith.{name} {a}, {self.constant(pick((0, 1, 3)))} : {i32}"))
        elif name == "andi":
            self.numbers.append(self.add(f"arith.andi {a}, {self.constant(pick((1, 3, 7)))} : {i32}"))
        elif name == "xori":
            self.numbers.append(self.add(f"arith.xori {a}, {self.constant(-1)} : {i32}"))
        elif name == "cmpi":
            predicate = pick(PREDICATES)
            b = self.constant(pick((1, 4, 6))) if predicate[0] == "u" else b
            self.masks.append(self.add(f"arith.cmpi {predicate}, {a}, {b} : {i32}"))
        elif name in ("mask andi", "mask ori", "mask xori"):
            c, d = pick(self.masks), pick(self.masks)
            self.masks.append(self.add(f"arith.{name[5:]} {c}, {d} : {i1}"))
        elif name == "select":
            self.numbers.append(self.add(f"arith.select {pick(self.masks)}, {a}, {b} : {i1}, {i32}"))
        elif name in ("extui", "extsi"):
            self.numbers.append(self.add(f"arith.{name} {pick(self.masks)} : {i1} to {i32}"))
        elif name == "trunci":
            wide = self.add(f"arith.extsi {a} : {i32} to {TILE % 'i64'}")
            self.numbers.append(self.add(f"arith.trunci {wide} : {TILE % 'i64'} to {i32}"))
        elif name == "trans":
            turned = self.add(f"tt.trans {a} {{order = array<i32: 1, 0>}} : {i32} -> tensor<{COLUMNS}x{ROWS}xi32>")
            self.numbers.append(self.add(f"tt.reshape {turned} : tensor<{COLUMNS}x{ROWS}xi32> -> {i32}"))
        elif name == "for":
            self.loop(a)

    def loop(self, initial: str) -> None:
        """A counter and a tile that rises by the same in each turn; what comes out is what it is after the last."""
        i32 = TILE % "i32"
        low, high, step = (
            self.add(f"arith.constant {n} : i32") for n in self.random.choice(((0, 7, 2), (1, 9, 3), (3, 3, 1)))
        )
        rise = self.constant(self.random.choice((1, 2, 5)))
        self.count += 1
        name = f"%v{self.count}"
        self.lines += [
            f"    {name} = scf.for %i{name[1:]} = {low} to {high} step {step} iter_args(%c{name[1:]} = {initial}) -> ({i32}) : i32 {{",
            f"      %n{name[1:]} = arith.addi %c{name[1:]}, {rise} : {i32}", f"      scf.yield %n{name[1:]} : {i32}",
            "    }",
        ]
        self.numbers.append(name)

    def access(self) -> None:
        """A load at the last number, where the last mask holds."""
        pointers = self.add(f"tt.splat %p : !tt.ptr<f32> -> {TILE % '!tt.ptr<f32>'}")
        place = self.add(f"tt.addptr {pointers}, {self.numbers[-1]} : {TILE % '!tt.ptr<f32>'}, {TILE % 'i32'}")
        self.add(f"tt.load {place}, {self.masks[-1]} : {TILE % '!tt.ptr<f32>'}")


STEPS = (*ON_TWO, "shli", "shrsi", "shrui", "andi", "xori", "cmpi", "mask andi", "mask ori", "mask xori", "select", "extui",
         "extsi", "trunci", "trans", "for")  # fmt: skip


def kernel(seed: int, *wanted: str) -> Kernel:
    """A random kernel; the address goes through each of the `wanted` operations."""
    writer = Writer(seed)
    writer.begin()
    writer.step("cmpi")
    writer.step(writer.random.choice(STEPS))
    for name in wanted:
        writer.step(name)
        mask, last = writer.masks[-1], writer.numbers[-1]
        if name == "cmpi" or name.startswith("mask"):
            writer.numbers.append(
                writer.add(f"arith.select {mask}, {last}, {writer.numbers[0]} : {TILE % 'i1'}, {TILE % 'i32'}")
            )
    writer.access()
    head = "module {\n  tt.func public @k(%p: !tt.ptr<f32>, %a: i32, %b: i32) {\n"
    text = head + "\n".join(writer.lines) + "\n    tt.return\n  }\n}\n"
    return Kernel(text, writer.random.choice((1, 2, 5, 17)), writer.random.choice((1, 3, 4, 9)))


@dataclass
class Difference:
    """Where formulas and engine part: a program and a lane, what the one says and what the other."""

    program: tuple[int, int]
    place: tuple[int, int]
    formula: tuple[object, ...]
    engine: tuple[object, ...]


def compare(k: Kernel) -> tuple[int, Difference | None]:
    """How many lanes were compared, and the first in which formulas and engine differ.

    A lane is compared where all premises of the formulas hold.
    """
    module = parse(k.text)
    view = View(0, "float32", (1,), (1,))
    launch = Launch("k", GRID, (view, Scalar(k.a, "i32"), Scalar(k.b, "i32")))
    ((_, seen),) = touched(module, k.text, launch, range(GRID[0] * GRID[1]), "")
    found = accesses(
        module, "", [SymbolicPointer(0, ZERO, 4), term(k.a), term(k.b)], [term(size) for size in GRID], [], Solver()
    )
    if not found:  # its mask is never true, say the formulas
        wrong = Difference((0, 0), (0, 0), ("never",), ("somewhere",)) if bool(seen.active.any()) else None
        return 18, wrong
    (access,) = found
    compared = 0
    for linear in (0, 4, 5):
        x, y = linear % GRID[0], linear // GRID[0]
        for row in (0, 3):
            for column in (0, 3, 7):
                values = _values((x, y, 0), (row, column))
                try:
                    if not all(_holds(o.condition, values) for o in access.premises | access.premises_always):
                        continue
                    formula = (value_of(access.offset, values), bool(Evaluation(values, unknown=False).truth(access.mask)))
                except Undefined:
                    continue
                lane_of = row * COLUMNS + column
                engine = (int(seen.index[linear, lane_of]), bool(seen.active[linear, lane_of]))
                compared += 1
                if formula != engine:
                    return compared, Difference((x, y), (row, column), formula, engine)
    return compared, None


def _holds(condition: Truth, values: dict[str, int]) -> bool:
    """What is said of every turn of a loop holds here: these numbers are small."""
    try:
        return bool(Evaluation(values, unknown=False).truth(condition))
    except Undefined:
        return True


def _values(program: tuple[int, int, int], place: tuple[int, int]) -> dict[str, int]:
    counters = [*zip(PROGRAM, program, strict=True), *zip((lane(0, ROWS), lane(1, COLUMNS)), place, strict=True)]
    return {next(iter(of.parts))[0].key: value for of, value in counters}
