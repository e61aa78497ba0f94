"""Inputs as small specs that shrink: drawn by Hypothesis, filled with values wherever they are needed.

spec.py      a tensor to be (`Input`), and the tensor      layouts.py     how it lies in its storage
value_kinds.py  kinds of values, and how to add one        strategies.py  Hypothesis strategies that draw specs
draws.py     the part of a domain that a check draws from  calls.py       calls of an entry, as a Hypothesis strategy
classes.py   size classes, such as a power of two plus 1   covering.py    covering designs
as_text.py   a spec's tensor as a line of torch, and the arguments of an example, for a command that repeats it
in_words.py  kinds of values as readers know them
"""
