"""Answers to the exercises of notebook 04."""

import numpy as np

from course_utils.chapters.accountant import matrices
from course_utils.chapters.flops import check
from tests.engine.tried import Check, Tried


def by_two_equations(square, wide, narrow):
    """product + t = 2 wide, and product + t / 8 = 2 narrow."""
    _, t = np.linalg.solve([[1, 1], [1, 1 / 8]], [2 * wide, 2 * narrow])
    return 2 * square - t


def all_vectors(m):
    """The numbers of a normalisation."""
    return m.norm_vectors * m.width


def one_vector(m):
    return m.width


def half_of_all_vectors(m):
    return all_vectors(m) // 2


def two(m):
    return 2


def all_heads(m):
    return m.heads + m.kv_heads


def parameters_with(in_layers, at_the_end, *, bias_side=1, head_vectors=two):
    """Parameters, with so many numbers in a normalisation of a layer and in the last one."""

    def parameters(m):
        shapes = matrices(m)
        layer = 2 * in_layers(m)
        for inputs, outputs in shapes.values():
            layer += inputs * outputs
        for name in m.biases:
            layer += shapes[name][bias_side]
        if m.head_norms:
            layer += head_vectors(m) * m.head_width
        rows = m.vocabulary
        if not m.tied:
            rows += m.vocabulary
        if m.learned_positions:
            rows += m.context
        return m.layers * layer + rows * m.width + at_the_end(m)

    return parameters


def without_what_comes_once(m):
    """Only the layers' parameters, which are no listed mistake."""
    return parameters_with(all_vectors, all_vectors)(m) - m.vocabulary * m.width - all_vectors(m)


def seven_more(m):
    return parameters_with(all_vectors, all_vectors)(m) * 2 + 7


def all_layers(m):
    return m.layers


def one_layer(m):
    return 1


def forward_with(attention_of_a_layer, layers=all_layers):
    """The FLOPs of a forward pass, with another count of attention, in so many layers."""

    def forward_flops(m, batch, sequence):
        tokens = batch * sequence
        weights = m.layers * sum(inputs * outputs for inputs, outputs in matrices(m).values())
        attention = layers(m) * attention_of_a_layer(m, batch, sequence)
        return 2 * tokens * (weights + m.width * m.vocabulary) + attention

    return forward_flops


def attention_of_pairs(pairs_of):
    """Two products of so many pairs of tokens, for each head."""

    def attention(m, batch, sequence):
        return 4 * batch * pairs_of(sequence) * m.heads * m.head_width

    return attention


all_pairs = attention_of_pairs(lambda sequence: sequence * sequence)
half_of_the_pairs = attention_of_pairs(lambda sequence: sequence * sequence / 2)
pairs_of_a_mask = attention_of_pairs(lambda sequence: sequence * (sequence + 1) // 2)


def one_product(m, batch, sequence):
    return 2 * batch * sequence**2 * m.heads * m.head_width


def heads_of_the_keys(m, batch, sequence):
    return 4 * batch * sequence**2 * m.kv_heads * m.head_width


def pairs_across_sequences(m, batch, sequence):
    return 4 * (batch * sequence) ** 2 * m.heads * m.head_width


def days_by_hours(flops, gpus, peak, share):
    return flops / gpus / peak / share / (24 * 60 * 60)


def days_at_the_full_peak(flops, gpus, peak, share):
    return flops / (gpus * peak) / 86_400


def days_times_the_share(flops, gpus, peak, share):
    return flops / (gpus * peak) * share / 86_400


def days_without_brackets(flops, gpus, peak, share):
    return flops / gpus * peak * share / 86_400


def days_times_seconds(flops, gpus, peak, share):
    return flops / (gpus * peak * share) * 86_400


def half_in_one_formula(c, e, peak):
    n_cubed = c * peak * e / (4 * e - 2)
    return round(n_cubed ** (1 / 3))


def no_n_at_all(c, e, peak):
    return c + peak / e


TRIED: dict[Check, Tried] = {
    check.days: Tried(
        right=(days_by_hours,),
        wrong=(
            (days_at_the_full_peak, "at the full peak"),
            (days_times_the_share, "Divide by it"),
            (days_without_brackets, "in brackets"),
            (days_times_seconds, "not multiplied"),
        ),
    ),
    check.parameters: Tried(
        right=(parameters_with(all_vectors, all_vectors),),
        wrong=(
            (parameters_with(one_vector, one_vector), "m.norm_vectors vectors"),
            (parameters_with(one_vector, all_vectors), "m.norm_vectors vectors"),
            (parameters_with(all_vectors, one_vector), "m.norm_vectors vectors"),
            (parameters_with(half_of_all_vectors, all_vectors), "two normalisations."),
            (
                parameters_with(all_vectors, all_vectors, bias_side=0),
                "a number for each output",
            ),
            (
                parameters_with(all_vectors, all_vectors, head_vectors=all_heads),
                "however many heads",
            ),
            (
                without_what_comes_once,
                "For Qwen2.5 0.5B, without_what_comes_once gave 357,897,216 instead of 494,032,768 "
                "parameters. Matrices ✓, biases ✓, the layers' normalisations ✓, embedding and "
                "last normalisation left out: 136,135,552 short.",
            ),
            (
                seven_more,
                "instead of 494,032,768 parameters, 494,032,775 too many. "
                "No single part explains the difference.",
            ),
        ),
    ),
    check.forward_flops: Tried(
        right=(forward_with(all_pairs),),
        wrong=(
            (forward_with(all_pairs, layers=one_layer), "Each of the m.layers layers"),
            (forward_with(half_of_the_pairs), "two products, of all S × S pairs"),
            (forward_with(pairs_of_a_mask), "those of a mask"),
            (forward_with(one_product), "two products, of all S × S pairs"),
            (forward_with(heads_of_the_keys), "Each head of the queries"),
            (forward_with(pairs_across_sequences), "its own sequence"),
        ),
    ),
    check.half_of_the_peak: Tried(
        right=(half_in_one_formula,),
        wrong=((no_n_at_all, "gave 1.28506 × 10^15; expected 1,572."),),
    ),
    check.square_alone: Tried(right=(by_two_equations,)),
    check.name_of_f32: Tried(right=(" TF32",), wrong=((19, "the name of a format, in quotes"),)),
}
