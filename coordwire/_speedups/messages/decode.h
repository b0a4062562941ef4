/* One walk over a message's bytes: what is left of the budgets, and what the walk makes.

   Rules: no object is visible half filled, and a collection must not walk a message that is soon dropped: what
   is made stays unknown to the collector, which goes on, until the message is whole. `made` has its objects and
   lists, borrowed; a slot or item is filled once, so that nothing made is dropped before the end unless all is.
   (To pause the collector for many objects would set off a collection right after, which walks them
   all.) */

#ifndef COORDWIRE_MESSAGES_DECODE_H
#define COORDWIRE_MESSAGES_DECODE_H

#include "engine.h"

enum { MADE = 64 };

typedef struct Reader {
    const uint8_t *end;
    Engine *engine;
    PyObject **made, **next, **limit; /* next: where the next one goes; limit: where `made` ends */
    int64_t size;    /* of the whole */
    bool *has_zero;  /* whether a text has a zero; NULL where that is not asked */
    bool charged;    /* whether the budgets are known: the context is asked when they are first needed */
    Budgets budgets; /* what is left of them */
    PyObject *few[MADE];
} Reader;

/* decode.c: make room in `made`. */
bool more_made(Reader *reader);

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
    if (object == NULL)
        return NULL;
    if (reader->next == reader->limit && !more_made(reader)) {
        Py_DECREF(object);
        return NULL;
    }
    *reader->next++ = object;
    return object;
}

/* An object whose slots are empty. */
static inline PyObject *make(Reader *reader, const Program *program)
{
    PyObject *object;
    if (program->freelist != NULL)
        object = make_object(program->freelist, program->cls);
    else if ((object = program->cls->tp_alloc(program->cls, 0)) != NULL)
        PyObject_GC_UnTrack(object);
    return keep(reader, object);
}

#endif
