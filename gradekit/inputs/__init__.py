"""Inputs as small specs that shrink: drawn by Hypothesis, filled with values wherever they are needed.

spec.py      a tensor to be (`Input`), and the tensor      layouts.py     how it lies in its storage
values.py    kinds of values, and how to add one           strategies.py  Hypothesis strategies that draw specs
"""
