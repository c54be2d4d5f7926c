/* An inverted index, posting by posting: the compiled twin of the NumPy in segments.py and inverted.py.
 *
 * Both do the same operations on the same float32 in the same order, so they give the same scores. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void release(Py_buffer *buffers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (buffers[i].obj != NULL)
            PyBuffer_Release(&buffers[i]);
}

/* False if a range leaves the postings. */
static int ranges_fit(const int64_t *starts, const int64_t *ends, Py_ssize_t n, Py_ssize_t n_postings)
{
    for (Py_ssize_t i = 0; i < n; i++)
        if (starts[i] < 0 || starts[i] > ends[i] || ends[i] > n_postings)
            return 0;
    return 1;
}

/* False if a place is not one of the n there are. */
static int add_word(const uint32_t *places, const uint8_t *counts, int64_t start, int64_t end,
                    float weight, const float *norms, const int16_t *owners, int16_t owner,
                    float *scores, size_t n)
{
    for (int64_t i = start; i < end; i++) {
        size_t place = places[i];
        if (place >= n)
            return 0;
        if (owners != NULL && owners[place] != owner)
            continue;
        float count = (float)counts[i];
        scores[place] += weight * (count / (count + norms[place]));
    }
    return 1;
}

static PyObject *add_scores(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer b[8] = {{0}}; /* places, counts, starts, ends, weights, norms, owners, scores */
    short owner;
    if (!PyArg_ParseTuple(arguments, "y*y*y*y*y*y*z*hw*", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5],
                          &b[6], &owner, &b[7])) {
        release(b, 8);
        return NULL;
    }
    Py_ssize_t n_words = b[2].len / 8, n_postings = b[1].len, n = b[7].len / 4;
    int fits = b[0].len == 4 * n_postings && b[3].len == b[2].len && b[4].len == 4 * n_words &&
               b[5].len == b[7].len && (b[6].buf == NULL || b[6].len == 2 * n) &&
               ranges_fit(b[2].buf, b[3].buf, n_words, n_postings);
    if (fits) {
        const int64_t *starts = b[2].buf, *ends = b[3].buf;
        const float *weights = b[4].buf;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0; fits && i < n_words; i++)
            fits = add_word(b[0].buf, b[1].buf, starts[i], ends[i], weights[i], b[5].buf, b[6].buf,
                            owner, b[7].buf, (size_t)n);
        Py_END_ALLOW_THREADS
    }
    release(b, 8);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "the arrays of an inverted index do not fit together");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *count_owned(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer b[4] = {{0}}; /* places, starts, ends, owners */
    short owner;
    if (!PyArg_ParseTuple(arguments, "y*y*y*y*h", &b[0], &b[1], &b[2], &b[3], &owner)) {
        release(b, 4);
        return NULL;
    }
    Py_ssize_t n_words = b[1].len / 8;
    size_t n = (size_t)b[3].len / 2;
    const uint32_t *places = b[0].buf;
    const int64_t *starts = b[1].buf, *ends = b[2].buf;
    const int16_t *owners = b[3].buf;
    int fits = b[2].len == b[1].len && ranges_fit(starts, ends, n_words, b[0].len / 4);
    PyObject *counted = PyByteArray_FromStringAndSize(NULL, 8 * n_words);
    if (counted != NULL && fits) {
        int64_t *counts = (int64_t *)PyByteArray_AsString(counted);
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0; fits && i < n_words; i++) {
            int64_t count = 0;
            for (int64_t j = starts[i]; fits && j < ends[i]; j++) {
                fits = places[j] < n;
                count += fits && owners[places[j]] == owner;
            }
            counts[i] = count;
        }
        Py_END_ALLOW_THREADS
    }
    release(b, 4);
    if (counted != NULL && !fits) {
        Py_CLEAR(counted);
        PyErr_SetString(PyExc_ValueError, "the arrays of an inverted index do not fit together");
    }
    return counted;
}

static inline size_t lowest_bit(uint64_t bits)
{
#if defined(__GNUC__)
    return (size_t)__builtin_ctzll(bits);
#else
    size_t at = 0;
    while (!(bits >> at & 1))
        at++;
    return at;
#endif
}

/* The n best places so far, the worst of them at the root of a heap. */
typedef struct {
    float score;
    uint32_t place;
} Found;

static inline int is_worse(Found a, Found b)
{
    return a.score < b.score || (a.score == b.score && a.place > b.place);
}

static void sink(Found *heap, size_t n, size_t at)
{
    Found moved = heap[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= n)
            break;
        if (child + 1 < n && is_worse(heap[child + 1], heap[child]))
            child++;
        if (!is_worse(heap[child], moved))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

#define BLOCK 64

/* Places come in order, so of equal scores the first stay. Returns how many there are. */
static size_t find_best(const float *scores, const uint8_t *allowed, size_t n, Found *heap, size_t k)
{
    size_t kept = 0;
    float limit = 0;
    for (size_t first = 0; first < n; first += BLOCK) {
        size_t last = first + BLOCK < n ? first + BLOCK : n;
        int any = 0;
        if (allowed == NULL)
            for (size_t i = first; i < last; i++)
                any |= scores[i] > limit;
        else
            for (size_t i = first; i < last; i++)
                any |= (scores[i] > limit) & (allowed[i] != 0);
        if (!any)
            continue;
        for (size_t i = first; i < last; i++) {
            if (!(scores[i] > limit) || (allowed != NULL && !allowed[i]))
                continue;
            Found found = {scores[i], (uint32_t)i};
            if (kept < k) {
                heap[kept++] = found;
                if (kept < k)
                    continue;
                for (size_t at = k / 2; at-- > 0;)
                    sink(heap, k, at);
            } else {
                heap[0] = found;
                sink(heap, k, 0);
            }
            limit = heap[0].score;
        }
    }
    return kept;
}

/* The places of what was found, in order: one bit for each of n places, read from the first to the last,
 * which is faster than sorting. NULL and an error if there is no memory. */
static PyObject *in_order(const Found *found, size_t kept, size_t n)
{
    uint64_t *bits = calloc(n / 64 + 1, sizeof *bits);
    PyObject *places = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(8 * kept));
    if (bits == NULL && places != NULL) {
        Py_CLEAR(places);
        PyErr_NoMemory();
    }
    if (places != NULL) {
        int64_t *out = (int64_t *)PyByteArray_AsString(places);
        for (size_t i = 0; i < kept; i++)
            bits[found[i].place / 64] |= UINT64_C(1) << found[i].place % 64;
        for (size_t part = 0; part <= n / 64; part++)
            for (uint64_t left = bits[part]; left != 0; left &= left - 1)
                *out++ = (int64_t)(64 * part + lowest_bit(left));
    }
    free(bits);
    return places;
}

static PyObject *best(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer b[2] = {{0}}; /* scores, allowed */
    Py_ssize_t k;
    if (!PyArg_ParseTuple(arguments, "y*z*n", &b[0], &b[1], &k)) {
        release(b, 2);
        return NULL;
    }
    PyObject *places = NULL;
    Py_ssize_t n = b[0].len / 4;
    Found *heap = NULL;
    if (k < 1 || n > UINT32_MAX || (b[1].buf != NULL && b[1].len < n)) {
        PyErr_SetString(PyExc_ValueError, "k must be at least 1, and allowed as long as scores");
    } else if ((heap = malloc((size_t)(k < n ? k : n + 1) * sizeof *heap)) == NULL) {
        PyErr_NoMemory();
    } else {
        size_t kept;
        Py_BEGIN_ALLOW_THREADS
        kept = find_best(b[0].buf, b[1].buf, (size_t)n, heap, (size_t)(k < n ? k : n + 1));
        Py_END_ALLOW_THREADS
        places = in_order(heap, kept, (size_t)n);
    }
    free(heap);
    release(b, 2);
    return places;
}

/* 64 bits of a word in UTF-8; segments.py has the same in Python. */
static uint64_t digest(const char *bytes, size_t length)
{
    uint64_t hash = length * UINT64_C(0x9E3779B97F4A7C15);
    for (size_t i = 0; i < length; i += 8) {
        uint64_t part = 0;
        for (size_t j = 0; j < 8 && i + j < length; j++)
            part |= (uint64_t)(uint8_t)bytes[i + j] << (8 * j);
        hash ^= part;
        for (int round = 0; round < 2; round++) {
            hash ^= hash >> 32;
            hash *= UINT64_C(0xD6E8FEB86659FD93);
        }
        hash ^= hash >> 32;
    }
    return hash;
}

static PyObject *digests(PyObject *Py_UNUSED(module), PyObject *words)
{
    if (!PyList_Check(words)) {
        PyObject *kind = PyType_GetName(Py_TYPE(words));
        if (kind != NULL)
            PyErr_Format(PyExc_TypeError, "words must be a list, got %U", kind);
        Py_XDECREF(kind);
        return NULL;
    }
    Py_ssize_t n = PyList_Size(words);
    PyObject *made = PyByteArray_FromStringAndSize(NULL, 8 * n);
    for (Py_ssize_t i = 0; made != NULL && i < n; i++) {
        Py_ssize_t length;
        const char *bytes = PyUnicode_AsUTF8AndSize(PyList_GetItem(words, i), &length);
        if (bytes == NULL)
            Py_CLEAR(made);
        else
            ((uint64_t *)PyByteArray_AsString(made))[i] = digest(bytes, (size_t)length);
    }
    return made;
}

/* Words numbers[i] of documents rows[i], times[i] each, sorted by word: a counting sort, in which what
 * comes again is added up. `positions` has room for a number per word and one more. */
static size_t invert_all(const int64_t *numbers, const int64_t *rows, const int64_t *times, size_t n,
                         size_t n_words, int64_t *positions, int64_t *sorted, int64_t *last_word,
                         int64_t *last_at, int64_t *found_rows, uint8_t *found_times)
{
    for (size_t i = 0; i < n; i++)
        positions[numbers[i] + 1]++;
    for (size_t word = 0; word < n_words; word++)
        positions[word + 1] += positions[word];
    for (size_t i = 0; i < n; i++)
        sorted[positions[numbers[i]]++] = (int64_t)i; /* now where the word ends */
    size_t used = 0, at = 0;
    for (size_t word = 0; word < n_words; word++) {
        for (; at < (size_t)positions[word]; at++) {
            int64_t row = rows[sorted[at]], more = times[sorted[at]];
            if (last_word[row] == (int64_t)word + 1) {
                more += found_times[last_at[row]];
                found_times[last_at[row]] = (uint8_t)(more < 255 ? more : 255);
                continue;
            }
            last_word[row] = (int64_t)word + 1;
            last_at[row] = (int64_t)used;
            found_rows[used] = row;
            found_times[used++] = (uint8_t)(more < 255 ? more : 255);
        }
        positions[word] = (int64_t)used;
    }
    return used;
}

static int below(const int64_t *values, Py_ssize_t n, Py_ssize_t limit)
{
    for (Py_ssize_t i = 0; i < n; i++)
        if (values[i] < 0 || values[i] >= limit)
            return 0;
    return 1;
}

/* Tokens of texts → words of documents. The words of token t are words[starts[t]] and the sizes[t] - 1
 * after it; text i has n_tokens[i] tokens, is of document rows[i], and its words count times[i]. */
static PyObject *expand(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer b[7] = {{0}}; /* tokens, n_tokens, rows, times, starts, sizes, words */
    if (!PyArg_ParseTuple(arguments, "y*y*y*y*y*y*y*", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5],
                          &b[6])) {
        release(b, 7);
        return NULL;
    }
    const int32_t *tokens = b[0].buf;
    const int64_t *n_tokens = b[1].buf, *rows = b[2].buf, *times = b[3].buf;
    const int64_t *starts = b[4].buf, *sizes = b[5].buf, *words = b[6].buf;
    Py_ssize_t n = b[0].len / 4, n_texts = b[1].len / 8, n_known = b[4].len / 8, total = 0, sum = 0;
    int fits = b[2].len == b[1].len && b[3].len == b[1].len && b[5].len == b[4].len &&
               ranges_fit(starts, starts, n_known, b[6].len / 8);
    for (Py_ssize_t i = 0; fits && i < n_texts; i++)
        fits = n_tokens[i] >= 0 && (sum += n_tokens[i]) <= n;
    for (Py_ssize_t i = 0; fits && i < n; i++) {
        fits = tokens[i] >= 0 && tokens[i] < n_known && sizes[tokens[i]] >= 0 &&
               sizes[tokens[i]] <= b[6].len / 8 - starts[tokens[i]];
        total += fits ? sizes[tokens[i]] : 0;
    }
    PyObject *result = NULL;
    if (!fits || sum != n) {
        PyErr_SetString(PyExc_ValueError, "tokens and words do not fit together");
    } else if ((result = PyByteArray_FromStringAndSize(NULL, 3 * 8 * total)) != NULL) {
        int64_t *numbers = (int64_t *)PyByteArray_AsString(result);
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0, at = 0, token = 0; i < n_texts; i++)
            for (int64_t j = 0; j < n_tokens[i]; j++, token++)
                for (int64_t k = 0; k < sizes[tokens[token]]; k++, at++) {
                    numbers[at] = words[starts[tokens[token]] + k];
                    numbers[total + at] = rows[i];
                    numbers[2 * total + at] = times[i];
                }
        Py_END_ALLOW_THREADS
    }
    release(b, 7);
    return result;
}

static PyObject *invert(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer b[3] = {{0}}; /* numbers, rows, times */
    Py_ssize_t n_words, n_rows;
    if (!PyArg_ParseTuple(arguments, "y*y*y*nn", &b[0], &b[1], &b[2], &n_words, &n_rows)) {
        release(b, 3);
        return NULL;
    }
    Py_ssize_t n = b[0].len / 8;
    PyObject *result = NULL;
    if (n_words < 0 || n_rows < 0 || b[1].len != b[0].len || b[2].len != b[0].len ||
        !below(b[0].buf, n, n_words) || !below(b[1].buf, n, n_rows)) {
        PyErr_SetString(PyExc_ValueError, "words, rows and times do not fit together");
        release(b, 3);
        return NULL;
    }
    PyObject *ends = PyByteArray_FromStringAndSize(NULL, 8 * n_words);
    int64_t *positions = calloc((size_t)n_words + 1, sizeof *positions);
    int64_t *marks = calloc(2 * (size_t)n_rows + 1, sizeof *marks);
    int64_t *sorted = malloc(2 * (size_t)n * sizeof *sorted + 1);
    uint8_t *times = malloc((size_t)n + 1);
    if (ends != NULL && positions != NULL && marks != NULL && sorted != NULL && times != NULL) {
        size_t used;
        Py_BEGIN_ALLOW_THREADS
        used = invert_all(b[0].buf, b[1].buf, b[2].buf, (size_t)n, (size_t)n_words, positions, sorted,
                          marks, marks + n_rows, sorted + n, times);
        Py_END_ALLOW_THREADS
        memcpy(PyByteArray_AsString(ends), positions, 8 * (size_t)n_words);
        PyObject *rows = PyByteArray_FromStringAndSize((char *)(sorted + n), (Py_ssize_t)(8 * used));
        PyObject *counts = PyByteArray_FromStringAndSize((char *)times, (Py_ssize_t)used);
        if (rows != NULL && counts != NULL)
            result = PyTuple_Pack(3, ends, rows, counts);
        Py_XDECREF(rows);
        Py_XDECREF(counts);
    } else {
        PyErr_NoMemory();
    }
    free(positions);
    free(marks);
    free(sorted);
    free(times);
    Py_XDECREF(ends);
    release(b, 3);
    return result;
}

static PyMethodDef methods[] = {
    {"add_scores", add_scores, METH_VARARGS,
     "add_scores(places, counts, starts, ends, weights, norms, owners, owner, scores)"},
    {"count_owned", count_owned, METH_VARARGS,
     "count_owned(places, starts, ends, owners, owner) -> int64 postings of each word"},
    {"best", best, METH_VARARGS, "best(scores, allowed, k) -> int64 places in order"},
    {"expand", expand, METH_VARARGS,
     "expand(tokens, n_tokens, rows, times, starts, sizes, words) -> int64 (3, n): words, rows, times"},
    {"invert", invert, METH_VARARGS,
     "invert(numbers, rows, times, n_words, n_rows) -> int64 ends, int64 rows, uint8 counts"},
    {"digests", digests, METH_O, "digests(words) -> uint64"},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef module = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "boltzhash.search._postings",
    .m_doc = "An inverted index, posting by posting.",
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__postings(void) { return PyModuleDef_Init(&module); }
