"""What a course hands out, made from what its authors keep, and the proof that it grades as it should.

regions.py   a starter from a marked solution   release.py   an assignment as students get it
worksheet.py its notebook                       start.py     its files in a student's folder
verify.py    every claim that must hold of an assignment, tried on real submissions
mistakes.py  wrong submissions, kept as edits of right ones   edits.py   how an edit is written
attempts.py  what the checks of a started assignment came to   handout.py   a handout's table of what an entry takes
"""
