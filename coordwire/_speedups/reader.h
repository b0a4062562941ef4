/* One walk over a message's bytes: what is left of them and of the budgets, and what it makes.

   Rules: nobody sees an object half filled, and a collection must not walk a message that is soon dropped. A
   small one is made while the collector stands still. A large one stays unknown to the collector, which goes on,
   until it is whole: `made` has its objects and lists, borrowed; a slot or item is filled once, so that nothing
   made is dropped before the end unless all is. (Standing still for many objects would set off a collection
   right behind, which walks them all.) */

#ifndef COORDWIRE_READER_H
#define COORDWIRE_READER_H

#include "engine.h"

typedef struct Reader {
    const uint8_t *at, *end;
    int64_t size;    /* of the whole */
    bool charged;    /* whether the budgets are known: the context is asked when they are first needed */
    Budgets budgets; /* what is left of them */
    const Engine *engine;
    PyObject **made; /* NULL for a small message */
    size_t count, room;
} Reader;

static inline size_t left(const Reader *reader) { return (size_t)(reader->end - reader->at); }

/* Book elements before they exist. */
static inline bool charge(Reader *reader, int64_t count, int64_t cost)
{
    Budgets *budgets = &reader->budgets;
    if (!reader->charged) {
        if (!engine_budgets(reader->engine, reader->size, budgets))
            return false;
        reader->charged = true;
    }
    budgets->elements -= count;
    budgets->memory -= count * cost;
    return budgets->elements >= 0 && budgets->memory >= 0;
}

/* Remember an object for the end; it is dropped if that fails. */
static inline PyObject *keep(Reader *reader, PyObject *object)
{
    if (reader->count == reader->room) {
        PyObject **more = PyMem_Resize(reader->made, PyObject *, reader->room * 2);
        if (more == NULL) {
            Py_XDECREF(object);
            return NULL;
        }
        reader->room *= 2;
    }
    if (object != NULL)
        reader->made[reader->count++] = object;
    return object;
}

/* An object whose slots are empty. */
static inline PyObject *make(Reader *reader, const Program *program)
{
    if (!program->adopted)
        return program->cls->tp_alloc(program->cls, 0);
    PyObject *object = make_object(program->cls);
    if (reader->made != NULL)
        return keep(reader, object);
    if (object != NULL)
        PyObject_GC_Track(object);
    return object;
}

/* A list whose items are empty. */
static inline PyObject *make_list(Reader *reader, Py_ssize_t size)
{
    if (reader->made == NULL)
        return PyList_New(size);
#ifdef Py_GIL_DISABLED /* its lists are made in another way */
    PyObject *made = PyList_New(size);
    if (made != NULL)
        PyObject_GC_UnTrack(made);
    return keep(reader, made);
#else
    PyListObject *list = PyObject_GC_New(PyListObject, &PyList_Type);
    if (list == NULL)
        return NULL;
    list->ob_item = size ? PyMem_Calloc((size_t)size, sizeof(PyObject *)) : NULL;
    list->allocated = list->ob_item == NULL ? 0 : size;
    Py_SET_SIZE(list, list->allocated);
    if (list->allocated < size)
        Py_CLEAR(list);
    return keep(reader, (PyObject *)list);
#endif
}

/* A number, the interpreter's own object where it is small. */
static inline PyObject *read_number(Reader *reader, long number)
{
    unsigned long at = (unsigned long)number - LEAST_SMALL;
    return at < SMALLS ? Py_NewRef(reader->engine->smalls[at]) : PyLong_FromLong(number);
}

#endif
