"""Edits that the vocabulary of operators cannot say, each made for one mistake."""
