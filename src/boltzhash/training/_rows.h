#ifndef BOLTZHASH_ROWS_H
#define BOLTZHASH_ROWS_H

#include "_buffers.h"

PyObject *take_rows(PyObject *module, PyObject *arguments);
PyObject *mix_rows(PyObject *module, PyObject *arguments);
PyObject *by_word(PyObject *module, PyObject *arguments);

#endif
