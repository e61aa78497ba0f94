"""Submissions written in the style of Triton's official tutorials, experiments at the top level included."""

from dataclasses import dataclass

from tests import right


@dataclass(frozen=True)
class Text:
    """A submission, as far as the tracer needs it."""

    text: str


def _right(path: str) -> str:
    """A right submission of the course in that style."""
    return right.text(right.FOLDER / path)


VECTOR_ADD = Text(_right("vector_add/tutorial.py").partition("\nif __name__")[0] + '''
assert torch.allclose(output_torch, output_triton)
benchmark.run(print_data=True, show_plots=True)
print(benchmark.fn(4096, 'triton'))
''')

SOFTMAX, MATMUL = Text(_right("softmax/tutorial.py")), Text(_right("matmul/tutorial.py"))

DROPOUT = Text("import tabulate\n" + right.text("solutions/dropout/right_tutorial.py") + '''

x = torch.randn(size=(10, ), device=triton.runtime.driver.active.get_active_torch_device())
output = dropout(x, p=0.5, seed=123)
print(tabulate.tabulate([["input"] + x.tolist(), ["output (seed = 123)"] + output.tolist()]))
''')
"""Seeded dropout; tabulate is not installed here."""

LAYER_NORM = Text(_right("layer_norm/locks.py") + '''

try:
    import apex
    HAS_APEX = True
except ModuleNotFoundError:
    HAS_APEX = False


def test_layer_norm(M, N, dtype, eps=1e-5, device=triton.runtime.driver.active.get_active_torch_device()):
    x_shape = (M, N)
    w_shape = (x_shape[-1], )
    weight = torch.rand(w_shape, dtype=dtype, device=device, requires_grad=True)
    bias = torch.rand(w_shape, dtype=dtype, device=device, requires_grad=True)
    x = -2.3 + 0.5 * torch.randn(x_shape, dtype=dtype, device=device)
    dy = .1 * torch.randn_like(x)
    x.requires_grad_(True)
    y_tri = layer_norm(x, weight, bias, eps)
    y_ref = torch.nn.functional.layer_norm(x, w_shape, weight, bias, eps).to(dtype)
    y_tri.backward(dy, retain_graph=True)
    dx_tri, dw_tri, db_tri = [_.grad.clone() for _ in [x, weight, bias]]
    x.grad, weight.grad, bias.grad = None, None, None
    y_ref.backward(dy, retain_graph=True)
    dx_ref, dw_ref, db_ref = [_.grad.clone() for _ in [x, weight, bias]]
    assert dx_ref.shape == dx_tri.shape and dw_ref.shape == dw_tri.shape


test_layer_norm(1151, 8192, torch.float16)
''')

ATTENTION = Text('''\
"""Attention forward over tensor descriptors that a hook shapes for each configuration."""
import os

import pytest
import torch

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

DEVICE = triton.runtime.driver.active.get_active_torch_device()


def is_hopper():
    return torch.cuda.get_device_capability()[0] == 9


@triton.jit
def _attn_fwd_inner(acc, l_i, m_i, q, desc_k, desc_v, offset_y, qk_scale, BLOCK_N: tl.constexpr, N_CTX: tl.constexpr):
    for start_n in tl.range(0, N_CTX, BLOCK_N):
        start_n = tl.multiple_of(start_n, BLOCK_N)
        k = desc_k.load([offset_y + start_n, 0]).T
        qk = tl.dot(q, k)
        m_ij = tl.maximum(m_i, tl.max(qk, 1) * qk_scale)
        p = tl.math.exp2(qk * qk_scale - m_ij[:, None])
        alpha = tl.math.exp2(m_i - m_ij)
        acc = acc * alpha[:, None]
        v = desc_v.load([offset_y + start_n, 0])
        acc = tl.dot(p.to(tl.float16), v, acc)
        l_i = l_i * alpha + tl.sum(p, 1)
        m_i = m_ij
    return acc, l_i, m_i


def _host_descriptor_pre_hook(nargs):
    BLOCK_M = nargs["BLOCK_M"]
    BLOCK_N = nargs["BLOCK_N"]
    HEAD_DIM = nargs["HEAD_DIM"]
    if not isinstance(nargs["desc_q"], TensorDescriptor):
        return
    nargs["desc_q"].block_shape = [BLOCK_M, HEAD_DIM]
    nargs["desc_v"].block_shape = [BLOCK_N, HEAD_DIM]
    nargs["desc_k"].block_shape = [BLOCK_N, HEAD_DIM]
    nargs["desc_o"].block_shape = [BLOCK_M, HEAD_DIM]


configs = [
    triton.Config({'BLOCK_M': BM, 'BLOCK_N': BN}, num_stages=s, num_warps=w, pre_hook=_host_descriptor_pre_hook)
    for BM in [64, 128] for BN in [32, 64, 128] for s in [2] for w in [4, 8]
]
if "PYTEST_VERSION" in os.environ:
    configs = configs[:1]


def keep(conf):
    BLOCK_M = conf.kwargs["BLOCK_M"]
    BLOCK_N = conf.kwargs["BLOCK_N"]
    return not (is_hopper() and BLOCK_M * BLOCK_N < 128 * 128 and conf.num_warps == 8)


def prune_invalid_configs(configs, named_args, **kwargs):
    N_CTX = kwargs["N_CTX"]
    return [conf for conf in configs if conf.kwargs.get("BLOCK_M", 0) <= N_CTX]


@triton.jit
def _maybe_make_tensor_desc(desc_or_ptr, shape, strides, block_shape):
    if isinstance(desc_or_ptr, tl.tensor_descriptor):
        return desc_or_ptr
    else:
        return tl.make_tensor_descriptor(desc_or_ptr, shape, strides, block_shape)


@triton.autotune(configs=list(filter(keep, configs)), key=["N_CTX", "HEAD_DIM"],
                 prune_configs_by={'early_config_prune': prune_invalid_configs})
@triton.jit
def _attn_fwd(sm_scale, M, Z, H, desc_q, desc_k, desc_v, desc_o, N_CTX, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr,
              BLOCK_N: tl.constexpr):
    tl.static_assert(BLOCK_N <= HEAD_DIM)
    start_m = tl.program_id(0)
    off_hz = tl.program_id(1)
    y_dim = Z * H * N_CTX
    desc_q = _maybe_make_tensor_desc(desc_q, shape=[y_dim, HEAD_DIM], strides=[HEAD_DIM, 1],
                                     block_shape=[BLOCK_M, HEAD_DIM])
    offset_y = off_hz * N_CTX
    qo_offset_y = offset_y + start_m * BLOCK_M
    m_i = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32) + 1.0
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    q = desc_q.load([qo_offset_y, 0])
    acc, l_i, m_i = _attn_fwd_inner(acc, l_i, m_i, q, desc_k, desc_v, offset_y, sm_scale * 1.44269504, BLOCK_N, N_CTX)
    m_i += tl.math.log2(l_i)
    acc = acc / l_i[:, None]
    tl.store(M + off_hz * N_CTX + start_m * BLOCK_M + tl.arange(0, BLOCK_M), m_i)
    desc_o.store([qo_offset_y, 0], acc.to(tl.float16))


class _attention(torch.autograd.Function):

    @staticmethod
    def forward(ctx, q, k, v, sm_scale):
        HEAD_DIM_K = k.shape[-1]
        assert HEAD_DIM_K in {16, 32, 64, 128, 256}
        o = torch.empty_like(q)
        M = torch.empty((q.shape[0], q.shape[1], q.shape[2]), device=q.device, dtype=torch.float32)
        y_dim = q.shape[0] * q.shape[1] * q.shape[2]
        dummy_block = [1, 1]
        desc_q = TensorDescriptor(q, shape=[y_dim, HEAD_DIM_K], strides=[HEAD_DIM_K, 1], block_shape=dummy_block)
        desc_v = TensorDescriptor(v, shape=[y_dim, HEAD_DIM_K], strides=[HEAD_DIM_K, 1], block_shape=dummy_block)
        desc_k = TensorDescriptor(k, shape=[y_dim, HEAD_DIM_K], strides=[HEAD_DIM_K, 1], block_shape=dummy_block)
        desc_o = TensorDescriptor(o, shape=[y_dim, HEAD_DIM_K], strides=[HEAD_DIM_K, 1], block_shape=dummy_block)

        def alloc_fn(size: int, align: int, _):
            return torch.empty(size, dtype=torch.int8, device="cuda")

        triton.set_allocator(alloc_fn)

        def grid(META):
            return (triton.cdiv(q.shape[2], META["BLOCK_M"]), q.shape[0] * q.shape[1], 1)

        ctx.grid = grid
        _attn_fwd[grid](sm_scale, M, q.shape[0], q.shape[1], desc_q, desc_k, desc_v, desc_o, N_CTX=q.shape[2],
                        HEAD_DIM=HEAD_DIM_K)
        ctx.save_for_backward(q, k, v, o, M)
        return o


attention = _attention.apply


@pytest.mark.parametrize("Z", [1, 4])
def test_op(Z, dtype=torch.float16):
    torch.manual_seed(20)
    q = torch.empty((Z, 2, 128, 64), dtype=dtype, device=DEVICE).normal_(mean=0.0, std=0.5).requires_grad_()
    assert attention(q, q, q, 0.5).shape == q.shape


try:
    from flash_attn.flash_attn_interface import flash_attn_qkvpacked_func
    HAS_FLASH = True
except BaseException:
    HAS_FLASH = False

if __name__ == "__main__":
    test_op(4)
''')
