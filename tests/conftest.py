"""No test warns or changes the process that it runs in; those marked `gpu` run where there is a card."""

import atexit
import collections
import contextlib
import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator

import pytest
from hypothesis import settings

from gradekit import reuse
from gradekit.compat.hypothesis import no_constants_of_modules
from gradekit.processes import Command

os.environ.setdefault("MPLCONFIGDIR", os.path.expanduser("~/.cache/matplotlib"))  # fonts, which take seconds to list
if "gradekit-tests-" not in os.environ.get("XDG_CACHE_HOME", ""):  # a test may load this file once more
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="gradekit-tests-")  # not the user's last checks
    atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)

settings.register_profile("tests", deadline=None, max_examples=50)  # no test is decided by how busy a machine is
settings.load_profile("tests")

PROCESS = pytest.StashKey["Process"]()
PATCHES = pytest.StashKey[contextlib.ExitStack]()

WARNINGS = [
    "error",
    # torch says this once where numpy is not installed; gradekit does not use numpy
    "ignore:Failed to initialize NumPy:UserWarning",
    # Triton 3.9 announces a changed default (contraction of multiplies and adds), which TTIR does not depend on
    "ignore:.*TRITON_DEFAULT_FP_FUSION.*",
    # Triton 3.7 makes nodes of syntax without all their fields, which Python 3.13 deprecates
    "ignore:AnnAssign.__init__ missing:DeprecationWarning",
]
"""What happens to warnings, once other plugins are configured: what those have to say must not end the tests."""


REAL_START = Command.start


@contextlib.contextmanager
def _really_starting() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Command, "start", REAL_START)
        yield


@pytest.fixture(scope="session")
def starting_for_real() -> Callable[[], contextlib.AbstractContextManager[None]]:
    """While what it gives is open, processes are started as gradekit starts them, and not forked from one that has
    imported torch."""
    return _really_starting


@pytest.fixture
def real_start() -> Iterator[None]:
    """So they are in one test."""
    with _really_starting():
        yield


@pytest.fixture(scope="module")
def warm() -> Iterator[None]:
    """Submissions share what they may, as in a class, whose records are those of single checks (tests/test_reuse.py)."""
    with reuse.kept():
        yield


@pytest.fixture
def keeping() -> Iterator[None]:
    """A grader that keeps what it learns, and knows nothing."""
    with reuse.kept():
        yield


@pytest.fixture
def without_mends(monkeypatch: pytest.MonkeyPatch) -> None:
    """No mended programs are tried: they take most of the time of a failing check, and change no verdict."""
    monkeypatch.setattr("gradekit.repair.work.Limit.WORK", 0)


@pytest.fixture(scope="module", autouse=True)
def usually_warm(request: pytest.FixtureRequest) -> None:
    """So they do in rooms of whole gradings: it is there that one submission could harm another."""
    if request.path.parent.name in ("course", "hostile"):
        request.getfixturevalue("warm")


UNMENDED = {"hostile", "plugin", "relations", "unseen"}
"""The rooms whose tests claim nothing of mends, but for those with `usual_mends`."""


@pytest.fixture(autouse=True)
def usually_unmended(request: pytest.FixtureRequest) -> None:
    """What a submission is told of its cause is no concern of most tests of these rooms."""
    if request.path.parent.name in UNMENDED and "usual_mends" not in request.fixturenames:
        request.getfixturevalue("without_mends")


@pytest.fixture
def usual_mends() -> None:
    """For a test that is about the whole way of a submission: what fails is mended as for students."""


def pytest_sessionstart(session: pytest.Session) -> None:
    for line in WARNINGS:
        session.config.addinivalue_line("filterwarnings", line)
    if session.config.pluginmanager.hasplugin("dsession"):
        return  # the process that hands tests to others needs no torch
    import torch

    from gradekit.plugin.run_state import seldom_collected
    from tests import rewriting, zygote

    rewriting.rewrite_ahead(session.config, rewriting.share_of_worker(session.config))

    session.stash[PATCHES] = contextlib.ExitStack()
    session.stash[PATCHES].enter_context(seldom_collected())
    # else what tests draw depends on the modules that those before them imported, and all modules are read for numbers
    session.stash[PATCHES].enter_context(no_constants_of_modules())
    if "PYTEST_XDIST_WORKER" in os.environ:
        torch.set_num_threads(1)  # pytest runs on every core, so torch takes one
    if not torch.cuda.is_available():  # what needs a card meets it in a process that was started for it
        session.stash[PATCHES].callback(setattr, Command, "start", Command.start)
        Command.start = zygote.starting(zygote.shared, REAL_START)  # type: ignore[method-assign]


LONGEST = (
    "tests/course/test_assignments.py", "tests/course/test_right.py", "tests/server/", "tests/batch/test_class.py",
    "tests/batch/test_course.py", "tests/lms/test_pool.py",
)  # fmt: skip
"""Whole gradings, servers and classes: where workers share the tests, these begin, so that none of them waits for the last
at the end."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Samples of long lists, the longest first. Without a card, a test that needs one is skipped once, whatever it is
    parametrized with."""
    import torch

    from tests import sampling

    if not config.getoption("keyword") and not any("::" in argument for argument in config.args):
        sampling.put_off(items, int(os.environ.get("TURN", "0")))
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))
    if torch.cuda.is_available():
        return
    cases = collections.Counter(_test(item) for item in items if item.get_closest_marker("gpu"))
    first = {_test(item): item for item in reversed(items)}
    left_out = []
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason=f"needs a CUDA device (cases: {cases[_test(item)]})"))
            if item is not first[_test(item)]:
                left_out.append(item)
    if left_out:
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]
        config.hook.pytest_deselected(items=left_out)


def _test(item: pytest.Item) -> str:
    """The test without its parameters."""
    return item.nodeid.partition("[")[0]


def pytest_collection_finish(session: pytest.Session) -> None:
    from tests.leaks import Process

    gc.collect()
    gc.freeze()  # torch and thousands of tests stay to the end: collecting looks at what comes and goes
    atexit.register(gc.unfreeze)
    session.stash[PROCESS] = Process()


def pytest_sessionfinish(session: pytest.Session) -> None:
    if PATCHES in session.stash:
        session.stash[PATCHES].close()


def pytest_unconfigure() -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:  # whose exit code nobody asks for
        atexit.register(_end)  # as the last, which is called first


def _end() -> None:
    from tests import zygote

    atexit.unregister(_end)
    zygote.end(0)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
    """Fails the test after which the process is not what it was, once its fixtures have put back what they changed."""
    try:
        yield
    finally:
        left = item.session.stash[PROCESS].changes(module_ends=nextitem is None or nextitem.path != item.path)
    if left:
        pytest.fail(f"{item.nodeid} leaves the process changed: {', '.join(left)}", pytrace=False)
