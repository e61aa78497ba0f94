"""Many submissions: what came in, their grading on many workers, the rules of the course, and the grade book.

What each module is about:

    intake      what came in: folders as LMSes leave them; `roster`, the class list
    store       what is known: hand-ins, results and people's marks, in a database
    keys        what a result is known by
    run         grades what has no result yet; `grader`, the warm process that does it
    policy      a course's rules as data: due dates, lateness, attempts
    gradebook   a line for each student; `exports`, the files of Canvas and Moodle filled
"""
