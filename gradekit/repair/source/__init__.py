"""What a submission's text shows to a reader: kernels, launches, accesses, loops, and what depends on what. Text and
syntax tree alone."""
