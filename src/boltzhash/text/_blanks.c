/* What stands between blanks, numbered: the compiled twin of boltzhash.text.blanks.PythonTokens. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "_vocabulary.h"

typedef struct {
    PyObject_HEAD
    Table table;
    char *token; /* in UTF-8, with zeros after */
    size_t token_room;
    int in_use; /* without Python's lock */
} Tokens;

typedef struct {
    int32_t *numbers; /* of the tokens of all texts, one after the other */
    size_t n, room;
} Numbers;

static inline size_t write_utf8(char *to, Py_UCS4 c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (char)(0xC0 | c >> 6);
        to[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        to[0] = (char)(0xE0 | c >> 12);
        to[1] = (char)(0x80 | (c >> 6 & 0x3F));
        to[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    to[0] = (char)(0xF0 | c >> 18);
    to[1] = (char)(0x80 | (c >> 12 & 0x3F));
    to[2] = (char)(0x80 | (c >> 6 & 0x3F));
    to[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}

enum { ASCII = 0 };

static inline Py_UCS4 character(int kind, const void *data, Py_ssize_t i)
{
    return PyUnicode_READ(kind == ASCII ? 1 : kind, data, i);
}

/* The number of the token from..to, a new one if it was not seen before. */
static inline int32_t number_of(Tokens *self, int kind, const void *data, Py_ssize_t from,
                                Py_ssize_t to)
{
    size_t length = 0, n = (size_t)(to - from);
    if (grow((void **)&self->token, &self->token_room, 4 * n + WORD_BYTES, 1) < 0)
        return -1;
    if (kind == ASCII) {
        memcpy(self->token, (const char *)data + from, n);
        length = n;
    } else {
        for (Py_ssize_t i = from; i < to; i++)
            length += write_utf8(self->token + length, character(kind, data, i));
    }
    memset(self->token + length, 0, WORD_BYTES);
    uint32_t hash = hash_token(self->token, length);
    int32_t number = find(&self->table, self->token, length, hash)->number;
    if (number >= 0)
        return number;
    if (append(&self->table, self->token, length, hash) < 0)
        return -1;
    return (int32_t)self->table.n_words - 1;
}

static inline int is_blank(int kind, Py_UCS4 c)
{
    return kind == ASCII ? c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F)
                         : Py_UNICODE_ISSPACE(c);
}

static inline int number_text(Tokens *self, int kind, const void *data, Py_ssize_t n,
                              Numbers *found)
{
    for (Py_ssize_t i = 0; i < n;) {
        while (i < n && is_blank(kind, character(kind, data, i)))
            i++;
        Py_ssize_t start = i;
        while (i < n && !is_blank(kind, character(kind, data, i)))
            i++;
        if (i == start)
            break;
        int32_t number = number_of(self, kind, data, start, i);
        if (number < 0 || grow((void **)&found->numbers, &found->room, found->n + 1,
                               sizeof *found->numbers) < 0)
            return -1;
        found->numbers[found->n++] = number;
    }
    return 0;
}

static int check_texts(PyObject *texts)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(texts); i++) {
        PyObject *text = PyTuple_GET_ITEM(texts, i);
        if (!PyUnicode_Check(text)) {
            PyErr_Format(PyExc_TypeError, "text %zd must be a string, got %s", i,
                         Py_TYPE(text)->tp_name);
            return -1;
        }
#if PY_VERSION_HEX < 0x030C0000
        if (PyUnicode_READY(text) < 0)
            return -1;
#endif
    }
    return 0;
}

/* Without Python's lock: strings do not change, and the tuple holds them. */
static int number_texts(Tokens *self, PyObject *texts, Numbers *found, int64_t *sizes)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(texts); i++) {
        PyObject *text = PyTuple_GET_ITEM(texts, i);
        size_t before = found->n;
        int kind = PyUnicode_IS_ASCII(text) ? ASCII : (int)PyUnicode_KIND(text);
        const void *data = PyUnicode_DATA(text);
        Py_ssize_t n = PyUnicode_GET_LENGTH(text);
        int failed = kind == ASCII ? number_text(self, ASCII, data, n, found) /* a loop for each */
                     : kind == 1   ? number_text(self, 1, data, n, found)
                     : kind == 2   ? number_text(self, 2, data, n, found)
                                   : number_text(self, 4, data, n, found);
        if (failed)
            return -1;
        sizes[i] = (int64_t)(found->n - before);
    }
    return 0;
}

static PyObject *words_from(const Table *table, size_t first)
{
    PyObject *words = PyList_New((Py_ssize_t)(table->n_words - first));
    for (size_t i = first; words != NULL && i < table->n_words; i++) {
        Py_ssize_t length = (Py_ssize_t)(table->starts[i + 1] - table->starts[i]);
        PyObject *word =
            PyUnicode_DecodeUTF8(table->bytes + table->starts[i], length, "surrogatepass");
        if (word == NULL)
            Py_CLEAR(words);
        else
            PyList_SET_ITEM(words, (Py_ssize_t)(i - first), word);
    }
    return words;
}

static PyObject *number_tuple(Tokens *self, PyObject *texts)
{
    Py_ssize_t n_texts = PyTuple_GET_SIZE(texts);
    size_t known = self->table.n_words;
    Numbers found = {0};
    PyObject *numbers = NULL, *fresh = NULL;
    PyObject *sizes = PyByteArray_FromStringAndSize(NULL, n_texts * (Py_ssize_t)sizeof(int64_t));
    int failed = sizes == NULL || check_texts(texts) < 0;
    if (!failed) {
        int64_t *each = (int64_t *)PyByteArray_AS_STRING(sizes);
        Py_BEGIN_ALLOW_THREADS
        failed = number_texts(self, texts, &found, each);
        Py_END_ALLOW_THREADS
        if (failed)
            PyErr_NoMemory();
    }
    if (!failed) {
        numbers = PyByteArray_FromStringAndSize(
            (char *)found.numbers, (Py_ssize_t)(found.n * sizeof *found.numbers));
        fresh = words_from(&self->table, known);
    }
    free(found.numbers);
    if (numbers != NULL && fresh != NULL)
        return Py_BuildValue("NNN", numbers, sizes, fresh);
    Py_XDECREF(numbers);
    Py_XDECREF(sizes);
    Py_XDECREF(fresh);
    return NULL;
}

static PyObject *Tokens_numbers(Tokens *self, PyObject *given)
{
    if (!PyList_Check(given)) {
        PyErr_Format(PyExc_TypeError, "texts must be a list, got %s", Py_TYPE(given)->tp_name);
        return NULL;
    }
    if (self->in_use) {
        PyErr_SetString(PyExc_RuntimeError, "the tokens are in use by another thread");
        return NULL;
    }
    PyObject *texts = PyList_AsTuple(given); /* the list may change while we work */
    if (texts == NULL)
        return NULL;
    self->in_use = 1;
    PyObject *result = number_tuple(self, texts);
    self->in_use = 0;
    Py_DECREF(texts);
    return result;
}

static PyObject *Tokens_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "", names))
        return NULL;
    Tokens *self = (Tokens *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    Table *table = &self->table;
    if (resize_slots(table, 64) < 0 ||
        grow((void **)&table->starts, &table->words_room, 1, sizeof *table->starts) < 0 ||
        grow((void **)&table->bytes, &table->bytes_room, 1, 1) < 0) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    table->starts[0] = 0;
    return (PyObject *)self;
}

static void Tokens_dealloc(Tokens *self)
{
    PyTypeObject *type = Py_TYPE(self);
    free(self->table.bytes);
    free(self->table.starts);
    free(self->table.slots);
    free(self->token);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef Tokens_methods[] = {
    {"numbers", (PyCFunction)Tokens_numbers, METH_O,
     "numbers(texts) -> (int32 numbers, int64 tokens of each text, tokens that are new)"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot Tokens_slots[] = {
    {Py_tp_doc, "What stands between blanks, numbered as it comes."},
    {Py_tp_new, Tokens_new},
    {Py_tp_dealloc, Tokens_dealloc},
    {Py_tp_methods, Tokens_methods},
    {0, NULL},
};

static PyType_Spec Tokens_spec = {
    .name = "boltzhash.text._blanks.Tokens",
    .basicsize = sizeof(Tokens),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = Tokens_slots,
};

static int execute(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&Tokens_spec);
    if (type == NULL)
        return -1;
    int failed = PyModule_AddObjectRef(module, "Tokens", type);
    Py_DECREF(type);
    return failed;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static PyModuleDef module = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "boltzhash.text._blanks",
    .m_doc = "What stands between blanks, numbered.",
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__blanks(void) { return PyModuleDef_Init(&module); }
