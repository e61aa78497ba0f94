"""Many submissions: what came in, their grading on many workers, the rules of the course, and the grade book.

What each module is about:

    intake      what came in: folders as LMSes leave them; `roster`, the class list
    store       what is known: hand-ins, results and people's marks, in a database
    keys        what a result is known by
    run         grades what has no result yet; `pool`, where: warm graders here, or a Dask cluster's
    grader      the warm process that grades; `worker` lends a machine to a cluster, `cards` are its GPUs
    lanes       correctness first, then speed where a card is
    policy      a course's rules as data: due dates, lateness, attempts
    book        from results, marks and the policy to `gradebook`, a line for each student
    exports     the files of Canvas and Moodle filled; `feedback`, a report for each student; `summary`, of all
    similar     which submissions resemble each other, by what `fingerprint` kept of them
    desk        a class's folder, and the sessions that `commands` ask for
"""
