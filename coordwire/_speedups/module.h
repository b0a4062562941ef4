/* What the parts of the extension offer to each other and to module.c. */

#ifndef COORDWIRE_MODULE_H
#define COORDWIRE_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* What the message engine keeps for one module; see engine.h. */
typedef struct Engine Engine;

/* Each adds its functions and types to the module; 0, or -1 with an exception set. */
int engine_exec(PyObject *module);
int records_exec(PyObject *module);

/* The engine's part of the module's life; `engine_size` bytes of it stand in the module's state. */
extern const Py_ssize_t engine_size;
int engine_traverse(PyObject *module, visitproc visit, void *arg);
int engine_clear(PyObject *module);

#endif
