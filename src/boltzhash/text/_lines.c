/* The line of a text with most of the words that are sought, and where in it they stand: the compiled
 * twin of boltzhash.search.snippet.PythonLines.
 *
 * What the words of a token are says Python, once: tokens come back, and their words are remembered. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "_vocabulary.h"
#include "_texts.h"
#include "_spaces.h"

#define MOST_KNOWN 200000 /* tokens, or words, before all are forgotten */
#define LONGEST_KNOWN 64  /* bytes of a token */
#define MOST_WORDS 32     /* of a token: a sentence of a script without spaces has more, and is new */

/* A token that is known: its hash, and where its record begins, plus one; 0: free. A record is the number
 * of bytes and of words, the numbers of the words, and the bytes, filled up with zeros: all that is read
 * for a token lies together. */
typedef struct {
    uint32_t hash, record;
} Known;

typedef struct {
    PyObject_HEAD
    PyObject *cut; /* a token into the list of its words */
    Table words;
    Known *known;
    size_t n_slots, n_known; /* a power of two, at most half of it taken */
    uint32_t *records;
    size_t n_records, records_room;
    int n_inside; /* calls under way: others come in while Python cuts a token for one */
} Lines;

/* The words that are sought in one call: their numbers, in a table. */
typedef struct {
    int32_t *numbers; /* -1: free */
    uint32_t *seen;   /* the last line that had the word */
    size_t mask, n;
} Sought;

typedef struct {
    const char *start, *end; /* what is looked at */
    int is_ascii;
} Region;

/* Remembering. */

static int32_t number_of(Table *table, const char *word, size_t length)
{
    char *padded = calloc(length + WORD_BYTES, 1);
    if (padded == NULL)
        return -1;
    memcpy(padded, word, length);
    uint32_t hash = hash_token(padded, length);
    int32_t number = find(table, padded, length, hash)->number;
    if (number < 0 && append(table, padded, length, hash) == 0)
        number = (int32_t)table->n_words - 1;
    free(padded);
    return number;
}

static int32_t number_of_string(Table *table, PyObject *word)
{
    PyObject *encoded = encode(word);
    if (encoded == NULL)
        return -1;
    int32_t number = number_of(table, PyBytes_AsString(encoded), (size_t)PyBytes_Size(encoded));
    Py_DECREF(encoded);
    if (number < 0)
        PyErr_NoMemory();
    return number;
}

static int start_words(Table *table)
{
    if (resize_slots(table, 64) < 0 ||
        grow((void **)&table->starts, &table->words_room, 1, sizeof *table->starts) < 0 ||
        grow((void **)&table->bytes, &table->bytes_room, 1, 1) < 0)
        return -1;
    table->starts[0] = 0;
    return 0;
}

static void forget_if_full(Lines *self)
{
    Table *words = &self->words;
    if (self->n_inside > 0 || (self->n_known < MOST_KNOWN && words->n_words < MOST_KNOWN))
        return;
    words->n_words = words->bytes_used = words->longest = 0;
    for (size_t i = 0; i < words->n_slots; i++)
        words->slots[i].number = -1;
    memset(self->known, 0, self->n_slots * sizeof *self->known);
    self->n_known = self->n_records = 0;
}

static uint32_t hash_of(const char *token, size_t length)
{
    uint64_t hash = length * UINT64_C(0x9E3779B97F4A7C15), part;
    for (; length >= sizeof part; token += sizeof part, length -= sizeof part) {
        memcpy(&part, token, sizeof part);
        hash = (hash ^ part) * UINT64_C(0xD6E8FEB86659FD93);
        hash ^= hash >> 32;
    }
    part = 0;
    for (size_t i = 0; i < length; i++)
        part |= (uint64_t)(uint8_t)token[i] << 8 * i;
    hash = (hash ^ part) * UINT64_C(0xD6E8FEB86659FD93);
    return (uint32_t)(hash ^ hash >> 32);
}

/* The record of a token, NULL if it is not known. */
static const uint32_t *record_of(const Lines *self, const char *token, size_t length, uint32_t hash)
{
    size_t mask = self->n_slots - 1;
    for (size_t at = hash & mask; self->known[at].record != 0; at = (at + 1) & mask) {
        if (self->known[at].hash != hash)
            continue;
        const uint32_t *record = self->records + self->known[at].record - 1;
        if (record[0] == length && memcmp(record + 2 + record[1], token, length) == 0)
            return record;
    }
    return NULL;
}

static int room_for_one_more(Lines *self)
{
    if (2 * (self->n_known + 1) <= self->n_slots)
        return 0;
    size_t n_slots = self->n_slots == 0 ? 1024 : 2 * self->n_slots;
    Known *known = calloc(n_slots, sizeof *known);
    if (known == NULL)
        return -1;
    for (size_t i = 0; i < self->n_slots; i++) {
        if (self->known[i].record == 0)
            continue;
        size_t at = self->known[i].hash & (n_slots - 1);
        while (known[at].record != 0)
            at = (at + 1) & (n_slots - 1);
        known[at] = self->known[i];
    }
    free(self->known);
    self->known = known;
    self->n_slots = n_slots;
    return 0;
}

static int remember(Lines *self, const char *token, size_t length, uint32_t hash,
                    const int32_t *numbers, size_t n)
{
    size_t start = self->n_records, size = 2 + n + (length + 3) / 4;
    if (start + size > UINT32_MAX / 2 || record_of(self, token, length, hash) != NULL)
        return 0; /* no room, or another thread was faster */
    if (room_for_one_more(self) < 0 ||
        grow((void **)&self->records, &self->records_room, start + size, sizeof *self->records) < 0) {
        PyErr_NoMemory();
        return -1;
    }
    uint32_t *record = self->records + start;
    memset(record, 0, size * sizeof *record);
    record[0] = (uint32_t)length;
    record[1] = (uint32_t)n;
    if (n > 0)
        memcpy(record + 2, numbers, n * sizeof *numbers);
    memcpy(record + 2 + n, token, length);
    size_t at = hash & (self->n_slots - 1);
    while (self->known[at].record != 0)
        at = (at + 1) & (self->n_slots - 1);
    self->known[at] = (Known){hash, (uint32_t)start + 1};
    self->n_records += size;
    self->n_known++;
    return 0;
}

/* Seeking. */

static int32_t place_of(const Sought *sought, int32_t number)
{
    size_t at = (uint32_t)number * UINT32_C(2654435761) & sought->mask;
    for (; sought->numbers[at] >= 0; at = (at + 1) & sought->mask)
        if (sought->numbers[at] == number)
            return (int32_t)at;
    return -1 - (int32_t)at;
}

static void release_sought(Sought *sought)
{
    free(sought->numbers);
    free(sought->seen);
}

static int read_sought(Lines *self, PyObject *list, Sought *sought)
{
    Py_ssize_t n = PyList_Size(list);
    size_t room = 4;
    while (room < 2 * (size_t)n)
        room *= 2;
    *sought = (Sought){malloc(room * sizeof(int32_t)), calloc(room, sizeof(uint32_t)), room - 1, 0};
    if (sought->numbers == NULL || sought->seen == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < room; i++)
        sought->numbers[i] = -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *word = PyList_GetItem(list, i);
        if (word == NULL)
            return -1;
        if (!PyUnicode_Check(word)) {
            set_kind_error("word", i, word);
            return -1;
        }
        int32_t number = number_of_string(&self->words, word);
        if (number < 0)
            return -1;
        int32_t place = place_of(sought, number);
        if (place < 0) {
            sought->numbers[-1 - place] = number;
            sought->n++;
        }
    }
    return 0;
}

/* What the words of a token add to those of line number `line`: -1 if none is sought. */
static int n_new(const uint32_t *numbers, size_t n, Sought *sought, uint32_t line)
{
    int fresh = -1;
    for (size_t i = 0; i < n; i++) {
        int32_t place = place_of(sought, (int32_t)numbers[i]);
        if (place < 0)
            continue;
        fresh += fresh < 0;
        fresh += sought->seen[place] != line;
        sought->seen[place] = line;
    }
    return fresh;
}

/* The same for a token that is not known, or not remembered; -2 and an error if that fails. */
static int n_new_of_unknown(Lines *self, const char *from, size_t length, uint32_t hash,
                            Sought *sought, uint32_t line)
{
    PyObject *token = PyUnicode_DecodeUTF8(from, (Py_ssize_t)length, "surrogatepass");
    PyObject *words = token == NULL ? NULL : PyObject_CallFunctionObjArgs(self->cut, token, NULL);
    Py_XDECREF(token);
    if (words == NULL)
        return -2;
    if (!PyList_Check(words)) {
        Py_DECREF(words);
        PyErr_SetString(PyExc_TypeError, "cut must return a list of words");
        return -2;
    }
    Py_ssize_t n = PyList_Size(words);
    int32_t *numbers = malloc(((size_t)n + 1) * sizeof *numbers);
    int fresh = numbers == NULL ? -2 : -1;
    if (numbers == NULL)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n && fresh != -2; i++) {
        numbers[i] = number_of_string(&self->words, PyList_GetItem(words, i));
        if (numbers[i] < 0)
            fresh = -2;
    }
    if (fresh != -2)
        fresh = n_new((const uint32_t *)numbers, (size_t)n, sought, line);
    if (fresh != -2 && length <= LONGEST_KNOWN && n <= MOST_WORDS &&
        remember(self, from, length, hash, numbers, (size_t)n) < 0)
        fresh = -2;
    free(numbers);
    Py_DECREF(words);
    return fresh;
}

static int n_new_of_token(Lines *self, const char *from, size_t length, Sought *sought,
                          uint32_t line)
{
    uint32_t hash = 0;
    const uint32_t *record = NULL;
    if (length <= LONGEST_KNOWN) {
        hash = hash_of(from, length);
        record = record_of(self, from, length, hash);
    }
    if (record == NULL)
        return n_new_of_unknown(self, from, length, hash, sought, line);
    return n_new(record + 2, record[1], sought, line);
}

/* Sentences, as the expressions of boltzhash.search.snippet say it. */

static const char *behind_blanks(const Region *region, const char *at)
{
    for (const char *next = at; at < region->end && is_blank(next_character(&next, 0)); at = next)
        ;
    return at;
}

/* Behind the last line break of the blanks that begin here; NULL if they have none. */
static const char *behind_last_break(const Region *region, const char *at)
{
    const char *found = NULL;
    for (const char *next = at; at < region->end && is_blank(next_character(&next, 0)); at = next)
        if (*at == '\n')
            found = next;
    return found;
}

/* Behind a heading with its underline, if one begins here; else NULL. */
static const char *behind_heading(const Region *region, const char *at)
{
    const char *end = region->end, *line = memchr(at, '\n', (size_t)(end - at));
    if (line == NULL)
        return NULL;
    for (at = line + 1; at < end && (*at == ' ' || *at == '\t');)
        at++;
    const char *sign = at;
    while (at < end && (*at == '-' || *at == '=' || *at == '~' || *at == '^' || *at == '*'))
        at++;
    if (at - sign < 3)
        return NULL;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    if (at == end)
        return at;
    return *at == '\n' ? at + 1 : NULL;
}

/* Whether the character that ends here is a letter, a digit or _; -1 and an error if that fails. */
static int is_of_word(const Region *region, const char *end)
{
    const char *at = end - 1;
    while (at > region->start && (*at & 0xC0) == 0x80)
        at--;
    if (at == end - 1)
        return *at == '_' || (*at >= '0' && *at <= '9') || (*at >= 'A' && *at <= 'Z') ||
               (*at >= 'a' && *at <= 'z');
    PyObject *one = PyUnicode_DecodeUTF8(at, end - at, "surrogatepass");
    PyObject *is = one == NULL ? NULL : PyObject_CallMethod(one, "isalnum", NULL);
    int answer = is == NULL ? -1 : PyObject_IsTrue(is);
    Py_XDECREF(is);
    Py_XDECREF(one);
    return answer;
}

/* Whether a full stop that ends a sentence stands before a blank: not that of "i.e." or "e.g.". */
static int is_after_stop(const Region *region, const char *blank)
{
    if (blank == region->start || (blank[-1] != '.' && blank[-1] != '!' && blank[-1] != '?'))
        return 0;
    if (blank - region->start < 4 || (memcmp(blank - 4, "i.e.", 4) && memcmp(blank - 4, "e.g.", 4)))
        return 1;
    return blank - 4 == region->start ? 0 : is_of_word(region, blank - 4);
}

/* Where the next sentence begins if one ends at a blank, NULL if none does; or NULL and an error. */
static const char *behind_end(const Region *region, const char *blank)
{
    const char *at = blank, *heading;
    next_character(&at, 0);
    int is_stop = is_after_stop(region, blank);
    if (is_stop < 0)
        return NULL;
    if (is_stop) {
        at = behind_blanks(region, at);
        while (at[-1] == '\n' && (heading = behind_heading(region, at)) != NULL)
            at = heading;
        return at;
    }
    if (*blank != '\n')
        return NULL;
    const char *paragraph = behind_last_break(region, at);
    if (paragraph != NULL)
        at = paragraph;
    heading = behind_heading(region, at);
    if (heading == NULL)
        return paragraph;
    while (heading != NULL) {
        at = heading;
        heading = behind_heading(region, at);
    }
    return at;
}

static uint8_t ascii_blanks[128];

static inline const char *behind_ascii_token(const char *at, const char *end)
{
    while (at < end && !ascii_blanks[(uint8_t)*at])
        at++;
    return at;
}

/* Or behind a full stop after which no blank is written, which ends the line as well. */
static const char *behind_token(const char *at, const char *end, int *is_stop)
{
    for (const char *next = at; at < end; at = next) {
        uint32_t c = next_character(&next, 0);
        if (is_blank(c))
            return at;
        *is_stop = c == 0x3002 || c == 0xFF01 || c == 0xFF1F;
        if (*is_stop)
            return next;
    }
    return at;
}

/* The best line. */

typedef struct {
    const char *start, *end; /* of its first and of its last token; NULL if it has none */
    const char *found;       /* its first token that has a word, or NULL */
    int n;                   /* of the words */
} Line;

static void end_line(Line *line, Line *best)
{
    if (line->start != NULL && (best->start == NULL || line->n > best->n))
        *best = *line;
    *line = (Line){0};
}

static int take_token(Lines *self, Line *line, const char *from, const char *to, Sought *sought,
                      uint32_t number)
{
    if (line->start == NULL)
        line->start = from;
    line->end = to;
    if (sought->n == 0)
        return 0;
    int fresh = n_new_of_token(self, from, (size_t)(to - from), sought, number);
    if (fresh == -2)
        return -1;
    if (fresh >= 0 && line->found == NULL)
        line->found = from;
    line->n += fresh > 0 ? fresh : 0;
    return 0;
}

static int find_best(Lines *self, const Region *region, Sought *sought, Line *best)
{
    Line line = {0};
    uint32_t number = 1;
    const char *at = region->start, *end = region->end, *next;
    while (at < end && (best->start == NULL || (size_t)best->n < sought->n)) {
        next = at;
        if (is_blank(next_character(&next, region->is_ascii))) {
            const char *begin = behind_end(region, at);
            if (begin == NULL && PyErr_Occurred())
                return -1;
            if (begin != NULL) {
                end_line(&line, best);
                number++;
            }
            at = begin != NULL ? begin : next;
            continue;
        }
        const char *from = at;
        int is_stop = 0;
        at = region->is_ascii ? behind_ascii_token(at, end) : behind_token(at, end, &is_stop);
        if (take_token(self, &line, from, at, sought, number) < 0)
            return -1;
        if (is_stop) {
            end_line(&line, best);
            number++;
        }
    }
    end_line(&line, best);
    return 0;
}

/* The line with one blank between tokens, and how many characters stand before its first token that has
 * a word: -1 if none has. */
static PyObject *as_line(const Line *line)
{
    char *joined = malloc((size_t)(line->end - line->start) + 1);
    if (joined == NULL)
        return PyErr_NoMemory();
    size_t n = 0;
    Py_ssize_t n_characters = 0, before = -1;
    int was_blank = 0;
    for (const char *at = line->start, *next = at; at < line->end; at = next) {
        int blank = is_blank(next_character(&next, 0));
        if (at == line->found)
            before = n_characters + was_blank;
        if (!blank) {
            if (was_blank) {
                joined[n++] = ' ';
                n_characters++;
            }
            memcpy(joined + n, at, (size_t)(next - at));
            n += (size_t)(next - at);
            n_characters++;
        }
        was_blank = blank;
    }
    PyObject *string = PyUnicode_DecodeUTF8(joined, (Py_ssize_t)n, "surrogatepass");
    free(joined);
    return string == NULL ? NULL : Py_BuildValue("Nn", string, before);
}

static Region region_of(PyObject *string, PyObject *encoded)
{
    const char *start = PyBytes_AsString(encoded);
    Py_ssize_t size = PyBytes_Size(encoded);
    return (Region){start, start + size, size == PyUnicode_GetLength(string)};
}

static PyObject *Lines_best(Lines *self, PyObject *arguments)
{
    PyObject *text, *list;
    if (!PyArg_ParseTuple(arguments, "UO!", &text, &PyList_Type, &list))
        return NULL;
    PyObject *encoded = encode(text);
    if (encoded == NULL)
        return NULL;
    forget_if_full(self);
    self->n_inside++;
    Sought sought = {0};
    PyObject *answer = NULL;
    if (read_sought(self, list, &sought) == 0) {
        Region region = region_of(text, encoded);
        const char *heading = region.start;
        for (; heading != NULL; heading = behind_heading(&region, heading))
            region.start = heading;
        Line best = {0};
        if (find_best(self, &region, &sought, &best) == 0)
            answer = best.start != NULL ? as_line(&best) : Py_BuildValue("si", "", -1);
    }
    self->n_inside--;
    release_sought(&sought);
    Py_DECREF(encoded);
    return answer;
}

/* Where the words stand. */

static int add_span(PyObject *spans, Py_ssize_t start, Py_ssize_t end)
{
    PyObject *span = Py_BuildValue("nn", start, end);
    int failed = span == NULL ? -1 : PyList_Append(spans, span);
    Py_XDECREF(span);
    return failed;
}

static int is_letter_or_digit(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Runs of letters and digits that have a word; without any, from the first to the last of those and
 * underscores; without those, all. */
static int add_ascii(Lines *self, const char *from, const char *to, Py_ssize_t before,
                     Sought *sought, PyObject *spans)
{
    int n_parts = 0;
    const char *first = to, *last = from;
    for (const char *at = from; at < to;) {
        if (*at == '_' || is_letter_or_digit(*at)) {
            first = at < first ? at : first;
            last = at + 1;
        }
        if (!is_letter_or_digit(*at)) {
            at++;
            continue;
        }
        const char *run = at;
        while (at < to && is_letter_or_digit(*at))
            at++;
        last = at;
        int fresh = n_new_of_token(self, run, (size_t)(at - run), sought, 1);
        if (fresh == -2 ||
            (fresh >= 0 && add_span(spans, before + (run - from), before + (at - from)) < 0))
            return -1;
        n_parts += fresh >= 0;
    }
    if (n_parts > 0)
        return 0;
    if (first >= last)
        first = from, last = to;
    return add_span(spans, before + (first - from), before + (last - from));
}

/* What Python says of a token, moved to where the token stands. */
static int add_others(PyObject *within, const char *from, const char *to, Py_ssize_t before,
                      PyObject *spans)
{
    PyObject *token = PyUnicode_DecodeUTF8(from, to - from, "surrogatepass");
    PyObject *own = token == NULL ? NULL : PyObject_CallFunctionObjArgs(within, token, NULL);
    int failed = own == NULL || !PyList_Check(own);
    if (own != NULL && failed)
        PyErr_SetString(PyExc_TypeError, "within must return a list of spans");
    for (Py_ssize_t i = 0; !failed && i < PyList_Size(own); i++) {
        Py_ssize_t start, end;
        failed = !PyArg_ParseTuple(PyList_GetItem(own, i), "nn", &start, &end) ||
                 add_span(spans, before + start, before + end) < 0;
    }
    Py_XDECREF(own);
    Py_XDECREF(token);
    return failed ? -1 : 0;
}

static int find_spans(Lines *self, const Region *region, Sought *sought, PyObject *within,
                      PyObject *spans)
{
    Py_ssize_t before = 0;
    const char *at = region->start, *end = region->end;
    while (at < end) {
        const char *from = at, *next = at;
        Py_ssize_t n = 0;
        for (; at < end && !is_blank(next_character(&next, region->is_ascii)); at = next)
            n++;
        if (n == 0) {
            at = next;
            before++;
            continue;
        }
        int fresh = n_new_of_token(self, from, (size_t)(at - from), sought, 1);
        if (fresh == -2)
            return -1;
        int failed = fresh < 0             ? 0
                     : n == at - from ? add_ascii(self, from, at, before, sought, spans)
                                           : add_others(within, from, at, before, spans);
        if (failed)
            return -1;
        before += n;
    }
    return 0;
}

static PyObject *Lines_spans(Lines *self, PyObject *arguments)
{
    PyObject *text, *list, *within;
    if (!PyArg_ParseTuple(arguments, "UO!O", &text, &PyList_Type, &list, &within))
        return NULL;
    PyObject *encoded = encode(text), *spans = PyList_New(0);
    if (encoded == NULL || spans == NULL) {
        Py_XDECREF(encoded);
        Py_XDECREF(spans);
        return NULL;
    }
    forget_if_full(self);
    self->n_inside++;
    Sought sought = {0};
    Region region = region_of(text, encoded);
    if (read_sought(self, list, &sought) < 0 ||
        (sought.n > 0 && find_spans(self, &region, &sought, within, spans) < 0))
        Py_CLEAR(spans);
    self->n_inside--;
    release_sought(&sought);
    Py_DECREF(encoded);
    return spans;
}

/* The Python type. */

static void Lines_dealloc(Lines *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    PyObject_GC_UnTrack(self);
    Py_XDECREF(self->cut);
    free(self->words.bytes);
    free(self->words.starts);
    free(self->words.slots);
    free(self->known);
    free(self->records);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static int Lines_traverse(Lines *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE((PyObject *)self));
    Py_VISIT(self->cut);
    return 0;
}

static int Lines_clear(Lines *self)
{
    Py_CLEAR(self->cut);
    return 0;
}

static PyObject *Lines_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"cut", NULL};
    PyObject *cut;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O", names, &cut))
        return NULL;
    Lines *self = (Lines *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (self == NULL)
        return NULL;
    Py_INCREF(cut);
    self->cut = cut;
    if (start_words(&self->words) < 0 || room_for_one_more(self) < 0) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static PyMethodDef Lines_methods[] = {
    {"best", (PyCFunction)Lines_best, METH_VARARGS,
     "best(text, sought) -> the line, and where its first token stands that has a word"},
    {"spans", (PyCFunction)Lines_spans, METH_VARARGS,
     "spans(line, sought, within) -> [(start, end)] of what has a word"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot Lines_slots[] = {
    {Py_tp_doc, "Lines of texts, and the words in them."},
    {Py_tp_new, Lines_new},
    {Py_tp_dealloc, Lines_dealloc},
    {Py_tp_traverse, Lines_traverse},
    {Py_tp_clear, Lines_clear},
    {Py_tp_methods, Lines_methods},
    {0, NULL},
};

static PyType_Spec Lines_spec = {
    .name = "boltzhash.text._lines.Lines",
    .basicsize = sizeof(Lines),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = Lines_slots,
};

static int execute(PyObject *module)
{
    for (uint32_t c = 0; c < 128; c++)
        ascii_blanks[c] = (uint8_t)is_blank(c);
    PyObject *type = PyType_FromSpec(&Lines_spec);
    if (type == NULL)
        return -1;
    int failed = PyModule_AddObjectRef(module, "Lines", type);
    Py_DECREF(type);
    return failed;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static PyModuleDef module = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "boltzhash.text._lines",
    .m_doc = "Lines of texts, and the words in them.",
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__lines(void) { return PyModuleDef_Init(&module); }
