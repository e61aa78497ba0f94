"""What must hold between the results of several calls, whatever the right result is: no reference is needed for it.

relation.py   what an entry's domain declares, and the other call that each relation makes of a call
holding.py    whether it holds for a submission: claims for tests, which every check of correctness also makes by itself
"""
