"""Kernels compiled in both ways, with one template for all alignments and each by itself: `alignments.py corpus STEP`, or
`alignments.py calls` with a submission's text and its calls as JSON on the standard input. Prints how many were compared and
which were different. A process of its own, since the tracer shows this one a machine with a GPU."""

import itertools
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1] / "engine")]

from triton._C.libtriton import ir
from triton.compiler import ASTSource
from triton.compiler.compiler import make_backend

from gradekit.compat.triton import _FIND_CARRIES, TARGET, CodeGenerator, lower, visit_loops_once
from gradekit.tracer import child, cuda, errors
from gradekit.tracer.lowering import ALIGNED, Alignments, _paths
from gradekit.tracer.lowering import Path as Place


def by_itself(source: ASTSource, options: dict[str, Any]) -> str:
    """The text, from a compiler that knows of nothing else, and visits loops as Triton does."""
    ours, CodeGenerator._find_carries = CodeGenerator._find_carries, _FIND_CARRIES
    try:
        return _compiled(source, options)
    finally:
        CodeGenerator._find_carries = ours


def _compiled(source: ASTSource, options: dict[str, Any]) -> str:
    backend = make_backend(TARGET)
    parsed = backend.parse_options(dict(options))
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    generators = backend.get_codegen_implementation(parsed)
    module = source.make_ir(TARGET, parsed, generators, backend.get_module_map(), context)
    module = backend.make_ttir(module, {}, parsed, TARGET.arch)
    return str(module)


def named_once(text: str) -> str:
    """The text with each location written out where it stands; a value that a loop and a branch in it carry has its name once,
    though Triton, which visits the loop twice, writes it for each visit."""
    meant = dict(re.findall(r"^(#loc\d*) = loc\((.*)\)$", text, re.MULTILINE))

    def written(place: str) -> str:
        while (of := re.fullmatch(r'"(\w+)"\((#loc\d*)\)', place)) and meant[of[2]].startswith(f'"{of[1]}"('):
            place = meant[of[2]]
        return re.sub(r"#loc\d*", lambda match: written(meant[match[0]]), place)

    body = "\n".join(line for line in text.splitlines() if not line.startswith("#loc"))
    return re.sub(r'"\w+"\(#loc\d*\)|#loc\d*', lambda match: written(match[0]), body)


def sets_of(paths: list[Place]) -> Iterator[dict[Place, Any]]:
    """None of the arguments aligned, all of them, every second, and all but the last."""
    for chosen in ([], paths, paths[::2], paths[:-1]):
        yield dict.fromkeys(chosen, ALIGNED)


class Comparison:
    """`compared` texts, of which some are `different`, by the names of their kernels; `single` kernels had no template;
    so many were `lowered`."""

    def __init__(self) -> None:
        self.compared = self.lowered = 0
        self.different: list[str] = []
        self.alignments = Alignments(self._lower)

    def _lower(self, source: ASTSource, options: dict[str, Any]) -> Any:
        self.lowered += 1
        return lower(source, options)

    def lower(self, source: ASTSource, options: dict[str, Any]) -> Any:
        """As `Alignments.lower`, after a look at both ways."""
        alone = by_itself(source, options)
        shared = self.alignments.lower(source, options)
        self.compared += 1
        if named_once(alone) != named_once(shared[0]):
            self.different.append(f"{source.name} {source.signature} {source.attrs}")
        return shared

    def report(self) -> None:
        """One line of JSON."""
        single = sum(template is None for _, template in self.alignments._known.values())
        told = {"compared": self.compared, "different": self.different, "single": single, "lowered": self.lowered}
        print(json.dumps(told))


def corpus(step: int) -> Comparison:
    """Every `step`th kernel of the engine's corpus, in several alignments."""
    import corpus.compile as compiler
    from corpus import CASES

    comparison = Comparison()
    visit_loops_once()
    for case in itertools.islice(CASES.values(), 0, None, step):
        for source in _sources(compiler, case):
            comparison.lower(source, case.options)
    return comparison


def _sources(compiler: Any, case: Any) -> list[ASTSource]:
    made: list[ASTSource] = []

    def remember(**parts: Any) -> ASTSource:
        made.append(ASTSource(**parts))
        return made[-1]

    compiler.ASTSource = remember
    compiler.compiled(case)
    (source,) = made
    paths = list(_paths(source))
    return [ASTSource(source.fn, source.signature, dict(source.constants), attrs) for attrs in sets_of(paths)]


def calls(text: str, requests: list[dict[str, Any]]) -> Comparison:
    """The kernels that a submission launches in some calls, in the alignments that come up there."""
    comparison = Comparison()
    cuda.install()
    with tempfile.TemporaryDirectory() as directory:
        submission = child.Child(Path(directory))
        submission.tracer.compiler._alignments = comparison  # type: ignore[assignment]
        submission.load(text, {})
        for request in requests:
            try:
                submission.answer(request)
            except errors.Refusal:
                continue
    return comparison


def each_apart(submissions: list[dict[str, Any]]) -> None:
    """Reports on the calls of each submission, in a process of its own, since the tracer patches the one that it is in."""
    child.warm_up()
    for submission in submissions:
        if (pid := os.fork()) == 0:
            calls(**submission).report()
            sys.stdout.flush()
            os._exit(0)
        if os.waitpid(pid, 0)[1]:
            sys.exit(1)


if __name__ == "__main__":
    if sys.argv[1] == "corpus":
        corpus(int(sys.argv[2])).report()
    else:
        each_apart(json.load(sys.stdin))
