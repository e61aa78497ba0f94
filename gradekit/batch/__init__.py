"""Many submissions: what came in, their grading on many workers, the rules of the course, and the grade book.

intake           what came in: folders as LMSes leave them, and when; the class list
store            the database of hand-ins, results, options and people's marks
scheduler        grades what has no result yet, then its speed where a GPU is
pool             grader processes here, or the workers of a Dask cluster, and what lends a machine to one
grader           the process that grades one submission after another; what results are keyed by; this machine's GPUs
policy           course.toml: a course, and its rules as data: due dates, lateness, attempts
gradebook        from results, marks and the policy to a line for each student
course_pages     the course, its students and its assignments as pages
exports          the files of Canvas and Moodle filled; points into Canvas by its API, after a yes
feedback         a report for each student, and all as one zip; `summary`: of all, and progress
similar          which submissions resemble each other, by what was kept of them
class_folder     a class's folder, and what a command of `class_commands` does with it
marking          hand-ins as people mark them, in a browser
"""
