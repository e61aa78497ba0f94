"""The domain of an assignment's entries, as data: what they take, what they return, and what holds between results.

`assignments/<id>/domain.toml` declares it once. Draws, the handout's table, hidden tests and proofs read it from here.
No torch and no Hypothesis: every process may import this. `gradekit/schemas/domain.json` says which keys there are.

entries.py      the nouns: an entry, its tensors, scalars, sizes, results and relations
reading.py      domain.toml to entries, or what is wrong with it and where
"""

from gradekit.domain.entries import (
    ANY_DIMENSIONS,
    MOST_ELEMENTS,
    EntryDomain,
    Relations,
    ResultDomain,
    ScalarDomain,
    SizeDomain,
    Tensor,
    evaluate,
    names_in,
)
from gradekit.domain.reading import DomainError, load
