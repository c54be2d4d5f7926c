/* Word counts of texts: the compiled twin of boltzhash.text.counting.PythonCounter.
 *
 * A text is ASCII of any case, or already normalised and casefolded by Python. What a character is comes
 * from a table that Python makes from the tokenizer's own regular expression, so the two cannot differ. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "_vocabulary.h"
#include "_texts.h"

enum { SEPARATOR = 0, WORD = 1, UNSPACED = 2 };

#define CODE_POINTS 0x110000

/* Counting: one pass over the characters of a text, the counts of its words in a dense row that is
 * cleared again, one bit per word to find them in order without sorting. */

typedef struct {
    Table *table;
    const uint8_t *classes; /* of all code points; of ASCII if no text needs more */
    int growing;
    char *token; /* in UTF-8, with zeros after */
    size_t token_room;
    uint32_t *row; /* count of word i in this text */
    uint64_t *present;
    size_t row_room, present_room;
    int32_t *numbers; /* results, all texts one after the other */
    double *counts;
    size_t n_results, numbers_room, counts_room;
} Work;

static uint8_t ascii_classes[128];

static int room_for_words(Work *work, size_t n_words)
{
    size_t row = work->row_room, present = work->present_room;
    if (grow((void **)&work->row, &work->row_room, n_words, sizeof *work->row) < 0 ||
        grow((void **)&work->present, &work->present_room, n_words / 64 + 1,
             sizeof *work->present) < 0)
        return -1;
    memset(work->row + row, 0, (work->row_room - row) * sizeof *work->row);
    memset(work->present + present, 0, (work->present_room - present) * sizeof *work->present);
    return 0;
}

static int count_token(Work *work, size_t length)
{
    Table *table = work->table;
    memset(work->token + length, 0, WORD_BYTES);
    uint32_t hash = hash_token(work->token, length);
    int32_t number = find(table, work->token, length, hash)->number;
    if (number < 0) {
        if (!work->growing)
            return 0;
        number = (int32_t)table->n_words;
        if (append(table, work->token, length, hash) < 0 ||
            room_for_words(work, table->n_words) < 0)
            return -1;
    }
    work->row[number]++;
    work->present[number / 64] |= UINT64_C(1) << (number % 64);
    return 0;
}

static inline int count_characters(Work *work, const char *from, const char *to, int is_ascii)
{
    size_t length = (size_t)(to - from);
    if (!work->growing && length > work->table->longest)
        return 0; /* longer than all known words */
    if (grow((void **)&work->token, &work->token_room, length + WORD_BYTES, 1) < 0)
        return -1;
    char *restrict token = work->token;
    for (size_t i = 0; i < length; i++) /* 0x20 makes capitals small; small letters and digits have it */
        token[i] = (char)(is_ascii ? from[i] | 0x20 : from[i]);
    return count_token(work, length);
}

/* Words of two or more characters; in scripts without spaces, overlapping pairs. */
static inline int scan(Work *work, const Text *text, int is_ascii)
{
    const uint8_t *classes = work->classes;
    const char *at = text->bytes, *end = at + text->size;
    while (at < end) {
        const char *start = at, *next;
        int class = classes[next_character(&at, is_ascii)];
        if (class == SEPARATOR)
            continue;
        const char *second = at;
        while (next = at, at < end && classes[next_character(&next, is_ascii)] == class)
            at = next;
        if (class == WORD || at == second) {
            if ((class == UNSPACED || at > second) && count_characters(work, start, at, is_ascii) < 0)
                return -1;
            continue;
        }
        for (const char *middle = second; middle < at; start = middle, middle = next) {
            next = middle;
            next_character(&next, is_ascii);
            if (count_characters(work, start, next, is_ascii) < 0)
                return -1;
        }
    }
    return 0;
}

static int lowest_bit(uint64_t bits)
{
#if defined(__GNUC__)
    return __builtin_ctzll(bits);
#else
    int at = 0;
    while (!(bits >> at & 1))
        at++;
    return at;
#endif
}

/* Move the counts of one text to the results, in the order of the words' numbers. */
static int collect(Work *work)
{
    size_t n_parts = work->table->n_words / 64 + 1;
    for (size_t part = 0; part < n_parts; part++) {
        if (work->present[part] == 0)
            continue;
        if (grow((void **)&work->numbers, &work->numbers_room, work->n_results + 64,
                 sizeof *work->numbers) < 0 ||
            grow((void **)&work->counts, &work->counts_room, work->n_results + 64,
                 sizeof *work->counts) < 0)
            return -1;
        for (uint64_t bits = work->present[part]; bits != 0; bits &= bits - 1) {
            size_t number = 64 * part + (size_t)lowest_bit(bits);
            work->numbers[work->n_results] = (int32_t)number;
            work->counts[work->n_results++] = work->row[number];
            work->row[number] = 0;
        }
        work->present[part] = 0;
    }
    return 0;
}

static int count_texts(Work *work, const Text *texts, Py_ssize_t n_texts, int64_t *ends)
{
    if (room_for_words(work, work->table->n_words + 1) < 0)
        return -1;
    for (Py_ssize_t i = 0; i < n_texts; i++) {
        /* a constant each time, for a loop compiled for each */
        int failed = texts[i].is_ascii ? scan(work, &texts[i], 1) : scan(work, &texts[i], 0);
        if (failed || collect(work) < 0)
            return -1;
        ends[i + 1] = (int64_t)work->n_results;
    }
    return 0;
}

/* The Python type. */

typedef struct {
    PyObject_HEAD
    Table table;
    int n_readers; /* threads that count without the lock; the table must not grow under them */
} Vocabulary;

static void Vocabulary_dealloc(Vocabulary *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    free(self->table.bytes);
    free(self->table.starts);
    free(self->table.slots);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static int append_word(Table *table, PyObject *word)
{
    PyObject *encoded = encode(word);
    if (encoded == NULL)
        return -1;
    size_t length = (size_t)PyBytes_Size(encoded);
    char *padded = calloc(length + WORD_BYTES, 1);
    int failed = -1;
    if (padded != NULL) {
        memcpy(padded, PyBytes_AsString(encoded), length);
        failed = append(table, padded, length, hash_token(padded, length));
        free(padded);
    }
    Py_DECREF(encoded);
    if (failed)
        PyErr_NoMemory();
    return failed;
}

static PyObject *Vocabulary_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"words", NULL};
    PyObject *words;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O!", names, &PyList_Type, &words))
        return NULL;
    Vocabulary *self = (Vocabulary *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
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
    for (Py_ssize_t i = 0; i < PyList_Size(words); i++) {
        PyObject *word = PyList_GetItem(words, i);
        if (!PyUnicode_Check(word))
            set_kind_error("word", i, word);
        if (!PyUnicode_Check(word) || append_word(table, word) < 0) {
            Py_DECREF(self);
            return NULL;
        }
    }
    return (PyObject *)self;
}

static PyObject *Vocabulary_words(Vocabulary *self, PyObject *Py_UNUSED(ignored))
{
    const Table *table = &self->table;
    PyObject *words = PyList_New((Py_ssize_t)table->n_words);
    for (size_t i = 0; words != NULL && i < table->n_words; i++) {
        Py_ssize_t length = (Py_ssize_t)(table->starts[i + 1] - table->starts[i]);
        PyObject *word =
            PyUnicode_DecodeUTF8(table->bytes + table->starts[i], length, "surrogatepass");
        if (word == NULL || PyList_SetItem(words, (Py_ssize_t)i, word) < 0)
            Py_CLEAR(words);
    }
    return words;
}

static int check_classes(const Text *texts, Py_ssize_t n_texts, int has_classes)
{
    for (Py_ssize_t i = 0; i < n_texts; i++) {
        if (has_classes || texts[i].is_ascii)
            continue;
        PyErr_Format(PyExc_ValueError, "text %zd is not ASCII: classes are needed", i);
        return -1;
    }
    return 0;
}

static PyObject *as_results(const Work *work, const int64_t *ends, Py_ssize_t n_texts)
{
    PyObject *counts = PyByteArray_FromStringAndSize(
        (char *)work->counts, (Py_ssize_t)(work->n_results * sizeof *work->counts));
    PyObject *numbers = PyByteArray_FromStringAndSize(
        (char *)work->numbers, (Py_ssize_t)(work->n_results * sizeof *work->numbers));
    PyObject *rows = PyByteArray_FromStringAndSize((const char *)ends,
                                                   (n_texts + 1) * (Py_ssize_t)sizeof *ends);
    if (counts != NULL && numbers != NULL && rows != NULL)
        return Py_BuildValue("NNN", counts, numbers, rows);
    Py_XDECREF(counts);
    Py_XDECREF(numbers);
    Py_XDECREF(rows);
    return NULL;
}

static PyObject *count_list(Vocabulary *self, PyObject *list, const uint8_t *classes, int growing)
{
    if (growing && self->n_readers > 0) {
        PyErr_SetString(PyExc_RuntimeError, "the vocabulary is in use by another thread");
        return NULL;
    }
    Py_ssize_t n_texts = PyList_Size(list);
    Text *texts = read_texts(list, n_texts);
    if (texts == NULL)
        return NULL;
    int64_t *ends = calloc((size_t)n_texts + 1, sizeof *ends);
    Work work = {
        .table = &self->table,
        .classes = classes != NULL ? classes : ascii_classes,
        .growing = growing,
    };
    PyObject *results = NULL;
    if (ends == NULL) {
        PyErr_NoMemory();
    } else if (check_classes(texts, n_texts, classes != NULL) == 0) {
        int failed;
        if (growing) { /* changes the table, so the lock stays */
            failed = count_texts(&work, texts, n_texts, ends);
        } else {
            self->n_readers++;
            Py_BEGIN_ALLOW_THREADS
            failed = count_texts(&work, texts, n_texts, ends);
            Py_END_ALLOW_THREADS
            self->n_readers--;
        }
        results = failed ? PyErr_NoMemory() : as_results(&work, ends, n_texts);
    }
    release_texts(texts, n_texts);
    free(texts);
    free(ends);
    free(work.token);
    free(work.row);
    free(work.present);
    free(work.numbers);
    free(work.counts);
    return results;
}

static PyObject *Vocabulary_count(Vocabulary *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"texts", "classes", "grow", NULL};
    PyObject *given;
    Py_buffer classes;
    int growing = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O!z*|p", names, &PyList_Type, &given,
                                     &classes, &growing))
        return NULL;
    PyObject *results = NULL;
    if (classes.buf != NULL && classes.len != CODE_POINTS) {
        PyErr_Format(PyExc_ValueError, "classes must have %d bytes, got %zd", CODE_POINTS,
                     classes.len);
    } else {
        results = count_list(self, given, classes.buf, growing);
    }
    PyBuffer_Release(&classes);
    return results;
}

static PyMethodDef Vocabulary_methods[] = {
    {"count", (PyCFunction)(void (*)(void))Vocabulary_count, METH_VARARGS | METH_KEYWORDS,
     "count(texts, classes, grow=False) -> (float64 counts, int32 numbers, int64 row ends)"},
    {"words", (PyCFunction)Vocabulary_words, METH_NOARGS, "words() -> the words by number"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot Vocabulary_slots[] = {
    {Py_tp_doc, "Words, and how often they stand in texts."},
    {Py_tp_new, Vocabulary_new},
    {Py_tp_dealloc, Vocabulary_dealloc},
    {Py_tp_methods, Vocabulary_methods},
    {0, NULL},
};

static PyType_Spec Vocabulary_spec = {
    .name = "boltzhash.text._tokens.Vocabulary",
    .basicsize = sizeof(Vocabulary),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = Vocabulary_slots,
};

static int execute(PyObject *module)
{
    for (int c = 0; c < 128; c++)
        ascii_classes[c] = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')
                               ? WORD
                               : SEPARATOR;
    PyObject *type = PyType_FromSpec(&Vocabulary_spec);
    if (type == NULL)
        return -1;
    int failed = PyModule_AddObjectRef(module, "Vocabulary", type);
    Py_DECREF(type);
    return failed;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static PyModuleDef module = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "boltzhash.text._tokens",
    .m_doc = "Word counts of texts.",
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__tokens(void) { return PyModuleDef_Init(&module); }
