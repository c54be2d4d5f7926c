/* What a training step on a CPU does to every word: Adam, the gradient of the first layer, the decoder's softmax.
 * Here are the functions that Python calls; steps/ has the loops.
 *
 * All are bound by memory, and PyTorch passes over it several times: it makes the gradient of the first layer,
 * most of which is 0, writes it and reads it again; it goes over the logits of a batch a dozen times. Here the
 * gradient of a word is made when its weights are at hand, and a row of logits stays in the cache.
 *
 * The work is done in two halves, by two threads or by one: what comes out is the same to the last bit. */

#include <stdlib.h>
#include <string.h>

#include "_buffers.h"
#include "_rows.h"
#include "steps/adam.h"
#include "steps/codes.h"
#include "steps/decoder.h"
#include "steps/draws.h"
#include "steps/halves.h"
#include "steps/layers.h"
#include "steps/logits.h"
#include "steps/products.h"

#define NUMBERS "(ffffff)" /* as in Adam */
#define PLACES(adam)                                                                                \
    &(adam).rate, &(adam).root, &(adam).rest1, &(adam).beta2, &(adam).rest2, &(adam).epsilon

static PyObject *adam_dense(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer b[4]; /* weight, mean, square, gradient */
    Adam adam;
    int threads;
    if (!PyArg_ParseTuple(arguments, "w*w*w*y*" NUMBERS "i", &b[0], &b[1], &b[2], &b[3], PLACES(adam),
                          &threads))
        return NULL;
    if (b[0].len != b[1].len || b[0].len != b[2].len || b[0].len != b[3].len)
        return refuse(b, 4, "weights, their moments and their gradient differ in size");
    Dense task = {b[0].buf, b[1].buf, b[2].buf, b[3].buf, floats(&b[0]), adam};
    Py_BEGIN_ALLOW_THREADS
    do_both(update_dense, &task, threads);
    Py_END_ALLOW_THREADS
    release(b, 4);
    Py_RETURN_NONE;
}

static PyObject *adam_of_words(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer b[7]; /* weight, mean, square, by_output, documents, amounts, ends */
    Adam adam;
    int threads;
    if (!PyArg_ParseTuple(arguments, "w*w*w*y*y*y*y*" NUMBERS "i", &b[0], &b[1], &b[2], &b[3], &b[4],
                          &b[5], &b[6], PLACES(adam), &threads))
        return NULL;
    size_t n_words = (size_t)b[6].len / sizeof(int32_t) - 1;
    size_t n_outputs = n_words ? floats(&b[0]) / n_words : 0;
    if (b[6].len < (Py_ssize_t)sizeof(int32_t) || !n_outputs || floats(&b[0]) != n_words * n_outputs ||
        b[0].len != b[1].len || b[0].len != b[2].len || floats(&b[3]) % n_outputs ||
        !fit_together(&b[4], &b[5], &b[6], floats(&b[3]) / n_outputs))
        return refuse(b, 7, "weights, their moments and the words of the documents do not fit together");
    float *room = malloc(2 * AT_ONCE * n_outputs * sizeof *room);
    if (room == NULL) {
        release(b, 7);
        return PyErr_NoMemory();
    }
    Words task = {b[0].buf, b[1].buf,  b[2].buf, b[3].buf, b[4].buf, b[5].buf, b[6].buf,
                  n_outputs, middle_of_rows(b[6].buf, n_words, AT_ONCE), n_words, {room, room + AT_ONCE * n_outputs},
                  adam};
    Py_BEGIN_ALLOW_THREADS
    do_both(update_words, &task, threads);
    Py_END_ALLOW_THREADS
    free(room);
    release(b, 7);
    Py_RETURN_NONE;
}

static PyObject *decode(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer b[7]; /* logits, bias, words, amounts, ends, values, by_bias */
    int threads;
    if (!PyArg_ParseTuple(arguments, "w*y*y*y*y*w*w*i", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5], &b[6],
                          &threads))
        return NULL;
    size_t n_words = floats(&b[1]), n_documents = floats(&b[5]);
    if (floats(&b[0]) != n_documents * n_words || floats(&b[6]) != 2 * n_words ||
        (size_t)b[4].len != (n_documents + 1) * sizeof(int32_t) ||
        !fit_together(&b[2], &b[3], &b[4], n_words))
        return refuse(b, 7, "logits and the words of the documents do not fit together");
    float *by_bias = b[6].buf;
    Decoding task = {b[0].buf, b[1].buf,   b[2].buf, b[3].buf, b[4].buf, b[5].buf, {by_bias, by_bias + n_words},
                     n_documents, n_words};
    Py_BEGIN_ALLOW_THREADS
    do_both(decode_documents, &task, threads);
    Py_END_ALLOW_THREADS
    release(b, 7);
    Py_RETURN_NONE;
}


static PyObject *decodes(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(arguments))
{
    return PyBool_FromLong(can_decode());
}

static PyObject *kept_of_decoding(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_ssize_t n_documents, n_words;
    if (!PyArg_ParseTuple(arguments, "nn", &n_documents, &n_words))
        return NULL;
    return PyLong_FromSize_t(kept_by_decoder((size_t)n_documents, (size_t)n_words));
}

/* Whether the words that are asked for, the codes and what is kept fit n_documents and n_words. */
static int fit_decoder(const Py_buffer *targets, const Py_buffer *codes, const Py_buffer *kept, size_t n_documents,
                       size_t n_words, Py_ssize_t first, Py_ssize_t n_bits)
{
    const size_t all_bits = n_documents ? floats(codes) / n_documents : 0;
    return can_decode() && n_documents && n_words && first >= 0 && n_bits > 0 &&
           (size_t)(first + n_bits) <= all_bits && floats(codes) == n_documents * all_bits &&
           floats(kept) == kept_by_decoder(n_documents, n_words) &&
           (size_t)targets[2].len == (n_words + 1) * sizeof(int32_t) &&
           fit_together(&targets[0], &targets[1], &targets[2], n_documents);
}

static PyObject *decode_bits(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer b[9]; /* documents, amounts, ends, codes, kept, weight, bias, values, by_codes */
    Py_ssize_t first, n_bits;
    int with_by_codes, threads;
    if (!PyArg_ParseTuple(arguments, "y*y*y*y*w*y*y*w*w*nnpi", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5],
                          &b[6], &b[7], &b[8], &first, &n_bits, &with_by_codes, &threads))
        return NULL;
    const size_t n_documents = floats(&b[7]), n_words = floats(&b[6]);
    if (!fit_decoder(b, &b[3], &b[4], n_documents, n_words, first, n_bits) ||
        floats(&b[5]) != n_words * (floats(&b[3]) / n_documents) ||
        (with_by_codes && b[8].len != b[3].len))
        return refuse(b, 9, "codes, the decoder and the words of the documents do not fit together");
    Decoder task = {.codes = (float *)b[3].buf + first,
                    .weight = (float *)b[5].buf + (size_t)first * n_words,
                    .bias = b[6].buf,
                    .documents = b[0].buf,
                    .amounts = b[1].buf,
                    .ends = b[2].buf,
                    .n_documents = n_documents,
                    .n_words = n_words,
                    .n_bits = (size_t)n_bits,
                    .all_bits = floats(&b[3]) / n_documents,
                    .values = b[7].buf,
                    .by_codes = with_by_codes ? (float *)b[8].buf + first : NULL};
    int done;
    Py_BEGIN_ALLOW_THREADS
    place_kept(&task, b[4].buf);
    done = decode_words(&task, threads);
    Py_END_ALLOW_THREADS
    release(b, 9);
    if (!done)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *decode_bits_backward(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer b[8]; /* documents, amounts, ends, codes, kept, each, by_weight, by_bias */
    Py_ssize_t first, n_bits;
    int threads;
    if (!PyArg_ParseTuple(arguments, "y*y*y*y*y*y*w*w*nni", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5],
                          &b[6], &b[7], &first, &n_bits, &threads))
        return NULL;
    const size_t n_documents = floats(&b[5]), n_words = floats(&b[7]);
    if (!fit_decoder(b, &b[3], &b[4], n_documents, n_words, first, n_bits) ||
        floats(&b[6]) != n_words * (floats(&b[3]) / n_documents))
        return refuse(b, 8, "codes, derivatives and the words of the documents do not fit together");
    Decoder task = {.codes = (float *)b[3].buf + first,
                    .documents = b[0].buf,
                    .amounts = b[1].buf,
                    .ends = b[2].buf,
                    .n_documents = n_documents,
                    .n_words = n_words,
                    .n_bits = (size_t)n_bits,
                    .all_bits = floats(&b[3]) / n_documents,
                    .each = b[5].buf,
                    .by_weight = (float *)b[6].buf + (size_t)first * n_words,
                    .by_bias = b[7].buf};
    int done;
    Py_BEGIN_ALLOW_THREADS
    place_kept(&task, b[4].buf);
    done = decode_words_backward(&task, threads);
    Py_END_ALLOW_THREADS
    release(b, 8);
    if (!done)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *multiplies(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(arguments))
{
    return PyBool_FromLong(can_multiply());
}

/* How far apart numbers of a matrix are at most, if it has any: from one to the next of each kind */
static size_t reach(size_t n_groups, size_t group, size_t n_rows, size_t row, size_t n_columns, size_t column)
{
    return n_groups && n_rows && n_columns ? (n_groups - 1) * group + (n_rows - 1) * row + (n_columns - 1) * column + 1
                                           : SIZE_MAX;
}

static PyObject *multiply_matrices(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer b[4]; /* a, b, start, out */
    Product t = {0};
    Py_ssize_t start_group, threads;
    if (!PyArg_ParseTuple(arguments, "y*y*y*w*(nnnn)(nnn)(nnn)(nn)n", &b[0], &b[1], &b[2], &b[3], &t.n_groups,
                          &t.n_rows, &t.n_terms, &t.n_columns, &t.a_group, &t.a_row, &t.a_term, &t.b_group, &t.b_term,
                          &t.b_column, &t.out_group, &t.out_row, &threads))
        return NULL;
    start_group = b[2].len ? (Py_ssize_t)t.n_columns : 0;
    if (!can_multiply() || reach(t.n_groups, t.a_group, t.n_rows, t.a_row, t.n_terms, t.a_term) > floats(&b[0]) ||
        reach(t.n_groups, t.b_group, t.n_terms, t.b_term, t.n_columns, t.b_column) > floats(&b[1]) ||
        reach(t.n_groups, t.out_group, t.n_rows, t.out_row, t.n_columns, 1) > floats(&b[3]) ||
        (b[2].len && floats(&b[2]) != t.n_groups * t.n_columns))
        return refuse(b, 4, "matrices and the room for their product do not fit together");
    t.a = b[0].buf;
    t.b = b[1].buf;
    t.start = b[2].len ? b[2].buf : NULL;
    t.start_group = (size_t)start_group;
    t.out = b[3].buf;
    int done;
    Py_BEGIN_ALLOW_THREADS
    done = multiply(&t, (int)threads);
    Py_END_ALLOW_THREADS
    release(b, 4);
    if (!done)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *draw_random(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer b[1];
    unsigned long long seed;
    int are_normal, threads;
    if (!PyArg_ParseTuple(arguments, "w*Kpi", &b[0], &seed, &are_normal, &threads))
        return NULL;
    Drawing task = {b[0].buf, floats(&b[0]), seed, are_normal};
    Py_BEGIN_ALLOW_THREADS
    do_both(draw_numbers, &task, threads);
    Py_END_ALLOW_THREADS
    release(b, 1);
    Py_RETURN_NONE;
}

static PyObject *dropped_relu(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer b[2]; /* x, out */
    unsigned long long seed;
    int threshold, threads;
    float scale;
    if (!PyArg_ParseTuple(arguments, "y*w*Kifi", &b[0], &b[1], &seed, &threshold, &scale, &threads))
        return NULL;
    if (b[0].len != b[1].len)
        return refuse(b, 2, "numbers and the result differ in size");
    Dropping task = {b[0].buf, seed, NULL, b[1].buf, floats(&b[0]), threshold, scale};
    Py_BEGIN_ALLOW_THREADS
    do_both(drop, &task, threads);
    Py_END_ALLOW_THREADS
    release(b, 2);
    Py_RETURN_NONE;
}

static PyObject *dropped_words(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer b[6]; /* weight, bias, words, amounts, ends, out */
    unsigned long long seed;
    int threshold, threads;
    float scale;
    if (!PyArg_ParseTuple(arguments, "y*y*y*y*y*w*Kifi", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5], &seed,
                          &threshold, &scale, &threads))
        return NULL;
    const size_t n_outputs = floats(&b[1]), n_documents = (size_t)b[4].len / sizeof(int32_t) - 1;
    if (!n_outputs || floats(&b[0]) % n_outputs ||
        !fit_together(&b[2], &b[3], &b[4], floats(&b[0]) / n_outputs) || floats(&b[5]) != n_documents * n_outputs)
        return refuse(b, 6, "weights, the words of the documents and the result do not fit together");
    Reading task = {b[0].buf, b[1].buf, b[2].buf, b[3].buf, b[4].buf, b[5].buf, n_documents, n_outputs,
                    middle_of_rows(b[4].buf, n_documents, 1), seed, threshold, scale};
    Py_BEGIN_ALLOW_THREADS
    do_both(read_words, &task, threads);
    Py_END_ALLOW_THREADS
    release(b, 6);
    Py_RETURN_NONE;
}

static PyObject *dropped_relu_backward(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer b[3]; /* what came out, gradient, result */
    int threads;
    float scale;
    if (!PyArg_ParseTuple(arguments, "y*y*w*fi", &b[0], &b[1], &b[2], &scale, &threads))
        return NULL;
    if (b[0].len != b[1].len || b[0].len != b[2].len)
        return refuse(b, 3, "numbers, their gradient and the result differ in size");
    Dropping task = {b[0].buf, 0, b[1].buf, b[2].buf, floats(&b[0]), 0, scale};
    Py_BEGIN_ALLOW_THREADS
    do_both(drop_backward, &task, threads);
    Py_END_ALLOW_THREADS
    release(b, 3);
    Py_RETURN_NONE;
}

/* Whether arrays have as many numbers as documents, bits and draws make, and bits can be shared among networks. */
static int fit_codes(const Codes *t, const Py_buffer *outputs, const Py_buffer *normals, const Py_buffer *kept)
{
    const size_t m = t->n_bits;
    return m && t->n_draws > 1 && t->n_networks && m % t->n_networks == 0 &&
           floats(outputs) == t->n_documents * m * (2 + t->rank) &&
           floats(normals) == t->n_documents * (t->n_draws * (m + t->rank) + m) &&
           floats(kept) == t->n_documents * kept_of_codes(t);
}

#define SIZES "(nnnnn)" /* documents, draws, bits, rank, networks */

static PyObject *kept_of_sampling(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Codes t = {0};
    if (!PyArg_ParseTuple(arguments, "nnnnn", &t.n_documents, &t.n_draws, &t.n_bits, &t.rank, &t.n_networks))
        return NULL;
    return PyLong_FromSize_t(t.n_documents * kept_of_codes(&t));
}

static PyObject *sampled_codes(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer b[8]; /* outputs, normals, uniforms, kept, locations, noisy, divergences, is_on */
    Codes t = {0};
    int threads;
    if (!PyArg_ParseTuple(arguments, "y*y*y*w*w*w*w*w*" SIZES "fi", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5],
                          &b[6], &b[7], &t.n_documents, &t.n_draws, &t.n_bits, &t.rank, &t.n_networks,
                          &t.noise, &threads))
        return NULL;
    const size_t all_bits = t.n_documents * t.n_bits;
    if (!fit_codes(&t, &b[0], &b[1], &b[3]) || floats(&b[2]) != 2 * all_bits || floats(&b[4]) != all_bits ||
        floats(&b[5]) != all_bits || floats(&b[6]) != t.n_documents || (size_t)b[7].len != all_bits)
        return refuse(b, 8, "outputs, numbers that were drawn and room for codes do not fit together");
    t.outputs = b[0].buf;
    t.normals = b[1].buf;
    t.uniforms = b[2].buf;
    t.kept = b[3].buf;
    t.locations = b[4].buf;
    t.noisy = b[5].buf;
    t.divergences = b[6].buf;
    t.is_on = b[7].buf;
    Py_BEGIN_ALLOW_THREADS
    do_both(sample_codes, &t, threads);
    Py_END_ALLOW_THREADS
    release(b, 8);
    Py_RETURN_NONE;
}

static PyObject *sampled_codes_backward(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer b[7]; /* outputs, normals, kept, by_noisy, by_divergences, by_locations, by_outputs */
    Codes t = {0};
    int threads;
    if (!PyArg_ParseTuple(arguments, "y*y*y*y*y*y*w*" SIZES "fi", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5],
                          &b[6], &t.n_documents, &t.n_draws, &t.n_bits, &t.rank, &t.n_networks, &t.scale,
                          &threads))
        return NULL;
    const size_t all_bits = t.n_documents * t.n_bits;
    if (!fit_codes(&t, &b[0], &b[1], &b[2]) || floats(&b[3]) != all_bits || floats(&b[4]) != t.n_documents ||
        floats(&b[5]) != all_bits || b[6].len != b[0].len)
        return refuse(b, 7, "outputs, codes and their derivatives do not fit together");
    t.outputs = b[0].buf;
    t.normals = b[1].buf;
    t.kept = b[2].buf;
    t.by_noisy = b[3].buf;
    t.by_divergences = b[4].buf;
    t.by_locations = b[5].buf;
    t.by_outputs = b[6].buf;
    t.room[0] = malloc(2 * room_for_codes(&t) * sizeof(float));
    if (t.room[0] == NULL) {
        release(b, 7);
        return PyErr_NoMemory();
    }
    t.room[1] = t.room[0] + room_for_codes(&t);
    Py_BEGIN_ALLOW_THREADS
    do_both(sample_codes_backward, &t, threads);
    Py_END_ALLOW_THREADS
    free(t.room[0]);
    release(b, 7);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"dropped_relu", dropped_relu, METH_VARARGS, "dropped_relu(x, out, seed, threshold, scale, threads)"},
    {"dropped_words", dropped_words, METH_VARARGS,
     "dropped_words(weight, bias, words, amounts, ends, out, seed, threshold, scale, threads)"},
    {"multiplies", multiplies, METH_NOARGS, "multiplies(): whether this CPU has what multiply takes"},
    {"multiply", multiply_matrices, METH_VARARGS,
     "multiply(a, b, start, out, sizes, a_strides, b_strides, out_strides, threads)"},
    {"draw_random", draw_random, METH_VARARGS, "draw_random(out, seed, are_normal, threads)"},
    {"dropped_relu_backward", dropped_relu_backward, METH_VARARGS,
     "dropped_relu_backward(out, gradient, by_x, scale, threads)"},
    {"adam_dense", adam_dense, METH_VARARGS, "adam_dense(weight, mean, square, gradient, numbers, threads)"},
    {"adam_of_words", adam_of_words, METH_VARARGS,
     "adam_of_words(weight, mean, square, by_output, documents, amounts, ends, numbers, threads)"},
    {"decode", decode, METH_VARARGS,
     "decode(logits, bias, words, amounts, ends, values, by_bias, threads)"},
    {"take_rows", take_rows, METH_VARARGS,
     "take_rows(words, amounts, ends, rows, words_taken, amounts_taken, ends_taken)"},
    {"mix_rows", mix_rows, METH_VARARGS,
     "mix_rows(words, amounts, ends, rows, others, share, words_mixed, amounts_mixed, ends_mixed)"},
    {"by_word", by_word, METH_VARARGS, "by_word(words, amounts, ends, rows, amounts_of_rows, ends_of_words)"},
    {"decodes", decodes, METH_NOARGS, "decodes(): whether this CPU has what decode_bits takes"},
    {"kept_of_decoding", kept_of_decoding, METH_VARARGS, "kept_of_decoding(n_documents, n_words)"},
    {"decode_bits", decode_bits, METH_VARARGS,
     "decode_bits(documents, amounts, ends, codes, kept, weight, bias, values, by_codes, first, n_bits, "
     "with_by_codes, threads)"},
    {"decode_bits_backward", decode_bits_backward, METH_VARARGS,
     "decode_bits_backward(documents, amounts, ends, codes, kept, each, by_weight, by_bias, first, n_bits, "
     "threads)"},
    {"kept_of_sampling", kept_of_sampling, METH_VARARGS, "kept_of_sampling(documents, draws, bits, rank, networks)"},
    {"sampled_codes", sampled_codes, METH_VARARGS,
     "sampled_codes(outputs, normals, uniforms, kept, locations, noisy, divergences, is_on, sizes, noise, threads)"},
    {"sampled_codes_backward", sampled_codes_backward, METH_VARARGS,
     "sampled_codes_backward(outputs, normals, kept, by_noisy, by_divergences, by_locations, by_outputs, sizes, "
     "scale, threads)"},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef module = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "boltzhash.training._steps",
    .m_doc = "What a training step on a CPU does to every word.",
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__steps(void) { return PyModuleDef_Init(&module); }
