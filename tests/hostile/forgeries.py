"""Submissions that speak to the grader themselves: on the wire, or by changing what the tracer sends."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent, indent

from .cheats import HEAD

WIRE = """\
import json, os, socket, struct, sys, time
wire = socket.socket(fileno=3)
def framed(body):
    return struct.pack("!I", len(body)) + body
def add(x, y):
    {body}
"""


@dataclass(frozen=True)
class Forgery:
    """What is sent in place of an honest answer: its `name`, and the submission's `text`."""

    name: str
    text: str
    harmless: bool = False  # the program computes what it should all the same, and may be graded
    waits: bool = False  # for the grader, which waits for an answer


def _sends(name: str, body: str, waits: bool = False) -> Forgery:
    """Whatever the call of `add` writes to the wire itself."""
    return Forgery(name, WIRE.replace("{body}", indent(dedent(body).strip("\n"), "    ").lstrip()), waits=waits)


def _changes(name: str, change: str, harmless: bool = False) -> Forgery:
    """An honest tracer's answer to a call of `add`, whose `program` is changed before it is sent."""
    return Forgery(
        name,
        HEAD
        + "\nadd = right\n\nfrom gradekit import wire\nhonest = wire.send\n"
        + "def forged(sock, message, deadline=None):\n"
        + "    program = message.get('ok', {}).get('program')\n"
        + "    if program:\n"
        + "        steps, kernels = program['steps'], program['kernels']['items']\n"
        + "        launch = next((step for step in steps if step['is'] == 'Launch'), {})\n"
        + indent(dedent(change).strip("\n"), "        ")
        + "\n    return honest(sock, message, deadline)\nwire.send = forged\n",
        harmless,
    )


def _ttir(name: str, expression: str, harmless: bool = False) -> Forgery:
    """An honest program whose kernel's `text` is another."""
    return _changes(
        name, f"for _, kernel in kernels:\n    text = kernel['ttir']\n    kernel['ttir'] = {expression}", harmless
    )


NOISE = (
    _sends("nothing", "time.sleep(60)", waits=True),
    _sends("the end", "wire.close(); os._exit(0)"),
    _sends("a closed wire, and goes on", "wire.close(); time.sleep(60)"),
    _sends("half a length", "wire.send(b'\\0\\0'); time.sleep(60)", waits=True),
    _sends("half a message", "wire.send(framed(b'[1, 2]')[:-1]); time.sleep(60)", waits=True),
    _sends("one byte each second", "wire.send(struct.pack('!I', 100))\nwhile True:\n    wire.send(b' ')\n    time.sleep(0.5)", waits=True),
    _sends("a length of 4 GB", "wire.send(b'\\xff' * 4); time.sleep(60)"),
    _sends("a flood", "while True: wire.send(b'\\xff' * 65536)"),
    _sends("a flood of small messages", "while True: wire.send(framed(b'{}') * 1000)"),
    _sends("no text", "wire.send(framed(b'\\xff\\xfe\\0')); time.sleep(1)"),
    _sends("no JSON", "wire.send(framed(b'{1: 2}')); time.sleep(1)"),
    _sends("a pickle", "wire.send(framed(__import__('pickle').dumps(print))); time.sleep(1)"),
    _sends("deep JSON", "wire.sendall(framed(b'[' * 500_000 + b']' * 500_000)); time.sleep(1)"),
    _sends("deep objects", "wire.sendall(framed(b'{\"ok\":' * 20_000 + b'1' + b'}' * 20_000)); time.sleep(1)"),
    _sends("wide JSON", "wire.sendall(framed(b'[' + b'[],' * 4_000_000 + b'1]')); time.sleep(1)"),
    _sends("a number without end", "wire.sendall(framed(b'{\"ok\":' + b'9' * 1_000_000 + b'}')); time.sleep(1)"),
    _sends("a number that is none", "wire.send(framed(b'{\"ok\": NaN}')); time.sleep(1)"),
    _sends("a list", "wire.send(framed(b'[]')); time.sleep(1)"),
    _sends("an empty answer", "wire.send(framed(b'{}')); time.sleep(1)"),
    _sends("an answer of lists", "wire.send(framed(b'{\"ok\": {\"program\": [[[[]]]], \"known\": []}, \"output\": [[]]}')); time.sleep(1)"),
    _sends("a deep output", "wire.send(framed(b'{\"ok\": {}, \"output\": ' + b'[' * 900 + b']' * 900 + b'}')); time.sleep(1)"),
    _sends("an error that is none", "wire.send(framed(b'{\"error\": {\"cause\": \"passed\", \"message\": \"\", \"line\": 1, \"detail\": \"\"}}')); time.sleep(1)"),
    _sends("an error at line infinity", "wire.send(framed(b'{\"error\": {\"cause\": \"nan\", \"message\": \"\", \"line\": 1e999, \"detail\": \"\"}}')); time.sleep(1)"),
    _sends("an error of half characters", "wire.send(framed(b'{\"error\": {\"cause\": \"nan\", \"message\": \"\\\\ud800\", \"line\": 1, \"detail\": \"\\\\udfff\"}}')); time.sleep(1)"),
    _sends("an answer for the next question", "wire.send(framed(b'{\"ok\": {}}') * 3); time.sleep(1)"),
    _sends("a program of unknown things", "wire.send(framed(b'{\"ok\": {\"program\": {\"is\": \"Grade\", \"points\": 100}, \"known\": []}}')); time.sleep(1)"),
    _sends("a file descriptor", "socket.send_fds(wire, [framed(b'{\"ok\": {}}')], [0, 1, 2]); time.sleep(1)"),
    _sends("the questions back", "wire.send(framed(json.dumps({'do': 'load', 'text': ''}).encode())); time.sleep(1)"),
)  # fmt: skip

PROGRAMS = (
    _changes("no program", "message['ok'] = {'program': None, 'known': []}"),
    _changes("a kernel that is not there", "launch and launch.update(kernel='nobody')"),
    _changes("a kernel known to nobody", "message['ok']['known'] = ['nobody', 3, None]"),
    _changes("kernels by unhashable names", "message['ok']['known'] = [[], {}]"),
    _changes("a result outside of its storage", "program['results'][0].update(offset=1 << 40)"),
    _changes("a result before its storage", "program['results'][0].update(offset=-4)"),
    _changes("a result of negative size", "program['results'][0].update(shape=[-1] * len(program['results'][0]['shape']))"),
    _changes("a result of negative strides", "program['results'][0].update(stride=[-1] * len(program['results'][0]['shape']))"),
    _changes("a result without end", "program['results'][0].update(shape=[1 << 50], stride=[0])"),
    _changes("a result of many dimensions", "program['results'][0].update(shape=[1] * 10_000, stride=[0] * 10_000)"),
    _changes("a result of no dtype", "program['results'][0].update(dtype='__class__')"),
    _changes("a result of another storage", "program['results'][0].update(storage=99)"),
    _changes("ten thousand results", "program['results'] = program['results'] * 10_000"),
    _changes("an allocation without end", "[step.update(nbytes=1 << 61) for step in steps if step['is'] == 'Allocate']"),
    _changes("an allocation of less than nothing", "[step.update(nbytes=-1) for step in steps if step['is'] == 'Allocate']"),
    _changes("an allocation in place of an input", "[step.update(storage=0) for step in steps if step['is'] == 'Allocate']"),
    _changes("a thousand allocations of a gigabyte", "steps[:0] = [{'is': 'Allocate', 'storage': 100 + n, 'nbytes': 1 << 30, 'source': None} for n in range(1000)]"),
    _changes("a million steps", "steps[:0] = [{'is': 'Allocate', 'storage': 100, 'nbytes': 1, 'source': None}] * 200_000"),
    _changes("other inputs", "program['inputs'] = program['inputs'][:1]"),
    _changes("larger inputs", "program['storages']['items'] = [[0, 1 << 60], [1, 1 << 60]]", harmless=True),
    _changes("a grid without end", "launch and launch.update(grid=[(1 << 31) - 1] * 3)"),
    _changes("a grid of less than nothing", "launch and launch.update(grid=[-1, 1, 1])"),
    _changes("arguments of the wrong number", "launch and launch.update(args=launch['args'][:1])"),
    _changes("arguments of the wrong kind", "launch and launch.update(args=launch['args'][::-1])"),
    _changes("a choice of nothing", "steps.append({'is': 'Choice', 'options': [], 'labels': [], 'source': None})"),
    _changes("choices in choices", "inner = steps[:]\nfor _ in range(100): inner = [{'is': 'Choice', 'options': [inner], 'labels': ['x'], 'source': None}]\nprogram['steps'] = inner"),
    _changes("a forbidden operation", "steps.append({'is': 'Aten', 'op': 'os::system', 'args': ['id'], 'kwargs': {'is': 'dict', 'items': []}, 'outputs': program['results'], 'source': None})"),
    _changes("a copy from nowhere", "steps.append({'is': 'Copy', 'target': program['results'][0], 'origin': dict(program['results'][0], storage=77), 'source': None})"),
    _changes("numbers out of thin air", "launch.clear() if False else steps.append({'is': 'Literal', 'target': program['results'][0], 'values': [0.0], 'source': None})"),
    _changes("a name of half characters", "program['returned'] = '\\ud800'"),
    _changes("a name without end", "program['returned'] = 'x' * 5_000_000"),
    _changes("options that are lists of lists", "[k.update(options={'is': 'dict', 'items': [['num_warps', [[[[[[[]]]]]]]]]}) for _, k in kernels]"),
    _changes("addresses without end", "program['addresses'] = {'is': 'dict', 'items': [[0, 1 << 80]]}"),
)  # fmt: skip

KERNELS = (
    _ttir("no kernel", "''"),
    _ttir("words", "'please let me pass'"),
    _ttir("a null character", "text.replace('module', 'mod\\0ule')"),
    _ttir("half a kernel", "text[:len(text) // 2]"),
    _ttir("two kernels in one", "text + text"),
    _ttir("other operations", "text.replace('arith.muli', 'arith.mulf')"),
    _ttir("operations of nobody", "text.replace('arith.muli', 'llvm.inline_asm')"),
    _ttir("values of nobody", "text.replace('tt.splat %', 'tt.splat %no')"),
    _ttir("other types", "text.replace('f32', 'f31').replace('f16', 'f15')"),
    _ttir("tiles without end", "text.replace('128x', '1152921504606846976x')"),
    _ttir("tiles that are large", "text.replace('128x', '268435456x').replace('end = 128', 'end = 268435456')"),
    _ttir("tiles of nothing", "text.replace('128x', '0x').replace('end = 128', 'end = 0')"),
    _ttir("tiles of another size than they say", "text.replace('end = 128', 'end = 64')"),
    _ttir("deep types", "text.replace('!tt.ptr<f32>', '!tt.ptr<' * 5000 + 'f32' + '>' * 5000)"),
    _ttir("deep locations", "text + '#loc99 = loc(' + 'callsite(' * 5000 + '\"a\":1:1' + ')' * 5000 + ')\\n'", harmless=True),
    _ttir("a location of itself", "text.replace('#loc = loc(', '#loc = loc(callsite(#loc at #loc))\\n#loc77 = loc(', 1)", harmless=True),
    _ttir("deep regions", "text.replace('tt.return', 'scf.if %t { ' * 3000 + ' }' * 3000 + ' tt.return')"),
    _ttir("deep attributes", "text.replace('module', 'module attributes {a = ' + '[' * 5000 + ']' * 5000 + '}', 1)"),
    _ttir("a loop without end", "text.replace('tt.return', '%zz = arith.constant 0 : i32 %oo = arith.constant 1 : i32 %mm = arith.constant 2147483647 : i32 scf.for %ii = %zz to %mm step %oo : i32 { scf.for %jj = %zz to %mm step %oo : i32 { %kk = arith.addi %jj, %ii : i32 } } tt.return')"),
    _ttir("a while without end", "text.replace('tt.return', '%tt = arith.constant true scf.while : () -> () { scf.condition(%tt) } do { scf.yield } tt.return')"),
    _ttir("a step of nothing", "text.replace('tt.return', '%zz = arith.constant 0 : i32 %mm = arith.constant 100 : i32 scf.for %ii = %zz to %mm step %zz : i32 { } tt.return')", harmless=True),
    _ttir("a function that calls itself", "text.replace('tt.return', 'tt.call @_right() : () -> () tt.return')"),
    _ttir("division by nothing", "text.replace('arith.muli', 'arith.divsi').replace('128 : i32', '0 : i32')"),
    _ttir("a string without end", "text + '\"' + 'x' * 3_000_000"),
    _ttir("five megabytes", "text + ' ' * 5_000_000"),
    _ttir("a hundred megabytes", "text + ' ' * 100_000_000"),
    _ttir("a gigabyte", "text + ' ' * 1_000_000_000"),
)  # fmt: skip

FORGERIES = NOISE + PROGRAMS + KERNELS
