"""Programs on a card: replayed and timed in a clean process, beside what torch itself takes for the same call.

The worker's process (see __main__.py) gets programs and specs of inputs, never an expected value. The grader's process
keeps time of its own references, holds the expected values and judges.

card.py        a card, its clocks, what is known   timing.py         one side's clock: CUDA-graph replays, cold cache
inputs.py      inputs made on the card             baselines.py      torch eager and torch.compile, timed the same way
replay.py      a program as compiled kernels       contest.py        who takes part in turn, and for how long
server.py      the worker's requests               ceilings.py       how fast this card moves bytes and multiplies
worker.py      the worker, as the grader sees it   worker_process.py its process
sandboxing.py  what the worker may reach           device_memory.py  storages on the device, with red zones
preparation.py a program made ready to be timed    cuda_machine.py   TTIR to machine code, and launches ready to go
faults.py      what can go wrong on a card         shared_memory.py  tensors between the grader and the worker
stream.py      a kernel to measure memory speed    cpu_emulation.py  a card's stand-in on machines that have none
"""

class Limit:
    """How long a card is timed, and what its processes may use."""

    # turns of the sides that are compared
    TURN_MS, TUNING_MS = 5.0, 4.0  # short, so that all sides of a round meet the same clocks; of each configuration
    ROUNDS, LOOKS = 16, 5  # at first; then the judge looks whenever a fifth has been added: looking takes time too
    SECONDS, LONGER_SECONDS = 10.0, 10.0  # on the wall; where noise leaves it open whether a threshold is reached
    BUSY_SECONDS = 5e-3  # of work before a card's clocks are read, and before a turn's first sample
    LEAST_REPLAYS, AHEAD = 3, 32  # of one sample; launches that wait

    # memory: several sets of tensors, so that no sample finds in the L2 cache what another has left there
    SWEEP, FOOTPRINT = 3, 16  # times the cache: what is read and written between samples; all sets together
    LEAST_SETS, SETS = 2, 128  # with more sets it matters less where each of them lies in memory
    SET_BYTES = 8 << 30  # of sets and outputs of one side, and no more than an eighth of the card's

    # what a card can do
    CEILING_MS = 10.0  # of each measurement
    STREAM_BYTES = 256 << 20  # of each of three buffers: several times any cache, and at most a sixteenth of memory
    STREAMED, MULTIPLIED = 16, 2  # calls in one sample: so many that what is left in the cache does not count

    # processes
    ANSWER_SECONDS = 60.0  # for one turn, or for the results of one set
    MEMORY_BYTES, FILE_BYTES = 16 << 30, 1 << 30  # of its own, beyond what it has once the card is ready; of one file
    PRINTED_BYTES = 64 << 10  # that are read of what kernels and compilers print
