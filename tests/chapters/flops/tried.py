"""Answers to the exercises of notebook 04."""

import itertools
import math

import numpy as np
import torch

from course_utils.chapters.accountant import matrices
from course_utils.chapters.flops import check
from course_utils.core import accountant
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


def n_of_a_roof_below_zero(c, e, peak):
    """Python gives a complex number for the cube root of a negative one."""
    return (c / (1 / e - 2) * peak / 2) ** (1 / 3)


def mfu_by_seconds(tokens_per_sec, parameters, layers, width, sequence, peak):
    """By the seconds of a whole sequence, with attention counted in six products of it."""
    products = torch.full((6 * layers,), 2.0 * sequence * width * sequence, dtype=torch.float64)
    flops = 6 * parameters * sequence + products.sum()
    return flops * tokens_per_sec / sequence / peak


def mfu_by_loop(tokens_per_sec, parameters, layers, width, sequence, peak):
    per_token = 6.0 * parameters
    for _ in range(layers):
        per_token += 12 * width * sequence
    return per_token * tokens_per_sec / peak


def mfu_rounded(tokens_per_sec, parameters, layers, width, sequence, peak):
    return round(mfu_by_loop(tokens_per_sec, parameters, layers, width, sequence, peak), 2)


def mfu_of_width_squared(tokens_per_sec, parameters, layers, width, sequence, peak):
    return (6 * parameters + 12 * layers * width**2) * tokens_per_sec / peak


def mfu_of_2p(tokens_per_sec, parameters, layers, width, sequence, peak):
    return (2 * parameters + 4 * layers * width * sequence) * tokens_per_sec / peak


def mfu_of_half(tokens_per_sec, parameters, layers, width, sequence, peak):
    return (6 * parameters + 6 * layers * width * sequence) * tokens_per_sec / peak


def size_by_logarithms(flops, tokens_per_parameter):
    return math.exp((math.log(flops) - math.log(6 * tokens_per_parameter)) / 2)


def size_by_torch(flops, tokens_per_parameter):
    return torch.tensor(flops / 6 / tokens_per_parameter, dtype=torch.float64).sqrt()


def size_by_tokens(flops, tokens_per_parameter):
    tokens = math.sqrt(flops * tokens_per_parameter / 6)
    return tokens / tokens_per_parameter


def whole_size(flops, tokens_per_parameter):
    return math.isqrt(int(flops / 6 / tokens_per_parameter))


def size_without_brackets(flops, tokens_per_parameter):
    return (flops / 6 * tokens_per_parameter) ** 0.5


def size_of_half(flops, tokens_per_parameter):
    return (flops / (6 * tokens_per_parameter)) ** 1 / 2


def size_of_three(flops, tokens_per_parameter):
    return (flops / (3 * tokens_per_parameter)) ** 0.5


def busy_by_rounding_down(rows, columns, tile_rows, tile_columns, cores):
    tiles = -(-rows // tile_rows) * -(-columns // tile_columns)
    waves = (tiles + cores - 1) // cores
    return rows * columns / (waves * cores) / (tile_rows * tile_columns)


def busy_by_numbers(rows, columns, tile_rows, tile_columns, cores):
    """By a GPU whose turns are counted tile by tile."""
    turns = [0] * cores
    corners = itertools.product(range(0, rows, tile_rows), range(0, columns, tile_columns))
    for number, _ in enumerate(corners):
        turns[number % cores] += 1
    return rows * columns / (max(turns) * cores * tile_rows * tile_columns)


def busy_by_torch(rows, columns, tile_rows, tile_columns, cores):
    tiles = math.prod(torch.tensor([rows / tile_rows, columns / tile_columns]).ceil().tolist())
    return torch.tensor(
        rows * columns / (math.ceil(tiles / cores) * cores * tile_rows) / tile_columns
    )


def busy_rounded_down(rows, columns, tile_rows, tile_columns, cores):
    tiles = (rows // tile_rows) * (columns // tile_columns)
    return rows * columns / (math.ceil(tiles / cores) * cores * tile_rows * tile_columns)


def busy_rounded(rows, columns, tile_rows, tile_columns, cores):
    tiles = round(rows / tile_rows) * round(columns / tile_columns)
    return rows * columns / (math.ceil(tiles / cores) * cores * tile_rows * tile_columns)


def busy_in_turned_tiles(rows, columns, tile_rows, tile_columns, cores):
    return busy_by_numbers(rows, columns, tile_columns, tile_rows, cores)


def busy_in_whole_waves(rows, columns, tile_rows, tile_columns, cores):
    tiles = math.ceil(rows / tile_rows) * math.ceil(columns / tile_columns)
    return rows * columns / (tiles // cores * cores * tile_rows * tile_columns)


def busy_in_one_wave(rows, columns, tile_rows, tile_columns, cores):
    tiles = math.ceil(rows / tile_rows) * math.ceil(columns / tile_columns)
    return tiles / cores


def busy_of_tiles(rows, columns, tile_rows, tile_columns, cores):
    tiles = math.ceil(rows / tile_rows) * math.ceil(columns / tile_columns)
    return tiles / (math.ceil(tiles / cores) * cores)


def roof_by_loop(products):
    peak = bandwidth = 0
    for flops, nbytes, seconds in products:
        peak = max(peak, flops / seconds)
        bandwidth = max(bandwidth, nbytes / seconds)
    return [peak, bandwidth]


def roof_by_torch(products):
    flops, nbytes, seconds = torch.tensor(products, dtype=torch.float64).unbind(1)
    return torch.stack([(flops / seconds).max(), (nbytes / seconds).max()])


def roof_by_numpy(products):
    flops, nbytes, seconds = np.array(products).T
    return (flops / seconds).max(), (nbytes / seconds).max()


def roof_of_the_fastest(products):
    flops, nbytes, seconds = max(products, key=lambda product: product[0] / product[2])
    return flops / seconds, nbytes / seconds


def roof_as_a_mean(products):
    rates = [flops / seconds for flops, _, seconds in products]
    return sum(rates) / len(rates), max(nbytes / seconds for _, nbytes, seconds in products)


def roof_of_intensity(products):
    peak = max(flops / seconds for flops, _, seconds in products)
    return peak, max(flops / nbytes for flops, nbytes, _ in products)


def peak_alone(products):
    return max(flops / seconds for flops, _, seconds in products)


def batch_by_trying(d, k, weight_bytes, peak, bandwidth):
    for b in itertools.count(1):
        nbytes = 2 * b * d + weight_bytes * d * k + 2 * b * k
        if 2 * b * d * k / peak >= nbytes / bandwidth:
            return b
    return None


def batch_by_two_times(d, k, weight_bytes, peak, bandwidth):
    per_token = 2 * d * k / peak - 2 * (d + k) / bandwidth
    return float(math.ceil(weight_bytes * d * k / bandwidth / per_token))


def batch_by_torch(d, k, weight_bytes, peak, bandwidth):
    b = torch.arange(1, 4096, dtype=torch.float64)
    intensity = 2 * b * d * k / (2 * b * (d + k) + weight_bytes * d * k)
    return int((intensity < peak / bandwidth).sum()) + 1


def batch_in_bf16(d, k, weight_bytes, peak, bandwidth):
    return batch_by_trying(d, k, 2, peak, bandwidth)


def batch_rounded(d, k, weight_bytes, peak, bandwidth):
    ridge = peak / bandwidth
    return round(ridge * weight_bytes * d * k / (2 * (d * k - ridge * (d + k))))


def batch_of_weights(d, k, weight_bytes, peak, bandwidth):
    return math.ceil(peak / bandwidth * weight_bytes / 2)


def batch_of_bits(d, k, weight_bytes, peak, bandwidth):
    return batch_by_trying(d, k, weight_bytes / 8, peak, bandwidth)


def cache_by_product(m, tokens, dtype):
    return 2 * m.layers * m.kv_heads * m.head_width * tokens * accountant.BYTES[dtype]


def cache_by_matrices(m, tokens, dtype):
    shapes = accountant.matrices(m)
    numbers = shapes["key"][1] + shapes["value"][1]
    return m.layers * tokens * numbers * accountant.BYTES[dtype]


def cache_by_the_accountant(m, tokens, dtype):
    return accountant.cache_bytes(m, tokens, dtype)


def cache_of_keys(m, tokens, dtype):
    return cache_by_product(m, tokens, dtype) // 2


def cache_of_a_layer(m, tokens, dtype):
    return cache_by_product(m, tokens, dtype) // m.layers


def cache_of_all_heads(m, tokens, dtype):
    return 2 * m.layers * m.heads * m.head_width * tokens * accountant.BYTES[dtype]


def cache_in_numbers(m, tokens, dtype):
    return 2 * m.layers * m.kv_heads * m.head_width * tokens


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
                "For Qwen2.5 0.5B, without_what_comes_once gave 358 million (357,897,216) instead "
                "of 494 million (494,032,768) parameters. Matrices ✓, biases ✓, the layers' "
                "normalisations ✓, embedding and last normalisation left out: 136,135,552 short.",
            ),
            (
                seven_more,
                "instead of 494 million (494,032,768) parameters, 494,032,775 too many. "
                "The difference does not show which part",
            ),
        ),
    ),
    check.forward_flops: Tried(
        right=(forward_with(all_pairs),),
        wrong=(
            (forward_with(all_pairs, layers=one_layer), "Each of the m.layers layers"),
            (forward_with(half_of_the_pairs), "or half of the S × S pairs are left out"),
            (forward_with(pairs_of_a_mask), "those of a mask"),
            (
                forward_with(one_product),
                "FLOPs, 8,847,360 short. That is half of attention: one of its two products is "
                "missing, each lacks its factor 2, or half of the S × S pairs are left out.",
            ),
            (forward_with(heads_of_the_keys), "Each head of the queries"),
            (forward_with(pairs_across_sequences), "its own sequence"),
        ),
    ),
    check.half_of_the_peak: Tried(
        right=(half_in_one_formula,),
        wrong=(
            (no_n_at_all, "gave 1.29 × 10^15; expected 1,572 rows."),
            (n_of_a_roof_below_zero, "because your roof time is below zero"),
            (no_n_at_all, "With c = 5.5 µs, e = 0.77 and a peak of 989.5 TFLOP/s, no_n_at_all"),
        ),
    ),
    check.square_alone: Tried(right=(by_two_equations,)),
    check.utilisation: Tried(
        right=(mfu_by_seconds, mfu_by_loop),
        wrong=(
            (mfu_rounded, "gave 0.58"),
            (mfu_of_width_squared, "expected 0.58"),
            (mfu_of_2p, "Training takes three times as much"),
            (mfu_of_half, "half of attention"),
        ),
    ),
    check.best_size: Tried(
        right=(size_by_logarithms, size_by_torch, size_by_tokens, whole_size),
        wrong=(
            (size_without_brackets, "in brackets"),
            (size_of_half, "x ** 0.5"),
            (size_of_three, "expected 70 billion."),
        ),
    ),
    check.busy_share: Tried(
        right=(busy_by_rounding_down, busy_by_numbers, busy_by_torch),
        wrong=(
            (busy_rounded_down, "round up on each side"),
            (busy_rounded, "round up on each side"),
            (busy_in_one_wave, "gave 21.3; expected 0.74"),
            (busy_in_turned_tiles, "rows go with tile_rows"),
            (busy_in_whole_waves, "round tiles / cores up, and not down"),
            (busy_of_tiles, "count the result's numbers"),
        ),
    ),
    check.fitted_roof: Tried(
        right=(roof_by_loop, roof_by_torch, roof_by_numpy),
        wrong=(
            (roof_of_the_fastest, "look for each by itself"),
            (roof_as_a_mean, "peak: 411 trillion instead of 990 trillion; bandwidth ✓."),
            (roof_of_intensity, "peak ✓; bandwidth: 18,273 instead of 3.4 trillion."),
            (peak_alone, "gave peak alone. Return both: peak and bandwidth."),
        ),
    ),
    check.smallest_batch: Tried(
        right=(batch_by_trying, batch_by_two_times, batch_by_torch),
        wrong=(
            (batch_in_bf16, "A weight takes weight_bytes"),
            (batch_rounded, "gave 90; expected 91."),
            (batch_of_weights, "x and y are moved, too"),
            (batch_of_bits, "gave 12"),
        ),
    ),
    check.cache_bytes: Tried(
        right=(cache_by_product, cache_by_matrices, cache_by_the_accountant),
        wrong=(
            (cache_of_keys, "A key and a value"),
            (cache_of_a_layer, "one layer's"),
            (cache_of_all_heads, "several queries share a key"),
            (cache_in_numbers, "Those are numbers"),
        ),
    ),
    check.name_of_f32: Tried(right=(" TF32",), wrong=((19, "the name of a format, in quotes"),)),
}
