"""Answers to the exercises of notebook 04."""

import numpy as np

from course_utils.chapters.accountant import matrices
from course_utils.chapters.flops import check
from tests.engine.tried import Check, Tried


def by_two_equations(square, wide, narrow):
    """product + t = 2 wide, and product + t / 8 = 2 narrow."""
    _, t = np.linalg.solve([[1, 1], [1, 1 / 8]], [2 * wide, 2 * narrow])
    return 2 * square - t


def parameters_with(in_layers, at_the_end, *, bias_side=1, head_vectors=lambda m: 2):
    """Parameters, with so many numbers in a normalisation of a layer and in the last one."""

    def parameters(m):
        shapes = matrices(m)
        layer = sum(inputs * outputs for inputs, outputs in shapes.values())
        layer += sum(shapes[name][bias_side] for name in m.biases)
        layer += 2 * in_layers(m)
        if m.head_norms:
            layer += head_vectors(m) * m.head_width
        tables = m.vocabulary * m.width * (1 if m.tied else 2)
        positions = m.context * m.width if m.learned_positions else 0
        return m.layers * layer + tables + positions + at_the_end(m)

    return parameters


def of_all_vectors(m):
    return m.norm_vectors * m.width


def of_one_vector(m):
    return m.width


def forward_with(attention_of_a_layer, layers=lambda m: m.layers):
    """The FLOPs of a forward pass, with another count of attention, in so many layers."""

    def forward_flops(m, batch, sequence):
        tokens = batch * sequence
        weights = m.layers * sum(inputs * outputs for inputs, outputs in matrices(m).values())
        attention = layers(m) * attention_of_a_layer(m, batch, sequence)
        return 2 * tokens * (weights + m.width * m.vocabulary) + attention

    return forward_flops


def of_pairs(pairs):
    """Two products of so many pairs for each head."""
    return lambda m, batch, s: 4 * batch * pairs(s) * m.heads * m.head_width


TRIED: dict[Check, Tried] = {
    check.days: Tried(
        right=(lambda flops, gpus, peak, share: flops / gpus / peak / share / (24 * 60 * 60),),
        wrong=(
            (lambda flops, gpus, peak, share: flops / (gpus * peak) / 86_400, "at the full peak"),
            (
                lambda flops, gpus, peak, share: flops / (gpus * peak) * share / 86_400,
                "Divide by it",
            ),
            (lambda flops, gpus, peak, share: flops / gpus * peak * share / 86_400, "in brackets"),
            (
                lambda flops, gpus, peak, share: flops / (gpus * peak * share) * 86_400,
                "not multiplied",
            ),
        ),
    ),
    check.parameters: Tried(
        right=(parameters_with(of_all_vectors, of_all_vectors),),
        wrong=(
            (parameters_with(of_one_vector, of_one_vector), "m.norm_vectors vectors"),
            (parameters_with(of_one_vector, of_all_vectors), "m.norm_vectors vectors"),
            (parameters_with(of_all_vectors, of_one_vector), "m.norm_vectors vectors"),
            (
                parameters_with(lambda m: of_all_vectors(m) // 2, of_all_vectors),
                "two normalisations.",
            ),
            (
                parameters_with(of_all_vectors, of_all_vectors, bias_side=0),
                "a number for each output",
            ),
            (
                parameters_with(
                    of_all_vectors, of_all_vectors, head_vectors=lambda m: m.heads + m.kv_heads
                ),
                "however many heads",
            ),
        ),
    ),
    check.forward_flops: Tried(
        right=(forward_with(of_pairs(lambda s: s * s)),),
        wrong=(
            (forward_with(of_pairs(lambda s: s * s), lambda m: 1), "Each of the m.layers layers"),
            (forward_with(of_pairs(lambda s: s * s / 2)), "two products, of all S × S pairs"),
            (forward_with(of_pairs(lambda s: s * (s + 1) // 2)), "those of a mask"),
            (
                forward_with(lambda m, batch, s: 2 * batch * s * s * m.heads * m.head_width),
                "two products, of all S × S pairs",
            ),
            (
                forward_with(lambda m, batch, s: 4 * batch * s * s * m.kv_heads * m.head_width),
                "Each head of the queries",
            ),
            (
                forward_with(lambda m, batch, s: 4 * (batch * s) ** 2 * m.heads * m.head_width),
                "its own sequence",
            ),
        ),
    ),
    check.half_of_the_peak: Tried(
        right=(lambda c, e, peak: round((c * peak * e / (4 * e - 2)) ** (1 / 3)),),
        wrong=((lambda c, e, peak: c + peak / e, "gave 1.28506e+15; expected 1572."),),
    ),
    check.square_alone: Tried(right=(by_two_equations,)),
    check.name_of_f32: Tried(right=(" TF32",), wrong=((19, "the name of a format, in quotes"),)),
}
