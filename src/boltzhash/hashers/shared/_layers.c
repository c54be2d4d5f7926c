/* Linear layers on rows of numbers: the compiled twin of boltzhash.hashers.shared.inference.linear's SciPy lines.
 *
 * Each output is ((0 + x_0 w_0) + x_1 w_1) + ... + bias over the inputs that are not 0, in float64, in the
 * order of the columns, each product and each sum rounded on its own (the build forbids contraction). No
 * output waits for another row, so its bits do not depend on the batch, the threads, the width of the
 * vector unit or a BLAS. Weights are read as float32, which is exact and half the memory traffic. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* One binary for all x86-64 machines: the loop is compiled for each, and the loader takes the widest. */
#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && defined(__GNUC__) &&         \
    (!defined(__clang__) || __clang_major__ >= 14)
#define FOR_EACH_CPU __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EACH_CPU
#endif

/* out[o] = sum over i of inputs[i] * weight[columns[i], o]; four inputs go by in one pass over the outputs */
FOR_EACH_CPU
static void products(const double *restrict inputs, const int32_t *restrict columns, size_t count,
                     const float *restrict weight, size_t stride, size_t n_outputs,
                     double *restrict out)
{
    memset(out, 0, n_outputs * sizeof *out);
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        const double a = inputs[i], b = inputs[i + 1], c = inputs[i + 2], d = inputs[i + 3];
        const float *restrict wa = weight + (size_t)columns[i] * stride;
        const float *restrict wb = weight + (size_t)columns[i + 1] * stride;
        const float *restrict wc = weight + (size_t)columns[i + 2] * stride;
        const float *restrict wd = weight + (size_t)columns[i + 3] * stride;
        for (size_t o = 0; o < n_outputs; o++)
            out[o] = (((out[o] + a * (double)wa[o]) + b * (double)wb[o]) + c * (double)wc[o]) +
                     d * (double)wd[o];
    }
    for (; i < count; i++) {
        const float *restrict w = weight + (size_t)columns[i] * stride;
        for (size_t o = 0; o < n_outputs; o++)
            out[o] += inputs[i] * (double)w[o];
    }
}

typedef struct {
    const float *weight; /* n_inputs x n_outputs */
    const float *bias;
    size_t n_inputs, n_outputs;
    size_t stride; /* from one row of weights to the next */
    int rectified;
} Layer;

static void apply(const Layer *layer, const double *inputs, const int32_t *columns, size_t count,
                  double *out)
{
    products(inputs, columns, count, layer->weight, layer->stride, layer->n_outputs, out);
    for (size_t o = 0; o < layer->n_outputs; o++) {
        out[o] += (double)layer->bias[o];
        if (layer->rectified && out[o] < 0)
            out[o] = 0;
    }
}

/* Inputs that are 0 add nothing: after a rectified layer, more than half of them. */
static size_t compact(const double *row, size_t n_inputs, double *inputs, int32_t *columns)
{
    size_t count = 0;
    for (size_t i = 0; i < n_inputs; i++) {
        inputs[count] = row[i];
        columns[count] = (int32_t)i;
        count += row[i] != 0;
    }
    return count;
}

/* The Python functions. Arrays come as buffers: dtypes are the caller's to get right, sizes are checked. */

static int make_layer(Layer *layer, const Py_buffer *weight, const Py_buffer *bias, int rectified)
{
    size_t n_outputs = (size_t)bias->len / sizeof(float);
    size_t n_weights = (size_t)weight->len / sizeof(float);
    if (n_outputs == 0 || n_weights % n_outputs || n_weights / n_outputs > INT32_MAX) {
        PyErr_Format(PyExc_ValueError, "%zu weights do not fit %zu outputs", n_weights, n_outputs);
        return -1;
    }
    *layer = (Layer){weight->buf, bias->buf, n_weights / n_outputs, n_outputs, n_outputs, rectified};
    return 0;
}

/* Some columns of a larger matrix will do: what stands beside them is not copied for every row. */
static int get_columns(PyObject *array, Py_buffer *weight, size_t *stride)
{
    if (PyObject_GetBuffer(array, weight, PyBUF_STRIDED_RO) < 0)
        return -1;
    if (weight->ndim == 2 && weight->itemsize == sizeof(float) &&
        weight->strides[1] == sizeof(float) && weight->strides[0] >= 0 &&
        weight->strides[0] % (Py_ssize_t)sizeof(float) == 0) {
        *stride = (size_t)weight->strides[0] / sizeof(float);
        return 0;
    }
    PyBuffer_Release(weight);
    PyErr_SetString(PyExc_ValueError, "weights must be a matrix of floats whose rows are in one piece");
    return -1;
}

static int check_rows(const Layer *layer, const int32_t *columns, size_t n_values,
                      const int64_t *ends, size_t n_rows)
{
    if (ends[0] != 0 || (uint64_t)ends[n_rows] != n_values)
        return -1;
    for (size_t row = 0; row < n_rows; row++)
        if (ends[row] > ends[row + 1])
            return -1;
    for (size_t i = 0; i < n_values; i++)
        if (columns[i] < 0 || (size_t)columns[i] >= layer->n_inputs)
            return -1;
    return 0;
}

static int sparse_rows(const Py_buffer *values, const Py_buffer *columns, const Py_buffer *ends,
                       const Layer *layer, Py_buffer *out)
{
    size_t n_values = (size_t)values->len / sizeof(double);
    size_t n_rows = (size_t)ends->len / sizeof(int64_t) - 1;
    if (ends->len == 0 || (size_t)columns->len != n_values * sizeof(int32_t) ||
        (size_t)out->len != n_rows * layer->n_outputs * sizeof(double) ||
        check_rows(layer, columns->buf, n_values, ends->buf, n_rows) < 0) {
        PyErr_SetString(PyExc_ValueError, "the parts of a sparse matrix do not fit together");
        return -1;
    }
    const int64_t *end = ends->buf;
    Py_BEGIN_ALLOW_THREADS
    for (size_t row = 0; row < n_rows; row++)
        apply(layer, (const double *)values->buf + end[row], (const int32_t *)columns->buf + end[row],
              (size_t)(end[row + 1] - end[row]), (double *)out->buf + row * layer->n_outputs);
    Py_END_ALLOW_THREADS
    return 0;
}

static int dense_rows(const Py_buffer *rows, const Layer *layer, Py_buffer *out)
{
    size_t n_inputs = layer->n_inputs;
    size_t n_rows = (size_t)out->len / (layer->n_outputs * sizeof(double));
    if ((size_t)rows->len != n_rows * n_inputs * sizeof(double) ||
        (size_t)out->len != n_rows * layer->n_outputs * sizeof(double)) {
        PyErr_Format(PyExc_ValueError, "rows of %zu numbers expected for each row of %zu outputs",
                     n_inputs, layer->n_outputs);
        return -1;
    }
    double *inputs = malloc((n_inputs + 1) * sizeof *inputs); /* one more: compact writes ahead */
    int32_t *columns = malloc((n_inputs + 1) * sizeof *columns);
    int has_memory = inputs != NULL && columns != NULL;
    if (has_memory) {
        Py_BEGIN_ALLOW_THREADS
        for (size_t row = 0; row < n_rows; row++) {
            size_t count =
                compact((const double *)rows->buf + row * n_inputs, n_inputs, inputs, columns);
            apply(layer, inputs, columns, count, (double *)out->buf + row * layer->n_outputs);
        }
        Py_END_ALLOW_THREADS
    } else {
        PyErr_NoMemory();
    }
    free(inputs);
    free(columns);
    return has_memory ? 0 : -1;
}

static void release(Py_buffer *buffers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        PyBuffer_Release(&buffers[i]);
}

static PyObject *sparse_linear(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer b[6]; /* values, columns, ends, weight, bias, out */
    int rectified;
    if (!PyArg_ParseTuple(arguments, "y*y*y*y*y*w*p", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5],
                          &rectified))
        return NULL;
    Layer layer;
    int failed = make_layer(&layer, &b[3], &b[4], rectified) < 0 ||
                 sparse_rows(&b[0], &b[1], &b[2], &layer, &b[5]) < 0;
    release(b, 6);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *dense_linear(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer b[4]; /* rows, bias, out, weight */
    PyObject *weight;
    int rectified;
    size_t stride;
    if (!PyArg_ParseTuple(arguments, "y*Oy*w*p", &b[0], &weight, &b[1], &b[2], &rectified))
        return NULL;
    if (get_columns(weight, &b[3], &stride) < 0) {
        release(b, 3);
        return NULL;
    }
    Layer layer;
    int failed = make_layer(&layer, &b[3], &b[1], rectified) < 0;
    if (!failed && (size_t)b[3].shape[1] != layer.n_outputs) {
        PyErr_Format(PyExc_ValueError, "%zd columns of weights do not fit %zu outputs", b[3].shape[1],
                     layer.n_outputs);
        failed = 1;
    }
    layer.stride = stride;
    failed = failed || dense_rows(&b[0], &layer, &b[2]) < 0;
    release(b, 4);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"sparse_linear", sparse_linear, METH_VARARGS,
     "sparse_linear(values, columns, row ends, weight, bias, out, rectified)"},
    {"dense_linear", dense_linear, METH_VARARGS,
     "dense_linear(rows, weight, bias, out, rectified)"},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef module = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "boltzhash.hashers.shared._layers",
    .m_doc = "Linear layers on rows of numbers.",
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__layers(void) { return PyModuleDef_Init(&module); }
