/* What the parts of the extension offer to each other and to module.c, and the interpreters that it is for.

   Rule: the extension is built for the versions of CPython on which CI runs its tests, and refuses any other:
   there coordwire runs in Python. For speed it relies on more than the documented C API: freelist.c puts a
   deallocator of its own into classes made in Python and keeps freed objects and lists (decoding takes 1.2 to 2.3
   times as long without), list items and texts are filled in place, slots are found by the members of their
   descriptors, run.c fills bytes and, in 3.11, ints again that nothing else refers to, and before 3.13,
   which has a documented way, UUIDs are converted by private functions. Since 3.14 the interpreter borrows the
   references of local variables, so that a count of 1 says nothing of an argument: only objects that the extension
   itself refers to are asked for theirs. The same range is in `__init__.py`. */

#ifndef COORDWIRE_MODULE_H
#define COORDWIRE_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if defined(PYPY_VERSION) || PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030F0000
#error "the extension is for CPython 3.11 to 3.14; coordwire runs in Python elsewhere"
#endif
#ifdef Py_GIL_DISABLED
#error "the extension needs the interpreter's lock; coordwire runs in Python on a free-threaded build"
#endif

/* What the message engine keeps for one module; see engine.h. */
typedef struct Engine Engine;

/* Each adds its functions and types to the module; 0, or -1 with an exception set. */
int engine_exec(PyObject *module);
int records_exec(PyObject *module);

/* The types of captures: the makers of objects, the walks over packets and frames, the lines. */
extern PyType_Spec slot_maker_spec, packet_walk_spec, frame_walk_spec, plain_lines_spec;

/* The engine's part of the module's life; `engine_size` bytes of it are in the module's state. */
extern const Py_ssize_t engine_size;
int engine_traverse(PyObject *module, visitproc visit, void *arg);
int engine_clear(PyObject *module);

#endif
