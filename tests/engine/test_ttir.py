"""Every form of TTIR that Triton 3.6 to 3.9 print is read, and everything else is a TTIRError."""

import math
import re

import pytest

from gradekit.engine.ttir import Op, TTIRError, Type, parse
from tests.beside import beside
from tests.patience import steps

ARGUMENTS = (
    "%i: i32, %l: i64, %f: f32, %c: i1, %p: !tt.ptr<f32>, %t: tensor<16xf32>, %n: tensor<16xi32>, %m: tensor<16xi1>, "
    "%q: tensor<16x!tt.ptr<f32>>, %u: tensor<16x16xf32>, %h: tensor<16x16xf16>, %w: tensor<16x32xi8>, "
    "%x: tensor<32x16xi8>, %y: tensor<16x1xi8>, %d: !tt.tensordesc<16x16xf32>, %b: !tt.ptr<tensor<16x16xf32>>"
)
I1, I32, F32 = Type("i1"), Type("i32"), Type("f32")
TILE = Type("f32", (16, 16))


def module(body: str) -> str:
    return f"module {{\n  tt.func public @k({ARGUMENTS}) attributes {{noinline = false}} {{\n{body}\n    tt.return\n  }}\n}}\n"


def ops(body: str) -> list[Op]:
    found = parse(module(body)).entry.body.blocks[0].ops
    assert found[-1].name == "tt.return"
    return found[:-1]


def op(body: str) -> Op:
    (found,) = ops(body)
    return found


def vector(element: str) -> Type:
    return Type(element, (16,))


@pytest.mark.parametrize(("text", "operands", "result", "attributes"), [
    ("arith.addi %i, %i overflow<nsw> : i32", "i i", I32, {"overflow": "nsw"}),
    ("arith.addf %t, %t fastmath<fast> : tensor<16xf32>", "t t", vector("f32"), {"fastmath": "fast"}),
    ("arith.cmpi slt, %n, %n : tensor<16xi32>", "n n", vector("i1"), {"predicate": "slt"}),
    ("arith.cmpf ogt, %f, %f : f32", "f f", I1, {"predicate": "ogt"}),
    ("arith.select %c, %t, %t : tensor<16xf32>", "c t t", vector("f32"), {}),
    ("arith.select %m, %t, %t : tensor<16xi1>, tensor<16xf32>", "m t t", vector("f32"), {}),
    ("arith.extui %i nneg : i32 to i64", "i", Type("i64"), {"nneg": True}),
    ("arith.shrui %i, %i exact : i32", "i i", I32, {"exact": True}),
    ("arith.truncf %f to_nearest_even : f32 to f16", "f", Type("f16"), {"to_nearest_even": True}),
    ("math.fma %t, %t, %t : tensor<16xf32>", "t t t", vector("f32"), {}),
    (
        'tt.elementwise_inline_asm "add" {constraints = "=f", pure = true} %t, %t : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>',
        "t t", vector("f32"), {"asm_string": "add", "constraints": "=f", "pure": True},
    ),
    ("ub.poison : tensor<16xf32>", "", vector("f32"), {}),
    ("tt.get_program_id z : i32", "", I32, {"axis": 2}),
    ("tt.get_num_programs y : i32", "", I32, {"axis": 1}),
    ("tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>", "", vector("i32"), {"start": 0, "end": 16}),
    ("tt.splat %p : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>", "p", Type("ptr", (16,), F32), {}),
    ("tt.addptr %q, %n : tensor<16x!tt.ptr<f32>>, tensor<16xi32>", "q n", Type("ptr", (16,), F32), {}),
    ("tt.load %p : !tt.ptr<f32>", "p", F32, {}),
    (
        "tt.load %q, %m, %t cacheModifier = ca evictionPolicy = evict_last {isVolatile = true} : tensor<16x!tt.ptr<f32>>",
        "q m t", vector("f32"), {"cacheModifier": "ca", "evictionPolicy": "evict_last", "isVolatile": True},
    ),
    (
        "tt.load %b {boundaryCheck = array<i32: 0, 1>, padding = 1 : i32} : !tt.ptr<tensor<16x16xf32>>", "b", TILE,
        {"boundaryCheck": [0, 1], "padding": 1},
    ),
    (
        "tt.make_tensor_ptr %p, [%l, %l], [%l, %l], [%i, %i] {order = array<i32: 1, 0>} : <tensor<16x16xf32>>",
        "p l l l l i i", Type("ptr", (), TILE), {"order": [1, 0]},
    ),
    ("tt.advance %b, [%i, %i] : <tensor<16x16xf32>>", "b i i", Type("ptr", (), TILE), {}),
    (
        "tt.make_tensor_descriptor %p, [%i, %i], [%l, %l] {padding = 2 : i32} : <f32>, <tensor<16x16xf32>>",
        "p i i l l", Type("tensordesc", (), TILE), {"padding": 2},
    ),
    (
        "tt.make_tensor_descriptor %p, [%i, %i], [%l, %l] : <f32>, <16x16xf32>", "p i i l l",
        Type("tensordesc", (), TILE), {},
    ),
    ("tt.descriptor_load %d[%i, %i] : !tt.tensordesc<16x16xf32> -> tensor<16x16xf32>", "d i i", TILE, {}),
    ("tt.expand_dims %n {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>", "n", Type("i32", (16, 1)), {"axis": 1}),
    (
        "tt.reshape %u allow_reorder efficient_layout : tensor<16x16xf32> -> tensor<256xf32>", "u", Type("f32", (256,)),
        {"allow_reorder": True, "efficient_layout": True},
    ),
    ("tt.trans %u {order = array<i32: 1, 0>} : tensor<16x16xf32> -> tensor<16x16xf32>", "u", TILE, {"order": [1, 0]}),
    ("tt.fp_to_fp %u, rounding = rtne : tensor<16x16xf32> -> tensor<16x16xf8E5M2>", "u", Type("f8E5M2", (16, 16)), {"rounding": "rtne"}),
    ("tt.clampf %t, %t, %t, propagateNan = all : tensor<16xf32>", "t t t", vector("f32"), {"propagateNan": "all"}),
    (
        ("tt.dot %h, %h, %u, inputPrecision = tf32x3 {maxNumImpreciseAcc = 32 : i32} : "
        "tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>"),
        "h h u",
        TILE,
        {"inputPrecision": "tf32x3", "maxNumImpreciseAcc": 32},
    ),
    ("tt.histogram %n, %m : tensor<16xi32> -> tensor<16xi32>", "n m", vector("i32"), {}),
    ("tt.gather %t[%n] {axis = 0 : i32} : (tensor<16xf32>, tensor<16xi32>) -> tensor<16xf32>", "t n", vector("f32"), {"axis": 0}),
    (
        "tt.atomic_rmw fadd, acq_rel, gpu, %q, %t, %m : (tensor<16x!tt.ptr<f32>>, tensor<16xf32>, tensor<16xi1>) -> tensor<16xf32>",
        "q t m", vector("f32"), {"kind": "fadd", "sem": "acq_rel", "scope": "gpu"},
    ),
    ("tt.atomic_cas relaxed, cta, %p, %f, %f : (!tt.ptr<f32>, f32, f32) -> f32", "p f f", F32, {"sem": "relaxed", "scope": "cta"}),
    (
        'tt.extern_elementwise %t {libname = "", libpath = "", pure = true, symbol = "__nv_erff"} : (tensor<16xf32>) -> tensor<16xf32>',
        "t", vector("f32"), {"libname": "", "libpath": "", "pure": True, "symbol": "__nv_erff"},
    ),
    (
        'tt.elementwise_inline_asm "mov \\22 $0;" {constraints = "=r", packed_element = 1 : i32, pure = true} -> i32',
        "", I32, {"asm_string": 'mov " $0;', "constraints": "=r", "packed_element": 1, "pure": True},
    ),
    ("tt.call @helper__i32(%i) : (i32) -> i32", "i", I32, {"callee": "helper__i32"}),
    ("foo.bar %i, %t {level = [1 : i32, true, \"x\"]} : i32, tensor<16xf32> -> f32", "i t", F32, {"level": [1, True, "x"]}),
])
def test_an_operation_has_its_operands_types_and_attributes(text, operands, result, attributes):
    found = op(f"%r = {text}")
    assert (found.operands, found.results, found.result_types) == (tuple(operands.split()), ("r",), (result,))
    assert found.attributes == attributes
    assert len(found.operand_types) == len(found.operands)


@pytest.mark.parametrize(("text", "operands", "attributes"), [
    ("tt.store %q, %t, %m cacheModifier = wt : tensor<16x!tt.ptr<f32>>", "q t m", {"cacheModifier": "wt"}),
    ("tt.descriptor_store %d[%i, %i], %u : !tt.tensordesc<16x16xf32>, tensor<16x16xf32>", "d u i i", {}),
    ("tt.descriptor_reduce add, %d[%i, %i], %u : !tt.tensordesc<16x16xf32>, tensor<16x16xf32>", "d u i i", {"kind": "add"}),
    ('tt.print " x: " {hex = false, isSigned = array<i32: 1, 0>} : %i, %t : i32, tensor<16xf32>', "i t", {"prefix": " x: ", "hex": False, "isSigned": [1, 0]}),
    ('tt.print "none" {hex = true, isSigned = array<i32>}', "", {"prefix": "none", "hex": True, "isSigned": []}),
    ('tt.assert %m, "all of \\22m\\22" : tensor<16xi1>', "m", {"message": 'all of "m"'}),
    ('cf.assert %c, "c"', "c", {"message": "c"}),
])
def test_an_operation_without_results_ends_where_the_next_begins(text, operands, attributes):
    first, second = ops(f"{text}\n %z, %z2 = tt.split %u : tensor<8x2xf32> -> tensor<8xf32>")
    assert (first.operands, first.attributes) == (tuple(operands.split()), attributes)
    assert (second.results, second.result_types) == (("z", "z2"), (Type("f32", (8,)),) * 2)


@pytest.mark.parametrize(("text", "value"), [
    ("true", True),
    ("-5 : i32", -5),
    ("255 : i8", -1),
    ("-1 : i1", True),
    ("1.000000e-01 : f32", 0.1),
    ("0x7F800000 : f32", math.inf),
    ("0xFFF0000000000000 : f64", -math.inf),
    ("0xFC00 : f16", -math.inf),
    ("0x3FC0 : bf16", 1.5),
    ("0x0001 : f16", 2.0**-24),
    ("0x7E : f8E4M3FN", 448.0),
    ("0x7B : f8E5M2", 57344.0),
    ("dense<0xFF80> : tensor<4xbf16>", -math.inf),
    ("dense<true> : tensor<16x16xi1>", True),
    ("dense<[[1, -2], [3, 4]]> : tensor<2x2xi8>", [1, -2, 3, 4]),
    ("dense<[0.0, 0x7F800000]> : tensor<2xf32>", [0.0, math.inf]),
    ('dense<"0x0000000001000000020000FF"> : tensor<3xi32>', [0, 1, 2 - 2**24]),
    ('dense<"0x0000803F000000C0"> : tensor<2xf32>', [1.0, -2.0]),
    ("{tt.divisibility = 16 : i32} 3 : i32", 3),
])
def test_a_constant_is_the_number_that_it_means(text, value):
    assert op(f"%r = arith.constant {text}").attributes["value"] == value


@pytest.mark.parametrize("text", ["0x7FC00000 : f32", "0x7F : f8E4M3FN", "0x7E01 : f16", "0x80 : f8E4M3FNUZ"])
def test_a_constant_may_be_nan(text):
    assert math.isnan(op(f"%r = arith.constant {text}").attributes["value"])


def test_loops_carry_values():
    found = op("""
        %r:2 = scf.for %k = %i to %i step %i iter_args(%a = %f, %e = %t) -> (f32, tensor<16xf32>)  : i32 {
          %s = arith.addf %a, %f : f32
          scf.yield %s, %e : f32, tensor<16xf32>
        } {tt.num_stages = 3 : i32}""")
    assert (found.operands, found.results) == (("i", "i", "i", "f", "t"), ("r#0", "r#1"))
    body = found.regions[0].blocks[0]
    assert (body.arguments, body.argument_types) == (("k", "a", "e"), (I32, F32, vector("f32")))
    assert [inner.name for inner in body.ops] == ["arith.addf", "scf.yield"]
    assert found.attributes == {"tt.num_stages": 3}


def test_while_has_a_region_before_and_one_after():
    found = op("""
        %r:2 = scf.while (%a = %i, %e = %f) : (i32, f32) -> (i32, f32) {
          %g = arith.cmpi slt, %a, %i : i32
          scf.condition(%g) %a, %e : i32, f32
        } do {
        ^bb0(%a: i32 loc("a"(#loc)), %e: f32):
          scf.yield %a, %e : i32, f32
        } attributes {x = 1 : i32}""")
    before, after = (region.blocks[0] for region in found.regions)
    assert (before.arguments, after.arguments, found.operands) == (("a", "e"), ("a", "e"), ("i", "f"))
    assert (before.ops[1].operands, after.argument_types) == (("g", "a", "e"), (I32, F32))


def test_if_has_one_region_or_two():
    one, two = ops("""
        scf.if %c { tt.store %p, %f : !tt.ptr<f32> }
        %r = scf.if %c -> (f32) { scf.yield %f : f32 } else { scf.yield %f : f32 }""")
    assert (len(one.regions), len(two.regions), two.result_types) == (1, 2, (F32,))
    assert [inner.name for inner in one.regions[0].blocks[0].ops] == ["tt.store"]


def test_an_early_return_makes_blocks():
    blocks = parse(module("""
        cf.cond_br %c, ^bb1, ^bb2(%i : i32)
      ^bb1:  // pred: ^bb0
        tt.return
      ^bb2(%z: i32):  // 2 preds: ^bb0, ^bb2
        cf.cond_br %c, ^bb2(%z : i32), ^bb3
      ^bb3:
        """)).entry.body.blocks  # fmt: skip
    assert [block.label for block in blocks] == ["", "bb1", "bb2", "bb3"]
    assert blocks[0].ops[0].successors == (("bb1", ()), ("bb2", ("i",)))
    assert blocks[2].argument_types == (I32,)


def test_blocks_come_in_an_order_in_which_they_may_run():
    blocks = parse(module("""
        cf.cond_br %c, ^bb3, ^bb2
      ^bb1:  // pred: ^bb2
        cf.br ^bb4
      ^bb2:  // pred: ^bb0
        cf.cond_br %c, ^bb4, ^bb1
      ^bb3:  // pred: ^bb0
        cf.br ^bb4
      ^bb4:
        tt.return
      ^bb5:
        """)).entry.body.blocks  # fmt: skip
    assert [block.label for block in blocks] == ["", "bb3", "bb2", "bb1", "bb4", "bb5"]


def test_an_operand_may_be_defined_in_a_later_block():
    blocks = parse(module("""
        cf.br ^bb2
      ^bb1:
        tt.store %p, %late : !tt.ptr<f32>
        tt.return
      ^bb2:
        %late = arith.addf %f, %f : f32
        cf.br ^bb1
      ^bb3:""")).entry.body.blocks  # fmt: skip
    assert blocks[2].ops[0].operand_types == (Type("ptr", (), F32), F32)


def test_the_quoted_form_has_regions_and_properties():
    found = op("""
        %r:2 = "tt.reduce"(%t, %n) <{axis = 0 : i32}> ({
        ^bb0(%a: f32, %e: i32, %g: f32, %j: i32):
          tt.reduce.return %a, %j : f32, i32
        }) {extra} : (tensor<16xf32>, tensor<16xi32>) -> (f32, i32)""")
    assert (found.name, found.operands, found.result_types) == ("tt.reduce", ("t", "n"), (F32, I32))
    assert found.attributes == {"axis": 0, "extra": True}
    assert found.regions[0].blocks[0].arguments == ("a", "e", "g", "j")
    assert found.regions[0].blocks[0].ops[0].operands == ("a", "j")


def test_several_functions_are_read_and_the_public_one_is_the_entry():
    found = parse("""module attributes {a.b = "c"} {
      tt.func public @k(%x: i32 {tt.divisibility = 16 : i32}) { %y = tt.call @f(%x) : (i32) -> i32 tt.return }
      tt.func private @f(%x: i32) -> i32 attributes {noinline = true} { tt.return %x : i32 }
    }""")
    assert (list(found.functions), found.entry.name) == (["k", "f"], "k")
    assert (found.functions["f"].result_types, found.functions["f"].public) == ((I32,), False)


LOCATED = beside(__file__)["located"]


def test_a_location_is_the_calls_from_the_inside_out():
    a, b, c, d, e, f, _ = parse(LOCATED).entry.body.blocks[0].ops
    assert a.location == (("lib.py", 6, 8), ("k.py", 5, 7))
    assert b.location == (("lib.py", 6, 8), ("lib.py", 9, 9), ("k.py", 5, 7))
    assert c.location == (("k.py", 8, 2),)
    assert (d.location, e.location) == ((), ())
    assert f.location == (("a ) \\22 at k.py", 1, 2),)


def test_arguments_have_the_names_that_the_student_gave_them():
    entry = parse(LOCATED).entry
    assert entry.argument_names == ("x_ptr", "n", "arg2")
    assert entry.location == (("k.py", 3, 1),)


def test_doubling_calls_stay_short():
    aliases = "".join(f"#loc{n} = loc(callsite(#loc{n - 1} at #loc{n - 1}))\n" for n in range(1, 90))
    text = f'#loc0 = loc("k.py":1:1)\n{aliases}' + module("%a = arith.addi %i, %i : i32 loc(#loc89)")
    assert len(parse(text).entry.body.blocks[0].ops[0].location) <= 64


@pytest.mark.parametrize(("text", "expected", "line", "column"), [
    ("", "tt.func", 1, 1),
    ("module {\n}", "tt.func", 2, 2),
    ("module {\n  tt.func private @f() { tt.return }\n}", "a public function", 3, 2),
    (module("%a = arith.addi %i, %i i32"), "the type of arith.addi", 4, 5),
    (module("    %a = arith.addi %i, %i : 32"), "a type", 3, 30),
    (module("%a = arith.addi %i, %nowhere : i32"), "the definition of %nowhere", 3, 1),
    (module("%a:2 = scf.if %c -> (i32) { scf.yield %i : i32 }"), "1 results of scf.if", 3, 1),
    (module("%a = arith.constant 1e : i32"), "':'", 3, 22),
    (module("%a = arith.constant dense<[1, 2]> : tensor<3xi32>"), "2 elements", 3, 21),
    (module("%a = arith.constant 0x1FFFF : f16"), "too many bits", 3, 21),
    (module('cf.assert %c, "never closed'), "a string that ends", 3, 15),
    (module("scf.for %k = %i to %i : i32 { }"), "'step'", 3, 23),
    (module("") + "tt.func", "tt.func", 7, 1),
    (module("%a = tt.get_program_id w : i32"), "x, y or z", 3, 24),
])
def test_an_error_says_where_it_is_and_what_was_expected(text, expected, line, column):
    with pytest.raises(TTIRError, match=re.escape(expected)) as raised:
        parse(text)
    assert (raised.value.line, raised.value.column) == (line, column)


HUGE = 10_000
"""Ten times as deep as Python's own recursion may go."""

HOSTILE = [
    lambda n: module("scf.if %c {" * n), lambda n: module('"a"() ({' * n), lambda n: module("foo.bar {a = " * n),
    lambda n: module("foo.bar {a = [" + "[" * n), lambda n: module("foo.bar {a = " + "{a = " * n),
    lambda n: module("%a = arith.addi %i, %i : " + "tensor<" * n),
    lambda n: module("%a = arith.addi %i, %i : " + "tensor<4x!tt.ptr<" * n + ">" * n),
    lambda n: module("%a = arith.addi %i, %i : i32 " + "loc(" * n),
    lambda n: module("%a = arith.addi %i, %i : i32 loc(" + "callsite(" * n), lambda n: module("tt.print " + '"\\' * n),
    lambda n: module('tt.print "' + '\\"' * n), lambda n: module("%a = arith.constant " + "9" * n + " : i64"),
    lambda n: module("%a = arith.constant dense<" + "[" * n), lambda n: module("%a:9" + "9" * n + " = foo.bar : i32"),
    lambda n: module("foo.bar a<" + "b<c>" * n), lambda n: "#loc = loc(" * n, lambda n: "(" * n, lambda n: "\x00" * n,
]

hostile = pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))


def refused(text):
    with pytest.raises(TTIRError):
        parse(text)


@hostile
def test_hostile_text_is_an_error(text):
    refused(text(HUGE))


@hostile
def test_hostile_text_that_is_twice_as_long_takes_twice_as_many_steps(text):
    one, two = (steps(lambda n=n: refused(text(n))) for n in (500, 1000))
    assert two < 2.1 * one


def test_a_long_chain_of_locations_is_cut_off():
    chain = "".join(f'#loc{n} = loc("n"(#loc{n - 1}))\n' for n in range(1, 20_000))
    found = parse('#loc0 = loc("k.py":1:1)\n' + chain + module("%a = arith.addi %i, %i : i32 loc(#loc19999)"))
    assert found.entry.body.blocks[0].ops[0].location == ()


def kernel_of(count):
    body = "\n".join(f"%v{n} = arith.addf %t, %t : tensor<16xf32> loc(#loc{n})" for n in range(count))
    return module(body) + "\n".join(f'#loc{n} = loc("k.py":{n}:1)' for n in range(count))


def test_an_operation_with_its_location_is_read_in_a_few_hundred_steps():
    shorter, longer = (steps(lambda n=n: parse(kernel_of(n))) for n in (200, 400))
    assert longer - shorter < 300 * 200  # about 150 for each
