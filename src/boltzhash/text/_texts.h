/* Texts as UTF-8, which is all that Python's stable ABI shows of the inside of a string. */

#include <stdint.h>

typedef struct {
    PyObject *encoded; /* holds the bytes */
    const char *bytes;
    Py_ssize_t size;
    int is_ascii;
} Text;

static void set_kind_error(const char *what, Py_ssize_t number, PyObject *given)
{
    PyObject *kind = PyType_GetName(Py_TYPE(given));
    if (kind != NULL)
        PyErr_Format(PyExc_TypeError, "%s %zd must be a string, got %U", what, number, kind);
    Py_XDECREF(kind);
}

/* Halves of surrogate pairs pass as well: Python's strings can hold them. */
static PyObject *encode(PyObject *string)
{
    return PyUnicode_AsEncodedString(string, "utf-8", "surrogatepass");
}

static void release_texts(Text *texts, Py_ssize_t n_texts)
{
    for (Py_ssize_t i = 0; i < n_texts; i++)
        Py_CLEAR(texts[i].encoded);
}

/* The strings of a list, held so that they can be read without Python's lock; NULL and an error if one
 * is none. To be released, then freed. */
static inline Text *read_texts(PyObject *list, Py_ssize_t n_texts)
{
    Text *texts = calloc((size_t)n_texts + 1, sizeof *texts);
    if (texts == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n_texts; i++) {
        PyObject *string = PyList_GetItem(list, i); /* an error if another thread made it shorter */
        if (string != NULL && !PyUnicode_Check(string))
            set_kind_error("text", i, string);
        else if (string != NULL)
            texts[i].encoded = encode(string);
        if (texts[i].encoded == NULL) {
            release_texts(texts, i);
            free(texts);
            return NULL;
        }
        texts[i].bytes = PyBytes_AsString(texts[i].encoded);
        texts[i].size = PyBytes_Size(texts[i].encoded);
        texts[i].is_ascii = texts[i].size == PyUnicode_GetLength(string);
    }
    return texts;
}

/* The character at *at, which moves behind it. */
static inline uint32_t next_character(const char **at, int is_ascii)
{
    const uint8_t *b = (const uint8_t *)*at;
    if (is_ascii || b[0] < 0x80) {
        *at += 1;
        return b[0];
    }
    if (b[0] < 0xE0) {
        *at += 2;
        return (uint32_t)(b[0] & 0x1F) << 6 | (b[1] & 0x3F);
    }
    if (b[0] < 0xF0) {
        *at += 3;
        return (uint32_t)(b[0] & 0x0F) << 12 | (uint32_t)(b[1] & 0x3F) << 6 | (b[2] & 0x3F);
    }
    *at += 4;
    return (uint32_t)(b[0] & 0x07) << 18 | (uint32_t)(b[1] & 0x3F) << 12 |
           (uint32_t)(b[2] & 0x3F) << 6 | (b[3] & 0x3F);
}
