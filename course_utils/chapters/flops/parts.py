"""The parts whose sums are two of the accountant's terms, with a function for each term.

The exercises of notebook 4 pass these functions to their decorator as `parts`. If a reader's sum is
wrong, the verdict can then name the parts that are missing or wrong.
"""

from course_utils.core.accountant import Model, matrices


def of_parameters(m: Model) -> dict[str, int]:
    """Return how many parameters each part of a model has: 0 if the model lacks that part."""
    shapes = matrices(m)
    norm = m.norm_vectors * m.width  # the parameters of one normalisation
    table = m.vocabulary * m.width
    return {
        "matrices": m.layers * sum(inputs * outputs for inputs, outputs in shapes.values()),
        # A bias has a number for each output, and shapes[name] is (inputs, outputs).
        "biases": m.layers * sum(shapes[name][1] for name in m.biases),
        "the layers' normalisations": m.layers * 2 * norm,  # before attention and feed-forward
        # One vector for the queries, and one for the keys.
        "head norms": m.layers * 2 * m.head_width if m.head_norms else 0,
        "embedding": table,
        "output table": 0 if m.tied else table,
        "positions": m.context * m.width if m.learned_positions else 0,
        "last normalisation": norm,
    }


def of_forward_flops(m: Model, batch: int, sequence: int) -> dict[str, int]:
    """Return a forward pass's FLOPs by part. All S × S scores count, those of a mask, too."""
    tokens = batch * sequence
    weights = sum(inputs * outputs for inputs, outputs in matrices(m).values())  # of one layer
    pairs = tokens * sequence  # of a query and a key: batch × S × S
    return {
        "matrices": 2 * tokens * m.layers * weights,
        # Queries × keys and scores × values. In each head, a pair takes 2 FLOPs for each number of
        # the head's width. The two are one part: half of it may be one product, or both without
        # their 2, which a verdict can't tell apart.
        "attention": 2 * 2 * pairs * m.layers * m.heads * m.head_width,
        "product with the vocabulary": 2 * tokens * m.width * m.vocabulary,
    }
