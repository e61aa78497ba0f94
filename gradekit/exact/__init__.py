"""A call in exact arithmetic: every float of a program as float64, so that a formula is right or it is not.

What a dtype's tolerance excuses in a result, it excuses in a formula: erf for tanh, a weight that is dropped, a
constant that is nearly right. A program is data, so the same program runs once more with rounding switched off
(widening), and again with one place of rounding switched on (places); trial holds both against the reference in
float64.

Works in the grader's process, on programs, inputs and expected values.
"""
