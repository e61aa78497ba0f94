"""The source model: what a submission's text shows to a reader. Text and syntax tree alone; whoever asks something of a
kernel's source asks it here.

draft.py         a submission: its kernels, how host code launches them, which lines a result or an access depends on
kernel.py        a kernel: its names by role, what it loads and stores, its bounds and loops; single expressions
unfollowed.py    what host code decides by something that nothing follows, and numbers that its text makes special
"""
