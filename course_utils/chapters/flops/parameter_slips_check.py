"""What mistakes lead to in the count of a model's parameters, which notebook 04 asks for.

Each function yields wrong answers with the advice. `m` is the model of a case, and `right` is how
many parameters it has.
"""

from course_utils.chapters import by_torch
from course_utils.core.accountant import Model
from course_utils.core.predict import shape_of
from course_utils.engine.judging import Answers


def of_norms(m: Model, right: int, other_layers: int) -> Answers:
    """Yield wrong counts of the normalisations.

    `other_layers` is the number of parameters that all layers but one have.
    """
    norm = m.norm_vectors * m.width
    once = "The embedding and the last normalisation come once, not in each layer."
    yield m.layers * (right - other_layers), once  # a whole model of one layer, m.layers times
    yield right + (m.layers - 1) * norm, once
    yield right - norm, "After the last layer comes one more normalisation."
    yield right - m.layers * norm, "A layer has two normalisations."
    all_norms = shape_of(m).parameters_by_part["normalisations"]
    yield right - all_norms, "A normalisation has norm_vectors × width parameters."
    yield right - 2 * m.layers * norm, "Each layer has two normalisations, beside the last one."
    of_vectors = "LayerNorm has a weight and a bias: m.norm_vectors vectors, in each normalisation."
    second_vector = (m.norm_vectors - 1) * m.width
    # The second vector is forgotten in all normalisations, in those of the layers, in the last.
    for normalisations in (2 * m.layers + 1, 2 * m.layers, 1):
        yield right - normalisations * second_vector, of_vectors


def of_head_norms(m: Model, right: int) -> Answers:
    """Yield wrong counts of the heads' normalisations, which some models have."""
    vector = m.layers * m.head_width  # the parameters of one of the two vectors, in all layers
    # A reader can leave out what is counted, or add what is missing. Either is 0 in models with
    # which this mistake cannot be made.
    if m.head_norms:
        counted = vector
        missing = 0
    else:
        counted = 0
        missing = vector
    yield right + 2 * missing, "A layer has 2 × head_width more only if m.head_norms."
    two_vectors = (
        "If m.head_norms, a layer has 2 × head_width more: queries and keys have one vector each."
    )
    yield right - 2 * counted, two_vectors
    yield right - counted, two_vectors
    shared = (
        "All heads share the two vectors of m.head_norms: 2 × head_width, "
        "however many heads there are."
    )
    for vectors in (m.heads + m.kv_heads, 2 * m.heads):  # the mistake: a vector for each head
        yield right + (vectors - 2) * counted, shared


def of_biases(m: Model, right: int) -> Answers:
    """Yield wrong counts of the biases."""
    shapes = by_torch.matrices(m)  # (inputs, outputs) by the name of the matrix
    inputs = sum(shapes[name][0] for name in m.biases)
    outputs = sum(shapes[name][1] for name in m.biases)
    all_outputs = sum(shape[1] for shape in shapes.values())
    without_biases = right - m.layers * outputs
    of_outputs = "A matrix that m.biases names has a bias: a number for each output."
    yield without_biases, of_outputs
    yield without_biases + m.layers * inputs, of_outputs
    yield without_biases + m.layers * len(m.biases) * m.width, of_outputs
    with_all_biases = without_biases + m.layers * all_outputs
    yield with_all_biases, "Only the matrices that m.biases names have a bias."


def of_tables(m: Model, right: int) -> Answers:
    """Yield wrong counts of the embedding and the output matrix.

    A term is 0 in models with which its mistake cannot be made.
    """
    table = m.vocabulary * m.width
    if m.tied:
        tables = table
        second_table = 0
        counted_twice = table
    else:
        tables = 2 * table
        second_table = table
        counted_twice = 0
    # In a tied model, this and the next one come to the same number; with two tables, the next one
    # is right. What is told is the first that explains every case, so this one comes first.
    yield (
        right + counted_twice - second_table,
        "It is the other way round: the output has a table of its own if m.tied is False.",
    )
    yield (
        right + counted_twice,
        "If m.tied, the embedding serves as output, too: count it once.",
    )
    yield (
        right - second_table,
        "If it is not tied, there are two tables: the embedding and the output matrix.",
    )
    yield right - tables, "The embedding has a row of the width for each token."


def of_positions(m: Model, right: int) -> Answers:
    """Yield wrong counts of the learned positions."""
    one_row_each = m.context * m.width  # what learned positions have
    if m.learned_positions:
        positions = one_row_each
        one_number_each = m.context  # the mistake: a number for each position, and no row
        unlearned = 0
    else:
        positions = 0
        one_number_each = 0
        unlearned = one_row_each
    a_row = "Learned positions have a row of the width for each position of the context."
    yield right - positions, a_row
    yield right - positions + one_number_each, a_row
    yield right + unlearned, "Positions have parameters only if m.learned_positions."


def of_the_whole(m: Model, right: int) -> Answers:
    """Yield other wrong counts of the whole model."""
    layer = shape_of(m).parameters_of_a_layer
    head_norms = 2 * m.head_width if m.head_norms else 0
    a_layer = (
        "That is one layer. There are m.layers of them, and then the embedding and the last "
        "normalisation, which come once."
    )
    yield layer, a_layer
    yield layer - head_norms, a_layer  # as the stub has it
    yield 4 * right, "That counts bytes. How many numbers are they?"
    yield 2 * right, "That counts bytes, or each parameter twice."
    yield right / 1e6, "That is in millions. Return the number itself."
    rows = m.vocabulary
    if not m.tied:
        rows += m.vocabulary
    if m.learned_positions:
        rows += m.context
    yield right - rows * m.width + rows, "A row of a table has m.width numbers, and not one."
    yield (
        right + (m.layers - 1) * rows * m.width,
        "The tables come once, after m.layers * layer, and not in each layer.",
    )
    without = right - m.layers * head_norms
    # Layers in which a wrong number is added: none in a model without head norms.
    layers = m.layers if m.head_norms else 0
    yield (
        without + head_norms,
        "Each layer has head norms of its own: add them to layer.",
    )
    yield (
        without + layers * 2,
        "m.head_norms only says yes or no, which counts as 1 or 0. A vector has m.head_width "
        "numbers.",
    )
    yield (
        without + layers * 2 * m.width,
        "The vectors of the head norms are m.head_width long, as a head is, and not m.width.",
    )
