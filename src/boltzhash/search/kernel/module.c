/* boltzhash.search._kernel: what Python calls. Arguments are checked by boltzhash/search/compiled.py;
 * here only what keeps memory safe is checked again. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

#define MAX_THREADS 256 /* whatever is asked for */

static const struct path *find_path(const char *name) {
    for (size_t i = 0; all_paths[i] != NULL; i++)
        if (strcmp(all_paths[i]->name, name) == 0 && all_paths[i]->runs_here()) return all_paths[i];
    PyErr_Format(PyExc_ValueError, "this machine has no path '%s'", name);
    return NULL;
}

/* The buffers of a search; releasing one that was never filled does nothing. */
struct buffers {
    Py_buffer codes, queries, allowed, rows, distances, tables;
};

static void release(struct buffers *buffers) {
    PyBuffer_Release(&buffers->codes);
    PyBuffer_Release(&buffers->queries);
    PyBuffer_Release(&buffers->allowed);
    PyBuffer_Release(&buffers->rows);
    PyBuffer_Release(&buffers->distances);
    PyBuffer_Release(&buffers->tables);
}

/* Fills a request from buffers; sets an exception and returns false if their sizes do not fit. */
static bool fill(struct request *request, struct buffers *buffers, PyObject *allowed,
                 Py_ssize_t n_bytes, Py_ssize_t threads, const char *path) {
    if (n_bytes < 1 || n_bytes > MAX_BYTES || buffers->codes.len % n_bytes != 0 ||
        buffers->queries.len % n_bytes != 0 || threads < 1) {
        PyErr_Format(PyExc_ValueError, "%zd bytes of codes and %zd of queries, %zd a code, %zd threads",
                     buffers->codes.len, buffers->queries.len, n_bytes, threads);
        return false;
    }
    if (allowed != Py_None) {
        if (PyObject_GetBuffer(allowed, &buffers->allowed, PyBUF_SIMPLE) != 0) return false;
        if (buffers->allowed.len != buffers->codes.len / n_bytes) {
            PyErr_Format(PyExc_ValueError, "%zd codes and a mask of %zd",
                         buffers->codes.len / n_bytes, buffers->allowed.len);
            return false;
        }
    }
    request->codes = (struct codes){.bytes = buffers->codes.buf,
                                    .n = (size_t)(buffers->codes.len / n_bytes),
                                    .n_bytes = (size_t)n_bytes,
                                    .allowed = buffers->allowed.buf};
    request->queries = buffers->queries.buf;
    request->n_queries = (size_t)(buffers->queries.len / n_bytes);
    request->threads = (size_t)(threads < MAX_THREADS ? threads : MAX_THREADS);
    request->path = find_path(path);
    return request->path != NULL;
}

/* Tables are one block of memory: entries by the first half and the second, then the starts of both. */
static size_t size_of_tables(size_t n, size_t bits) {
    return 2 * (n * sizeof(struct entry) + (((size_t)1 << bits) + 1) * sizeof(uint32_t));
}

static void place_tables(struct tables *tables, void *memory, size_t n) {
    tables->entries[0] = memory;
    tables->entries[1] = tables->entries[0] + n;
    tables->starts[0] = (uint32_t *)(tables->entries[1] + n);
    tables->starts[1] = tables->starts[0] + ((size_t)1 << tables->bits) + 1;
}

/* `tables` may be NULL. */
static struct answer *run(const struct request *request, const struct tables *tables) {
    bool good = false;
    struct answer *answers = PyMem_Calloc(request->n_queries + 1, sizeof *answers);
    if (answers != NULL) {
        Py_BEGIN_ALLOW_THREADS
        good = tables != NULL ? search_tables(request, tables, answers) : search(request, answers);
        Py_END_ALLOW_THREADS
    }
    if (good) return answers;
    PyMem_Free(answers);
    PyErr_NoMemory();
    return NULL;
}

static void free_answers(struct answer *answers, size_t n) {
    for (size_t i = 0; i < n; i++) free(answers[i].hits);
    PyMem_Free(answers);
}

static void write_hits(const struct answer *answer, int64_t *rows, int32_t *distances) {
    for (size_t i = 0; i < answer->n; i++) {
        rows[i] = (int64_t)HIT_ROW(answer->hits[i]);
        distances[i] = (int32_t)HIT_DISTANCE(answer->hits[i]);
    }
}

PyDoc_STRVAR(top_k_doc,
             "top_k(codes, queries, n_bytes, k, allowed, threads, path, rows, distances)\n\n"
             "Fills rows (int64) and distances (int32), k a query. There must be k codes allowed.");

static PyObject *py_top_k(PyObject *self, PyObject *args) {
    struct buffers b = {0};
    struct request request = {0};
    struct answer *answers = NULL;
    PyObject *allowed, *result = NULL;
    Py_ssize_t n_bytes, k, threads;
    const char *path;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*nnOnsw*w*", &b.codes, &b.queries, &n_bytes, &k, &allowed, &threads,
                          &path, &b.rows, &b.distances))
        return NULL;
    if (!fill(&request, &b, allowed, n_bytes, threads, path)) goto done;
    size_t n = request.n_queries;
    if (k < 1 || (size_t)k > request.codes.n || (size_t)b.rows.len != n * (size_t)k * sizeof(int64_t) ||
        (size_t)b.distances.len != n * (size_t)k * sizeof(int32_t)) {
        PyErr_Format(PyExc_ValueError, "arrays of %zd and %zd bytes do not hold %zd hits a query",
                     b.rows.len, b.distances.len, k);
        goto done;
    }
    request.k = (size_t)k;
    request.limit = (uint32_t)(8 * n_bytes + 1);
    answers = run(&request, NULL);
    if (answers == NULL) goto done;
    for (size_t i = 0; i < n; i++) {
        if (answers[i].n != (size_t)k) { /* another thread took rows off the mask meanwhile */
            PyErr_SetString(PyExc_RuntimeError, "allowed was changed while it was searched");
            goto done;
        }
        write_hits(&answers[i], (int64_t *)b.rows.buf + i * (size_t)k,
                   (int32_t *)b.distances.buf + i * (size_t)k);
    }
    result = Py_NewRef(Py_None);
done:
    if (answers != NULL) free_answers(answers, request.n_queries);
    release(&b);
    return result;
}

/* One answer as two bytearrays: rows (int64) and distances (int32). */
static PyObject *as_bytearrays(const struct answer *answer) {
    PyObject *rows = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(answer->n * sizeof(int64_t)));
    PyObject *distances = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(answer->n * sizeof(int32_t)));
    PyObject *pair = NULL;
    if (rows != NULL && distances != NULL) {
        write_hits(answer, (int64_t *)(void *)PyByteArray_AsString(rows),
                   (int32_t *)(void *)PyByteArray_AsString(distances));
        pair = PyTuple_Pack(2, rows, distances);
    }
    Py_XDECREF(rows);
    Py_XDECREF(distances);
    return pair;
}

PyDoc_STRVAR(within_doc,
             "within(codes, queries, n_bytes, radius, allowed, threads, path"
             "[, tables, bits, lookup_cost])\n\n"
             "A list with rows (int64) and distances (int32) of each query, as bytearrays. Tables are of\n"
             "the same codes and as many bits of a key; to look up a key or a code is taken to be as\n"
             "dear as a scan of lookup_cost codes.");

static PyObject *py_within(PyObject *self, PyObject *args) {
    struct buffers b = {0};
    struct request request = {0};
    struct answer *answers = NULL;
    PyObject *allowed, *result = NULL;
    Py_ssize_t n_bytes, radius, threads, bits = 0, lookup_cost = 0;
    struct tables tables = {0};
    const char *path;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*nnOns|y*nn", &b.codes, &b.queries, &n_bytes, &radius, &allowed,
                          &threads, &path, &b.tables, &bits, &lookup_cost))
        return NULL;
    if (!fill(&request, &b, allowed, n_bytes, threads, path)) goto done;
    if (b.tables.buf != NULL) {
        tables.bits = (size_t)bits;
        tables.lookup_cost = (size_t)lookup_cost;
        if (lookup_cost < 0 || !tables_fit(&request.codes, tables.bits) ||
            (size_t)b.tables.len != size_of_tables(request.codes.n, tables.bits)) {
            PyErr_Format(PyExc_ValueError, "%zd bytes are no tables of %zu codes and keys of %zd bits",
                         b.tables.len, request.codes.n, bits);
            goto done;
        }
        place_tables(&tables, b.tables.buf, request.codes.n);
    }
    if (radius < 0) {
        PyErr_Format(PyExc_ValueError, "a radius of %zd", radius);
        goto done;
    }
    request.k = SIZE_MAX;
    request.limit = (uint32_t)(radius < 8 * n_bytes ? radius + 1 : 8 * n_bytes + 1);
    answers = run(&request, b.tables.buf != NULL ? &tables : NULL);
    result = answers != NULL ? PyList_New((Py_ssize_t)request.n_queries) : NULL;
    for (size_t i = 0; result != NULL && i < request.n_queries; i++) {
        PyObject *pair = as_bytearrays(&answers[i]);
        free(answers[i].hits); /* the answer may be large: no two copies of all of it */
        answers[i].hits = NULL;
        if (pair == NULL || PyList_SetItem(result, (Py_ssize_t)i, pair) != 0) Py_CLEAR(result);
    }
done:
    if (answers != NULL) free_answers(answers, request.n_queries);
    release(&b);
    return result;
}

PyDoc_STRVAR(tables_doc,
             "tables(codes, n_bytes, bits, threads)\n\n"
             "The tables of codes that `within` takes, keys of so many bits, as bytes.");

static PyObject *py_tables(PyObject *self, PyObject *args) {
    struct buffers b = {0};
    PyObject *result = NULL;
    Py_ssize_t n_bytes, bits, threads;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*nnn", &b.codes, &n_bytes, &bits, &threads)) return NULL;
    struct codes codes = {.bytes = b.codes.buf, .n_bytes = (size_t)n_bytes};
    struct tables tables = {.bits = (size_t)bits};
    bool good = n_bytes >= 1 && n_bytes <= MAX_BYTES && b.codes.len % n_bytes == 0 && threads >= 1;
    if (good) codes.n = (size_t)(b.codes.len / n_bytes);
    if (!good || !tables_fit(&codes, tables.bits)) {
        PyErr_Format(PyExc_ValueError,
                     "no tables of %zd bytes of codes, %zd a code, keys of %zd bits, %zd threads",
                     b.codes.len, n_bytes, bits, threads);
        goto done;
    }
    result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size_of_tables(codes.n, tables.bits));
    if (result == NULL) goto done;
    place_tables(&tables, PyBytes_AsString(result), codes.n);
    Py_BEGIN_ALLOW_THREADS
    fill_tables(&codes, &tables, (size_t)threads);
    Py_END_ALLOW_THREADS
done:
    release(&b);
    return result;
}

PyDoc_STRVAR(read_doc, "read(buffer, threads)\n\nReads a buffer once and returns a checksum of it.");

static PyObject *py_read(PyObject *self, PyObject *args) {
    Py_buffer buffer = {0};
    Py_ssize_t threads;
    uint64_t sum;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*n", &buffer, &threads)) return NULL;
    Py_BEGIN_ALLOW_THREADS
    sum = read_all(buffer.buf, (size_t)buffer.len,
                   threads < 1 ? 1 : threads < MAX_THREADS ? (size_t)threads : MAX_THREADS);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&buffer);
    return PyLong_FromUnsignedLongLong(sum);
}

PyDoc_STRVAR(paths_doc, "paths()\n\nNames of the paths that run on this machine, the fastest first.");

static PyObject *py_paths(PyObject *self, PyObject *args) {
    PyObject *names = PyList_New(0);
    (void)self;
    (void)args;
    for (size_t i = 0; names != NULL && all_paths[i] != NULL; i++) {
        if (!all_paths[i]->runs_here()) continue;
        PyObject *name = PyUnicode_FromString(all_paths[i]->name);
        if (name == NULL || PyList_Append(names, name) != 0) Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

static PyMethodDef methods[] = {
    {"top_k", py_top_k, METH_VARARGS, top_k_doc},
    {"within", py_within, METH_VARARGS, within_doc},
    {"tables", py_tables, METH_VARARGS, tables_doc},
    {"read", py_read, METH_VARARGS, read_doc},
    {"paths", py_paths, METH_NOARGS, paths_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_kernel",
    .m_doc = "Exact search of packed codes by Hamming distance.",
    .m_size = 0,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModuleDef_Init(&definition); }
