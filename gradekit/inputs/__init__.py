"""Inputs as small specs that shrink: drawn by Hypothesis, filled with values wherever they are needed.

strategies.py   tensors and what goes with them: `Input`, `tensors`, `like`   kinds.py   values that need more than noise
structured.py   inputs that belong together: lengths, sparse matrices         boxes.py   values that are boxes
"""
