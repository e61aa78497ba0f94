"""The source model: what a submission's text shows to a reader. Text and syntax tree alone; whoever asks something of a
kernel's source asks it here.

draft.py         a submission: its kernels, and how host code launches them
kernel.py        a kernel: its names by role, what it loads and stores, its bounds and loops
loops.py         the head of a loop              expressions.py   single expressions and statements
dependences.py   which lines a result, an access or a line depends on
unfollowed.py    what host code decides by something that nothing follows, and numbers that its text makes special
"""
