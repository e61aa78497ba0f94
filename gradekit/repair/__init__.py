"""Repairs of a failing submission: small edits of its text that a tutor would try, and what to say of one that helps.

The text is read once (gradekit.source), edits are made (`operators`, and `idioms`, which these cannot say), and many
at a time are evaluated by gradekit.interpreter on the failing call and on others (`first_look`, `screen`,
`host_screen`). Those that make all of these right are put into words (`survivor_mends`), traced, run and judged, and
believed where they hold in all checks (`mend_tries`, `search`), alone or one on top of another.

`tutor` is the way in: a check that failed, with its examples, goes down, and a diagnosis comes back. What it may
take is one budget (`work`).
"""
