"""What TOML files may say, as JSON Schemas, for editors too: an assignment's (`domain.json`, `assignment.json`) and a
course's (`course.json`).

check.py   which places of a file's data do not fit a schema, and why, in sentences; the line where a place stands

No torch: reading an assignment costs nothing but the file. What no schema can say (a name that must be declared
elsewhere) is a `Problem` too, found by whoever reads the file.
"""
