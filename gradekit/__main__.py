"""python -m gradekit: the command line, where no script of that name is installed."""

from gradekit.cli import main

main(prog_name="gradekit")
