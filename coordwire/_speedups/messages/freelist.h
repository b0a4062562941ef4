/* Objects of the message classes, and their lists: made and freed faster than by the interpreter's general way.

   Strategy: a class whose objects are slots and nothing else gets a deallocator that clears the slots in one
   go; freed objects then wait on the freelist of their size for the next object of any such class, as floats do in
   the interpreter itself. So do lists that only a freed object referred to, with the memory of their items.
   Rules: what waits is memory only: it refers to nothing (the place of its type links to the next) and is
   unknown to the collector; a freelist is bounded; a class that gains a finalizer has it called. The freelists belong
   to the process, under the interpreter's lock. */

#ifndef COORDWIRE_MESSAGES_FREELIST_H
#define COORDWIRE_MESSAGES_FREELIST_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

/* What waits on a freelist is hidden from a sanitizer, and from a build that counts references. */
#if defined(COORDWIRE_SANITIZED) || defined(Py_REF_DEBUG) || defined(Py_TRACE_REFS)
#define FREELIST_BYTES 0
#else
#define FREELIST_BYTES (128 << 10) /* bytes on a freelist at most; of longer lists, an eighth */
#endif

enum { LISTS = 129 /* items of the longest lists that are kept, and one */ };

typedef struct Freelist {
    PyObject *first;
    int room; /* how many more it takes */
} Freelist;

extern Freelist list_freelists[LISTS];

/* Have objects of a class, which are slots of its own and nothing else, freed by free_object; the freelist of
   their size. */
Freelist *adopt_class(PyTypeObject *cls);

/* An object that the freelist had none for, whose slots are empty; a list without items, but with room. Both are
   unknown to the collector; NULL with an exception where memory is short. */
PyObject *new_object(PyTypeObject *cls);
PyObject *new_list(Py_ssize_t size);

/* An object of a type, with one reference; NULL if the freelist is empty. */
static inline PyObject *take(Freelist *freelist, PyTypeObject *type)
{
    PyObject *object = freelist->first;
    if (object == NULL)
        return NULL;
    freelist->first = (PyObject *)object->ob_type;
    freelist->room++;
#if PY_VERSION_HEX >= 0x030C0000
    return PyObject_Init(object, type);
#else /* the same, inline */
    if (type != &PyList_Type) /* static types aren't counted */
        Py_INCREF(type);
    Py_SET_TYPE(object, type);
    Py_SET_REFCNT(object, 1);
    return object;
#endif
}

static inline PyObject *make_object(Freelist *freelist, PyTypeObject *cls)
{
    PyObject *object = take(freelist, cls);
    return object != NULL ? object : new_object(cls);
}

static inline PyObject *make_list(Py_ssize_t size)
{
    PyObject *list = size < LISTS ? take(list_freelists + size, &PyList_Type) : NULL;
    return list != NULL ? list : new_list(size);
}

#endif
