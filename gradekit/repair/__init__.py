"""Repairs of a failing submission: small edits of its text that a tutor would try, and what to say of one that helps.

The text is read once (gradekit.source), edits are made (`operators`, and `idioms`, which these cannot say), and many
at a time are evaluated by gradekit.interpreter on the failing call and on others (`screen`, `host_screen`). Those
that make all of these right are put into words (`survivor_mends`), traced and run, and believed where they hold in
all checks (`search`); or one on top of another (`two_mistakes`).

Text to text: a repaired program is traced and run by gradekit.plugin.mended_runs, as any submission is.
"""
