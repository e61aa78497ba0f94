"""Scales of microscaling products: powers of two in a byte, or numbers of their own."""

import torch
import triton
import triton.language as tl
from launching import launched


@triton.jit
def scaled_product(a, sa, b, sb, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, G: tl.constexpr):
    m, n, k, g = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // 2), tl.arange(0, K // G)
    left = tl.load(a + m[:, None] * (K // 2) + k[None, :])
    right = tl.load(b + n[:, None] * (K // 2) + k[None, :])
    left_scale = tl.load(sa + m[:, None] * (K // G) + g[None, :])
    right_scale = tl.load(sb + n[:, None] * (K // G) + g[None, :])
    product = tl.dot_scaled(left, left_scale, "e2m1", right.T, right_scale, "e2m1")
    tl.store(out + m[:, None] * N + n[None, :], product)


NUMBERS = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def unpacked(packed):
    low, high = (packed & 15).long(), (packed >> 4).long()
    return NUMBERS[torch.stack([low, high], -1)].flatten(-2)


def product_of(scales, group, numbers):
    made = torch.Generator().manual_seed(0)
    a, b = (torch.randint(0, 256, (32, 32), generator=made, dtype=torch.uint8) for _ in range(2))
    run = launched(scaled_product, (1,), [a, scales, b, scales], [torch.empty(32, 32)], M=32, N=32, K=64, G=group)
    spread = numbers.repeat_interleave(group, 1)
    assert not run.findings
    return run.results[0], (unpacked(a) * spread) @ (unpacked(b) * spread).T


def test_bytes_are_powers_of_two():
    scales = torch.randint(120, 134, (32, 2), generator=torch.Generator().manual_seed(2), dtype=torch.uint8)
    actual, expected = product_of(scales, 32, torch.exp2(scales.float() - 127))
    torch.testing.assert_close(actual, expected)


def test_e4m3_scales_are_numbers():
    scales = (torch.rand(32, 4, generator=torch.Generator().manual_seed(1)) + 0.1).to(torch.float8_e4m3fn)
    actual, expected = product_of(scales, 16, scales.float())
    torch.testing.assert_close(actual, expected)
