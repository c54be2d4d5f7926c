/* What stands between blanks, numbered: the compiled twin of boltzhash.text.blanks.PythonTokens. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "_vocabulary.h"
#include "_texts.h"
#include "_spaces.h"

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

/* The number of the token from..to, a new one if it was not seen before. */
static inline int32_t number_of(Tokens *self, const char *from, const char *to)
{
    size_t length = (size_t)(to - from);
    if (grow((void **)&self->token, &self->token_room, length + WORD_BYTES, 1) < 0)
        return -1;
    memcpy(self->token, from, length);
    memset(self->token + length, 0, WORD_BYTES);
    uint32_t hash = hash_token(self->token, length);
    int32_t number = find(&self->table, self->token, length, hash)->number;
    if (number >= 0)
        return number;
    if (append(&self->table, self->token, length, hash) < 0)
        return -1;
    return (int32_t)self->table.n_words - 1;
}

static inline int number_text(Tokens *self, const Text *text, int is_ascii, Numbers *found)
{
    const char *at = text->bytes, *end = at + text->size;
    while (at < end) {
        const char *start = at;
        if (is_blank(next_character(&at, is_ascii)))
            continue;
        for (const char *next = at; at < end && !is_blank(next_character(&next, is_ascii));)
            at = next;
        int32_t number = number_of(self, start, at);
        if (number < 0 || grow((void **)&found->numbers, &found->room, found->n + 1,
                               sizeof *found->numbers) < 0)
            return -1;
        found->numbers[found->n++] = number;
    }
    return 0;
}

static int number_texts(Tokens *self, const Text *texts, Py_ssize_t n_texts, Numbers *found,
                        int64_t *sizes)
{
    for (Py_ssize_t i = 0; i < n_texts; i++) {
        size_t before = found->n;
        int failed = texts[i].is_ascii ? number_text(self, &texts[i], 1, found) /* a loop for each */
                                       : number_text(self, &texts[i], 0, found);
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
        if (word == NULL || PyList_SetItem(words, (Py_ssize_t)(i - first), word) < 0)
            Py_CLEAR(words);
    }
    return words;
}

static PyObject *number_list(Tokens *self, PyObject *list)
{
    Py_ssize_t n_texts = PyList_Size(list);
    size_t known = self->table.n_words;
    Numbers found = {0};
    PyObject *numbers = NULL, *fresh = NULL;
    PyObject *sizes = PyByteArray_FromStringAndSize(NULL, n_texts * (Py_ssize_t)sizeof(int64_t));
    Text *texts = sizes == NULL ? NULL : read_texts(list, n_texts);
    int failed = texts == NULL;
    if (!failed) {
        int64_t *each = (int64_t *)PyByteArray_AsString(sizes);
        Py_BEGIN_ALLOW_THREADS
        failed = number_texts(self, texts, n_texts, &found, each);
        Py_END_ALLOW_THREADS
        if (failed)
            PyErr_NoMemory();
        release_texts(texts, n_texts);
        free(texts);
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
        PyObject *kind = PyType_GetName(Py_TYPE(given));
        if (kind != NULL)
            PyErr_Format(PyExc_TypeError, "texts must be a list, got %U", kind);
        Py_XDECREF(kind);
        return NULL;
    }
    if (self->in_use) {
        PyErr_SetString(PyExc_RuntimeError, "the tokens are in use by another thread");
        return NULL;
    }
    self->in_use = 1;
    PyObject *result = number_list(self, given);
    self->in_use = 0;
    return result;
}

static PyObject *Tokens_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "", names))
        return NULL;
    Tokens *self = (Tokens *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
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
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    free(self->table.bytes);
    free(self->table.starts);
    free(self->table.slots);
    free(self->token);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
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
