"""Which kernels no card launches for want of shared memory."""

from dataclasses import replace

import pytest

from gradekit.inspector.compile import CompileJob, compile_all
from gradekit.inspector.fits import LARGEST, shared_beyond, staged
from gradekit.inspector.targets import TARGETS

from .inspected import float16, float32, program


def test_no_block_of_any_card_may_have_more_shared_memory() -> None:
    assert LARGEST.shared_per_block == max(one.shared_per_block for one in TARGETS.values())


def test_what_is_compiled_is_what_might_be_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_all(jobs: object) -> None:
        raise AssertionError(f"{jobs} need not be compiled")

    monkeypatch.setattr("gradekit.inspector.fits.compile_all", compile_all)
    (copying,), (product,) = (
        program(*call).kernels.values()
        for call in (("copy", float32(4096, 1024)), ("matmul", float16(4096, 1024), float16(1024, 1024)))
    )
    assert staged(copying) == 0 and 0 < staged(product) <= LARGEST.shared_per_block
    assert shared_beyond(copying) == shared_beyond(product) == 0


def test_the_compiler_says_how_much_too_many_stages_need() -> None:
    (product,) = program("matmul", float16(4096, 1024), float16(1024, 1024)).kernels.values()
    needed = shared_beyond(replace(product, options={**product.options, "num_stages": 64}))
    assert LARGEST.shared_per_block < needed <= staged(product) * 64


def test_no_kernel_needs_more_than_what_its_products_may_keep() -> None:
    entries = ("matmul", "matmul_tf32", "low_tiles", "few_warps", "too_large", "crowded")
    calls = [(name, dtype(512, 256), dtype(256, 256)) for name in entries for dtype in (float16, float32)]
    each = [kernel for call in calls for kernel in program(*call).kernels.values()]
    each = [replace(one, options={**one.options, "num_stages": stages}) for one in each for stages in (2, 4)]
    found = compile_all([CompileJob(one, LARGEST.arch, "llir") for one in each])
    needed = [(one.metadata["shared"], staged(kernel)) for one, kernel in zip(found, each, strict=True)]
    assert all(0 < shared <= most for shared, most in needed)
