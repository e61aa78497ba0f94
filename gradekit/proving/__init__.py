"""`gradekit prove`: what holds of a submission for all sizes of its assignment's domain.

submitted.py      a submission's proofs as a record
prove_command.py  the command
"""
