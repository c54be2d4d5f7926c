#ifndef BOLTZHASH_BUFFERS_H
#define BOLTZHASH_BUFFERS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

/* Arrays come as buffers: dtypes are the caller's to get right, sizes are checked. */

static inline void release(Py_buffer *buffers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        PyBuffer_Release(&buffers[i]);
}

static inline PyObject *refuse(Py_buffer *buffers, size_t count, const char *why)
{
    release(buffers, count);
    PyErr_SetString(PyExc_ValueError, why);
    return NULL;
}

static inline size_t floats(const Py_buffer *buffer) { return (size_t)buffer->len / sizeof(float); }

/* Whether ends rise from 0 to the number of values, and all indices are below n. */
static inline int fit_together(const Py_buffer *indices, const Py_buffer *values, const Py_buffer *ends, size_t n)
{
    if (indices->len != values->len || ends->len < (Py_ssize_t)sizeof(int32_t))
        return 0;
    const int32_t *end = ends->buf, *index = indices->buf;
    size_t n_rows = (size_t)ends->len / sizeof(int32_t) - 1, n_values = floats(values);
    if (end[0] != 0 || (size_t)end[n_rows] != n_values)
        return 0;
    for (size_t row = 0; row < n_rows; row++)
        if (end[row] > end[row + 1])
            return 0;
    for (size_t i = 0; i < n_values; i++)
        if (index[i] < 0 || (size_t)index[i] >= n)
            return 0;
    return 1;
}

#endif
