"""Submissions of vector_add and of a sum over rows, right but for one thing."""

from tests.beside import beside

HEAD = beside(__file__)["head"]

RIGHT = HEAD
CAPPED = HEAD.replace("(triton.cdiv(n, 1024),)", "(min(triton.cdiv(n, 1024), 2000),)")
ROUNDED_DOWN = HEAD.replace("(triton.cdiv(n, 1024),)", "(max(n // 1024, 1),)")
UNMASKED = HEAD.replace("+ tl.load(y + offsets, mask=mask), mask=mask)", "+ tl.load(y + offsets, mask=mask))")
ONE_TOO_MANY = HEAD.replace("mask = offsets < n", "mask = offsets <= n")
OVERLAPPING = HEAD.replace("tl.program_id(0) * BLOCK +", "tl.program_id(0) * (BLOCK // 2) +").replace(
    "out + offsets, tl.load", "out + offsets, tl.program_id(0) + tl.load"
)
LIKE_ITS_INPUT = HEAD.replace("    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)\n", "").replace(
    "    x, y = x.contiguous()", "    out = torch.empty_like(x)\n    x, y = x.contiguous()"
)
DESCRIBED = HEAD.replace("tl.store(out + offsets", "made = tl.make_tensor_descriptor(out, [n], [1], [BLOCK])\n    made.store([tl.program_id(0) * BLOCK]").replace(
    "mask=mask), mask=mask)", "mask=mask))"
).replace("def add(", "triton.set_allocator(lambda size, *_: torch.empty(size, dtype=torch.int8, device='cuda'))\n\ndef add(")
DESCRIBED_BY_HOST = DESCRIBED.replace("made = tl.make_tensor_descriptor(out, [n], [1], [BLOCK])\n    made.", "out.").replace(
    "](x, y, out, n", "](x, y, triton.tools.tensor_descriptor.TensorDescriptor.from_tensor(out, [1024]), n"
)
FROM_OUTSIDE = HEAD.replace("n = out.numel()", "n = int(float(out.numel()))")
EXACT_TYPE = HEAD.replace("n = out.numel()", "n = out.numel() if type(out.numel()) is int else 1")
ONE_TILE = HEAD.replace("(triton.cdiv(n, 1024),)", "(1,)").replace("BLOCK=1024", "BLOCK=triton.next_power_of_2(n)")
TEXT_BLOCK = HEAD.replace(
    "n = out.numel()\n", "n = out.numel()\n    block = 1024 if len(str(n)) < 8 else 512\n"
).replace("BLOCK=1024", "BLOCK=block")

ROWS = beside(__file__)["rows"]
UNMASKED_LOAD = beside(__file__)["unmasked_load"]
MIXED_ATOMICS = HEAD.replace(
    "    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)",
    "    first = tl.load(x + offsets, mask=mask)\n"
    "    if tl.program_id(1) == 0:\n        tl.atomic_xchg(out + offsets, first, mask=mask)\n"
    "    else:\n        tl.atomic_add(out + offsets, tl.load(y + offsets, mask=mask), mask=mask)",
).replace("(triton.cdiv(n, 1024),)", "(triton.cdiv(n, 1024), 2)")
ADDED_ALONE = MIXED_ATOMICS.replace("atomic_xchg", "atomic_add").replace("torch.empty", "torch.zeros")
TUNED = HEAD.replace(
    "@triton.jit",
    "def pruned(configs, named_args, **kwargs):\n"
    "    return [c for c in configs if named_args['n'] % c.kwargs['BLOCK'] == 0] or configs[:1]\n\n"
    "@triton.autotune([triton.Config({'BLOCK': b}) for b in (256, 1024)], key=KEY,\n"
    "                 prune_configs_by={'early_config_prune': pruned})\n@triton.jit",
).replace("(triton.cdiv(n, 1024),)", "lambda meta: (triton.cdiv(n, meta['BLOCK']),)").replace(", BLOCK=1024", "")
