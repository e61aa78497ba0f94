"""What a student handed in, as one Python source text. Read, never imported, never unpacked.

reading.py   a path to a submission, whatever the form      notebook.py   a notebook's cells as one source
archive.py   the one file that is meant in an archive       syntax.py     what is wrong with a source, in plain words
modules.py   several files as one source                    reach.py      whether a source could change its process
parsed_source.py  a source with its syntax tree, to be edited
"""

from gradekit.submission.modules import imported_from
from gradekit.submission.reading import (
    MAX_NOTEBOOK_BYTES,
    MAX_SOURCE_BYTES,
    NoSuchSubmission,
    Submission,
    SubmissionError,
    content,
    defines,
    line_of,
    locate,
    place,
    read,
    with_modules,
)
