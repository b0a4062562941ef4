/* What the parts of the extension offer to each other and to module.c. */

#ifndef COORDWIRE_MODULE_H
#define COORDWIRE_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Each adds its functions to the module; 0, or -1 with an exception set. */
int engine_exec(PyObject *module);
int records_exec(PyObject *module);

#endif
