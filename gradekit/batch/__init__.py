"""Many submissions: what came in, their grading on many workers, the rules of the course, and the grade book.

intake           what came in: folders as LMSes leave them; `roster`, the class list
store            the database of hand-ins, results, options and people's marks
digests          what results are keyed by: the digest of a submission, and of an assignment's release
scheduler        grades what has no result yet; `pool`: on grader processes here, or on a Dask cluster
grader           the process that grades one submission after another
cluster_worker   lends a machine to a cluster; `gpus`: its GPUs
gpu_stage        correctness first, then speed where a GPU is
policy           a course's rules as data: due dates, lateness, attempts
course_file      course.toml; `course_book`: the grade book over all assignments; `course_pages`, `status_command`
totals           from results, marks and the policy to the lines of the `gradebook`
exports          the files of Canvas and Moodle filled; `feedback`: a report for each student; `summary`: of all
canvas_api       points into Canvas by its API, after a yes
similar          which submissions resemble each other, by what `fingerprint` kept of them
submission_times when hand-ins came, from elsewhere; `feedback_zip`: reports under the names of Canvas and Moodle
class_folder     a class's folder; `grading_session`: what a command of `class_commands` does with it
leaderboard      speeds of a class beside each other, with ties
marking          hand-ins as people mark them: `marking_server`, in a browser; `marking_commands`
progress_log     a line for each result, and the time that is left
"""
