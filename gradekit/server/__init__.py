"""A process that has imported torch and Triton, from which graders and tracers are forked.

    gradekit check --client--> template --fork--> grader (the command, with the caller's environment and streams)
                                  |                  | asks for a tracer, and for a GPU's worker
                                  +--fork--> tracers --fork--> tracer (gradekit.tracer's supervisor), GPU's worker

The template is started with a clean environment. It forks before it reads anything that a client sends, so neither it
nor what is forked from it later holds a word of a submission, an assignment or a user's environment. A private one
serves a single command, which so imports torch once in place of twice. A resident one, which `gradekit check` uses
on a user's own machine, stays for the next commands and ends after 30 idle minutes. A grader that is done leaves a
fork of itself behind in its place, so that the next command knows what is the same for both; it listens before the
command ends.

    client      runs a command in a template; says which commands, and where a resident one may be used
    address     where the resident templates of a user are, which one suits this installation, and what they did
    forks       how a process forks others for those who ask, and how they ask
    template    the process itself, what serves tracers, and what a grader leaves behind
"""
