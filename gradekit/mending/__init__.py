"""Mended programs: a failing submission with one small edit that a tutor would try, and what
to say if it then comes out right.

mend.py         one edit with its sentence                draft.py        a submission's kernels and launches
kernel_text.py  what a kernel's source shows              candidates.py   all mends of a text, and their order
of_masks.py     masks                                     mask_conditions.py  comparisons
of_bounds.py    what masks compare with                   loop_text.py    what heads of loops show
node_text.py    single expressions and statements
of_loops.py     steps, accumulators, running maxima
of_indices.py   program ids and offsets                   of_addresses.py strides, rows, heads, pointers
of_launches.py  grids, arguments, allocations             of_sums.py      statistics, reductions, precision
of_formulas.py  operators, operands, stores               of_unused.py    what is computed and takes no part
of_swaps.py     two arguments of a launch                 of_random.py    seeds, counters, what is kept
of_numbers.py   numbers in formulas, powers, terms        of_curves.py    forms of an activation
of_scores.py    scores and weights of attention           of_attention.py running softmax, shared heads
of_twins.py     lines unlike their counterparts           of_guards.py    padding, lengths below 0, divisors of 0
of_walks.py     what a loop begins anew                   of_exchanges.py two things in each other's place
of_other_kernels.py  lines unlike those of another kernel
of_dimensions.py   axes of a grid, counts of elements
of_host_values.py  any value of host code in another's place
host_numbers.py    what sizes and strides are in the failing call
dependences.py  what each result depends on
search.py       tries one after another, within a budget   two_mistakes.py  a mend on top of another
same_lines.py   a mend in every copy of its line
missing_launch.py  a kernel that nothing launches          loop_bounds.py  loops that run as often as memory says
unexpected.py   errors of the tutoring itself, which cost a mend alone

Text to text: a mended program is traced and run by gradekit.plugin.mended_runs, as any submission is.
"""
