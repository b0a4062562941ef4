/* Objects of the message classes: made and freed faster than by the interpreter's general way.

   Strategy: a class whose objects are slots and nothing else gets a deallocator that clears the slots in one
   go; freed objects then wait on the shelf of their size for the next object of any such class, as lists and
   floats do in the interpreter itself. Rules: what waits is memory only: it refers to nothing (its first slot
   links to the next) and is unknown to the collector; a shelf is bounded; a class that gains a finalizer has
   it called. The shelves belong to the process, under the interpreter's lock. */

#include "engine.h"

#ifdef COORDWIRE_SANITIZED /* what waits on a shelf is hidden from a sanitizer */
#define MOST 0
#else
#define MOST 512 /* objects on a shelf */
#endif

enum {
    SHELVES = 40, /* slots of the largest objects that are kept, and one */
    DEEP = 100,   /* objects inside each other from which on the interpreter's own guard is used */
};

static struct {
    PyObject *first;
    int count;
} shelves[SHELVES];

static int depth;

static inline PyObject **slots_of(PyObject *object) { return (PyObject **)(object + 1); }

static inline size_t count_slots(PyTypeObject *cls)
{
    return ((size_t)cls->tp_basicsize - sizeof(PyObject)) / sizeof(PyObject *);
}

static void clear_slots(PyObject *object, size_t count)
{
    for (PyObject **slot = slots_of(object), **end = slot + count; slot < end; slot++) {
        PyObject *value = *slot;
        *slot = NULL;
        Py_XDECREF(value);
    }
}

/* Clear an object's slots, and give it to its shelf or free it. `base`: the class that has the slots. */
static inline void let_go(PyObject *object, PyTypeObject *base)
{
    PyTypeObject *type = Py_TYPE(object);
    size_t count = count_slots(base);
    clear_slots(object, count);
    if (type == base && count < SHELVES && shelves[count].count < MOST) {
        *slots_of(object) = shelves[count].first;
        shelves[count].first = object;
        shelves[count].count++;
    } else
        type->tp_free(object);
    Py_DECREF(type);
}

static void free_object(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self), *base = type;
    while (base->tp_dealloc != free_object) /* of a subclass, whose own part is gone already */
        base = base->tp_base;
    if (type == base && type->tp_finalize != NULL && PyObject_CallFinalizerFromDealloc(self) < 0)
        return;
    PyObject_GC_UnTrack(self);
    if (depth < DEEP) {
        depth++;
        let_go(self, base);
        depth--;
    } else {
        Py_TRASHCAN_BEGIN(self, free_object) /* leaves the block where it keeps the object for later */
        let_go(self, base);
        Py_TRASHCAN_END
    }
}

PyObject *make_object(PyTypeObject *cls)
{
    size_t count = count_slots(cls);
    PyObject *object;
    if (count >= SHELVES || (object = shelves[count].first) == NULL) {
        object = PyObject_GC_New(PyObject, cls);
        if (object != NULL)
            memset(slots_of(object), 0, count * sizeof(PyObject *));
        return object;
    }
    shelves[count].first = *slots_of(object);
    shelves[count].count--;
    *slots_of(object) = NULL;
#if defined(Py_REF_DEBUG) || PY_VERSION_HEX >= 0x030C0000
    return PyObject_Init(object, cls);
#else /* the same, inline */
    Py_SET_TYPE(object, (PyTypeObject *)Py_NewRef(cls));
    Py_SET_REFCNT(object, 1);
    return object;
#endif
}

void adopt_class(PyTypeObject *cls)
{
    cls->tp_dealloc = free_object;
}
