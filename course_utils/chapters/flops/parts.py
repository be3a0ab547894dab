"""The parts whose sums are the accountant's terms of notebook 4.

If a reader's sum is wrong, the check can name the parts that are missing or wrong.
"""

from course_utils.core.accountant import Model, matrices


def of_parameters(m: Model) -> dict[str, int]:
    """Return the parameters of a whole model by part; a part that the model lacks has 0."""
    shapes = matrices(m)
    norm = m.norm_vectors * m.width
    table = m.vocabulary * m.width
    return {
        "matrices": m.layers * sum(inputs * outputs for inputs, outputs in shapes.values()),
        "biases": m.layers * sum(shapes[name][1] for name in m.biases),
        "the layers' normalisations": m.layers * 2 * norm,
        "head norms": m.layers * 2 * m.head_width if m.head_norms else 0,
        "embedding": table,
        "output table": 0 if m.tied else table,
        "positions": m.context * m.width if m.learned_positions else 0,
        "last normalisation": norm,
    }


def of_forward_flops(m: Model, batch: int, sequence: int) -> dict[str, int]:
    """Return the FLOPs of a forward pass by part, with all S × S scores counted."""
    tokens = batch * sequence
    weights = sum(inputs * outputs for inputs, outputs in matrices(m).values())
    pairs = tokens * sequence  # of a query and a key: batch × S × S
    return {
        "matrices": 2 * tokens * m.layers * weights,
        "queries × keys": 2 * pairs * m.layers * m.heads * m.head_width,
        "scores × values": 2 * pairs * m.layers * m.heads * m.head_width,
        "product with the vocabulary": 2 * tokens * m.width * m.vocabulary,
    }
