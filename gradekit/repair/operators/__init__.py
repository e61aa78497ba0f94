"""The vocabulary of edits: at each expression and statement what a beginner may have meant in its place.

An operator is a function that is given a place (a node of a kernel, or of host code, with the values that the failing
call had there) and yields changes, each with what to say of it. One that goes by a single node stands in the table of
`replacements` or `statement_changes`, one of several places in `together`, a statement more or less in `insertions`.
It needs no rank: what it makes is evaluated with all others; tests/repair/test_operators.py has an example that it
restores.
"""
