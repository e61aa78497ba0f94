"""Programs on a card: replayed and timed in a clean process, beside what torch itself takes for the same call.

The worker's process (`python -m gradekit.gpu`) gets programs and specs of inputs, never an expected value. The grader's
process keeps time of its own references, holds the expected values and judges.

card.py       which card, and its clocks          timing.py     one side's clock: CUDA-graph replays, cold cache
inputs.py     inputs made on the card             baselines.py  torch eager and torch.compile, timed the same way
replay.py     a program as compiled kernels       interleaved.py the sides take turns, until the judge has seen enough
server.py     the worker's requests               ceilings.py   how fast this card moves bytes and multiplies
worker.py     the worker, as the grader sees it     worker_process.py its process
sandboxing.py what the worker may reach               device_memory.py  storages on the device, with red zones
preparation.py a program made ready to be timed       cuda_machine.py  TTIR to machine code, and launches ready to go
contest.py    who takes part, and how long          known_facts.py  what was measured on a card before
faults.py     what can go wrong on a card             shared_memory.py  tensors between the grader and the worker
stream.py     a kernel that measures memory speed     cpu_emulation.py  a card's stand-in on machines that have none
"""
