"""Further inputs for a check, from what its examples have not seen of a submission: pure, nothing is run here.

A want says what must be seen, and one search over sizes finds calls for it:

- `search`: wants, the calls that meet them; a comparison of host code or of compile-time constants that goes the other
  way, a branch, mask or loop of a kernel
- `scope`, `layouts`: the sizes that a check may have, and those to try; strides and offsets to try
- `host_branches`, `host_inputs`; `kernel_branches`, `kernel_inputs`: what calls have seen of host code and of kernels,
  and calls for the rest, by sizes and by values; `loaded`: whole numbers in tensors that turn a kernel's comparisons
- `long_dimensions`: long calls, and the longest, which are counted and not run
- `further`: calls of a check that were found so
"""


class Limit:
    """How far further inputs are looked for. Work is in the engine's units, about a nanosecond each; elements are those
    of a call's largest tensor where nothing else is said."""

    # what is followed and solved for
    PATHS, COMPARISONS = 8, 200  # through host code, of calls that are alike; of one path
    # of one check (three times as many on the host where layouts decide); of one comparison, without success
    SOLVED_ON_HOST, SOLVED_IN_KERNELS, IN_VAIN = 12, 24, 2
    PAIRS = 8  # of ways of comparisons, each seen in a call without the other
    LOOPS = 2  # of one check, tried with each kind of values and each group of dtypes that the kernel treats alike
    # of a comparison with what is loaded, at each end; numbers of one check, calls that hold them; numbers tried
    EDGES, LOADED, LOADING, RANGE = 2, 48, 12, 1 << 16
    PARTS, KEPT_VALUES = 64, 200  # of a sum that is followed; of a launch, for the next decision
    KEPT_SETS = 16  # of candidates: of at most 4 MB each
    LAYOUTS, TOGETHER = 1 << 14, 8  # candidates for the layouts of tensors; combinations of sizes, to one by itself

    # further calls
    ELEMENTS, PRODUCT = 1 << 23, 1 << 26  # the most, and the product of all sizes: what a matrix product costs
    BEYOND, FAR = 4, 1 << 11  # times the check's largest; where it draws any size, and nothing smaller will do
    NEAR_ELEMENTS = 1 << 16  # of a call whose sizes are about alike
    ROOT = 20  # the least root of a number that is looked at beside it: smaller sizes are anyway
    USUAL, LARGER = 33, 4  # the largest call: LARGER times the sizes of the smallest, or of USUAL, if that is more,
    # and no more elements than the smallest, or than this: for large ones references take longest
    LARGER_ELEMENTS, LARGER_PRODUCT = 1 << 16, 1 << 20
    MANY_ELEMENTS = 1 << 12  # beside so large a call a larger one is made: the last of many may be right by chance
    HARDLY_MORE = 1.25  # times the fewest elements
    # sizes that fill tiles to their ends; those of calls with some thousand elements in several rows
    WHOLE, ROOMY, FEW = 256, 48, 9
    SQUARE = 150  # two tiles and more of 64 in each dimension
    SAMPLE, WIDER = 4096, 2  # elements by which a kind's range is told; how far beyond it the next seed may draw

    # long dimensions: primes, or nearly, which no tile divides
    LENGTHS = (17, 257, 4099, 65_551)  # each beyond a power of two
    # one has to touch a tensor as a whole, by MANY_TILES or more
    SHORTER = ((1 << 23) + 9, (1 << 20) + 7, 65_537, 4099)
    MANY_TILES = 32
    SHORTEST = 4096  # dimensions that are promised no longer are tried as they are
    LONG_ELEMENTS, GRADIENT_ELEMENTS = 1 << 20, 1 << 18  # where gradients are asked for, references take longest
    WORK = 60_000_000  # that a call may be expected to take: it is ended at twice as much
    # where a dimension is in no result: how far a program comes in it shows in long calls alone
    SUMMED_WORK = 300_000_000
    # where whole numbers have to do with few bits: times as much, and more elements than float32 counts, an odd number
    FEW_BITS, COUNTED = 48, (1 << 24) + 1025
    QUOTIENTS = (1 << 26) + 2050  # elements of a call in which a quotient by 2 is off by 2 in float32
    PROGRAMS, AT_A_TIME = 1 << 22, 1 << 18  # of a launch whose turns of loops are worked out, and at a time

    # the dimensions beside a long one: with short ones, a program often has many elements of the long one
    OTHERS, MANY_DIMENSIONS = (2, 130), 3  # where there are so many, they are short, and the outermost is 1
    # where whole numbers that are made of floats may be off: few programs; several rows of many numbers of tiles
    ROUNDED = (3, range(2, 256)), (37, range(1773, LONG_ELEMENTS // 37, 1773))
    BESIDE: tuple[int | None, ...] = (2, 129, None)  # short, with half of a tile beyond them, as long as they may be
    LONGEST = 16  # of one check, with the sizes of calls that took other paths
    SHORT = (259, 67)
