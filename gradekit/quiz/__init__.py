"""Assignments that ask questions: kind = "quiz" in assignment.toml. Nothing of a submission is ever run here.

    assignments/<id>/questions.toml   what is asked
    assignments/<id>/key.toml         feedback for practice questions: students have it, and get it at once
    assignments/<id>/answers.toml     the starter, made from the questions
    solutions/<id>/key.toml           the right choices, feedback for every choice, and rubrics of all other questions

A question whose key is not on this machine is pending, and so is a short answer that no rubric settles for certain:
a person marks it (see gradekit.marks).
"""
