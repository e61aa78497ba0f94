"""For those who write assignments: what is wrong with one, found by reading, and the files that a new one begins with.

lint.py            all that reading finds, as sentences with file and line
python_text.py     what is wrong with a test file, or with the Python beside it, by its syntax tree
signature.py       a domain from a reference's annotations
scaffold.py        the files of a new assignment; their texts stand in template/
commands.py        the commands `gradekit new` and `gradekit lint`

Nothing of an assignment is imported or run here, and neither torch nor Triton is: it takes a fraction of a second.
"""
