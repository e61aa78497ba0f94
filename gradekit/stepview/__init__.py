"""gradekit view: one program of a grid played step by step, beside the student's source.

drawing.py       tensors and values as a page draws them, and which elements an access touches
recording.py     looks on while the chosen programs run, and keeps their steps
failing.py       which call is played, and under which conditions it fails
played.py        a submission and an example to the record of its steps
view_command.py  the command
"""
