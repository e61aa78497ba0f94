"""The vocabulary of edits: at each expression and statement what a beginner may have meant in its place."""
