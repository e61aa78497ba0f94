"""Many submissions: what came in, the rules of the course, and the grade book.

policy      a course's rules as data: due dates, lateness, attempts
"""
