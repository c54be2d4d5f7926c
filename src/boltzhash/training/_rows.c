/* Rows of sparse matrices: taking some, mixing pairs, transposing. */

#include "_rows.h"

#include <string.h>

/* Where a row of a matrix begins and ends; 0 if there is no such row. `matrix` are its words, amounts and ends. */
static int find_row(const Py_buffer *matrix, int64_t row, size_t *first, size_t *end)
{
    const int32_t *ends = matrix[2].buf;
    const int64_t n_rows = matrix[2].len / (Py_ssize_t)sizeof *ends - 1;
    if (row < 0 || row >= n_rows || ends[row] < 0 || ends[row] > ends[row + 1])
        return 0;
    *first = (size_t)ends[row];
    *end = (size_t)ends[row + 1];
    return *end <= floats(&matrix[1]) && matrix[0].len == matrix[1].len;
}

/* Some rows of a matrix, in the order in which they are asked for. */
PyObject *take_rows(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer b[7]; /* words, amounts, ends of all rows; which; words, amounts, ends of these */
    if (!PyArg_ParseTuple(arguments, "y*y*y*y*w*w*w*", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5], &b[6]))
        return NULL;
    const int64_t *rows = b[3].buf;
    const size_t n_taken = (size_t)b[3].len / sizeof *rows, room = floats(&b[5]);
    int32_t *own = b[6].buf;
    size_t place = 0;
    int fits = (size_t)b[6].len == (n_taken + 1) * sizeof *own && b[4].len == b[5].len;
    for (size_t i = 0, first, end; fits && i < n_taken; i++) {
        own[i] = (int32_t)place;
        fits = find_row(b, rows[i], &first, &end) && end - first <= room - place;
        if (!fits)
            break;
        memcpy((int32_t *)b[4].buf + place, (const int32_t *)b[0].buf + first, (end - first) * sizeof *own);
        memcpy((float *)b[5].buf + place, (const float *)b[1].buf + first, (end - first) * sizeof(float));
        place += end - first;
    }
    if (!fits || place != room)
        return refuse(b, 7, "rows and the room for them do not fit together");
    own[n_taken] = (int32_t)place;
    release(b, 7);
    Py_RETURN_NONE;
}

typedef struct {
    const int32_t *words;
    const float *amounts;
    size_t at, end;
} Row;

/* The words of two rows, which rise, and a part of each's amounts, added up; what is 0 is left out. Returns how
 * many there are. Whose word is next is not to be guessed, so nothing branches on it. */
static size_t mix(Row a, Row b, float of_a, float of_b, int32_t *words, float *amounts)
{
    size_t n = 0;
    while (a.at < a.end && b.at < b.end) {
        const int32_t next_a = a.words[a.at], next_b = b.words[b.at];
        const int has_a = next_a <= next_b, has_b = next_b <= next_a;
        words[n] = has_a ? next_a : next_b;
        amounts[n] = of_a * a.amounts[a.at] * (float)has_a + of_b * b.amounts[b.at] * (float)has_b;
        a.at += (size_t)has_a;
        b.at += (size_t)has_b;
        n += amounts[n] != 0;
    }
    const Row left = a.at < a.end ? a : b;
    const float of_left = a.at < a.end ? of_a : of_b;
    for (size_t i = left.at; i < left.end; i++) {
        words[n] = left.words[i];
        amounts[n] = of_left * left.amounts[i];
        n += amounts[n] != 0;
    }
    return n;
}

/* Some rows of a matrix, each mixed with another. */
PyObject *mix_rows(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer b[8]; /* words, amounts, ends of all rows; which; with which; words, amounts, ends of the mixed */
    float share;
    if (!PyArg_ParseTuple(arguments, "y*y*y*y*y*fw*w*w*", &b[0], &b[1], &b[2], &b[3], &b[4], &share, &b[5], &b[6],
                          &b[7]))
        return NULL;
    const int64_t *rows = b[3].buf, *others = b[4].buf;
    const size_t n_rows = (size_t)b[3].len / sizeof *rows, room = floats(&b[6]);
    int32_t *words = b[5].buf, *ends = b[7].buf;
    float *amounts = b[6].buf;
    size_t place = 0;
    int fits = b[3].len == b[4].len && (size_t)b[7].len == (n_rows + 1) * sizeof *ends && b[5].len == b[6].len;
    Row one = {b[0].buf, b[1].buf, 0, 0}, other = one;
    for (size_t i = 0; fits && i < n_rows; i++) {
        ends[i] = (int32_t)place;
        fits = find_row(b, rows[i], &one.at, &one.end) && find_row(b, others[i], &other.at, &other.end) &&
               one.end - one.at + other.end - other.at <= room - place;
        if (fits)
            place += mix(one, other, 1 - share, share, words + place, amounts + place);
    }
    if (!fits)
        return refuse(b, 8, "rows, those that they are mixed with and the room for them do not fit together");
    ends[n_rows] = (int32_t)place;
    release(b, 8);
    Py_RETURN_NONE;
}

/* Rows of words turned into words of rows: for each word, the rows that have it, in order. */
PyObject *by_word(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer b[6]; /* words, amounts, ends of the rows; rows, amounts, ends of the words */
    if (!PyArg_ParseTuple(arguments, "y*y*y*w*w*w*", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5]))
        return NULL;
    size_t n_words = (size_t)b[5].len / sizeof(int32_t) - 1;
    if (b[5].len < (Py_ssize_t)sizeof(int32_t) || b[3].len != b[0].len || b[4].len != b[0].len ||
        !fit_together(&b[0], &b[1], &b[2], n_words))
        return refuse(b, 6, "rows and the room for words do not fit together");
    const int32_t *words = b[0].buf, *ends = b[2].buf;
    const float *amounts = b[1].buf;
    int32_t *rows = b[3].buf, *next = b[5].buf;
    float *of_rows = b[4].buf;
    size_t n_rows = (size_t)b[2].len / sizeof(int32_t) - 1;
    memset(next, 0, (n_words + 1) * sizeof *next);
    for (int32_t i = 0; i < ends[n_rows]; i++)
        next[words[i]]++;
    for (int32_t word = 0, before = 0; (size_t)word <= n_words; word++) {
        int32_t count = next[word];
        next[word] = before;
        before += count;
    }
    for (size_t row = 0; row < n_rows; row++)
        for (int32_t i = ends[row]; i < ends[row + 1]; i++) {
            int32_t place = next[words[i]]++;
            rows[place] = (int32_t)row;
            of_rows[place] = amounts[i];
        }
    memmove(next + 1, next, n_words * sizeof *next); /* each was moved to where the word after it begins */
    next[0] = 0;
    release(b, 6);
    Py_RETURN_NONE;
}
