/* Objects and lists as they are freed, and as they are made where none waits. See freelist.h. */

#include "freelist.h"

enum {
    FREELISTS = 40, /* slots of the largest objects that are kept, and one */
    SHORT_LIST = 8,
    DEEP = 100,   /* objects inside each other from which on the interpreter's own guard is used: the trashcan
                     before 3.14, and since then Py_DECREF, which has to be gone through */
};

Freelist list_freelists[LISTS];
static Freelist freelists[FREELISTS], none; /* none: it has no room */
static int depth;

/* How many blocks a freelist takes, of an object's head and so many pointers. */
static int most(size_t pointers) { return (int)(FREELIST_BYTES / (sizeof(PyObject) + (pointers + 2) * sizeof(PyObject *))); }

static inline bool put(Freelist *freelist, PyObject *object)
{
    if (freelist->room == 0)
        return false;
    freelist->room--;
    object->ob_type = (PyTypeObject *)freelist->first;
    freelist->first = object;
    return true;
}

/* --- lists --- */

PyObject *new_list(Py_ssize_t size)
{
    PyListObject *list = PyObject_GC_New(PyListObject, &PyList_Type);
    if (list == NULL)
        return NULL;
    list->ob_item = size ? PyMem_New(PyObject *, size) : NULL;
    list->allocated = list->ob_item == NULL ? 0 : size;
    Py_SET_SIZE(list, 0);
    if (list->allocated < size) {
        Py_CLEAR(list);
        PyErr_NoMemory();
    }
    return (PyObject *)list;
}

static void free_object(PyObject *self);

/* Free a list without other references, or keep it. */
static void drop_list(PyObject *object)
{
    PyListObject *list = (PyListObject *)object;
    size_t room = (size_t)list->allocated;
    if (room < LISTS && list_freelists[room].room) {
        PyObject_GC_UnTrack(object);
        const destructor quick = depth < DEEP ? free_object : NULL; /* no type has NULL */
        PyObject **item = list->ob_item + Py_SIZE(list);
        Py_SET_SIZE(list, 0);
        while (item != list->ob_item) {
            PyObject *value = *--item;
            if (value != NULL && Py_REFCNT(value) == 1 && Py_TYPE(value)->tp_dealloc == quick) {
                Py_SET_REFCNT(value, 0); /* as Py_DECREF would, with a call less */
                free_object(value);
            } else
                Py_XDECREF(value);
        }
        if (put(list_freelists + room, object))
            return;
    }
    Py_DECREF(object);
}

/* --- objects --- */

static inline PyObject **slots_of(PyObject *object) { return (PyObject **)(object + 1); }

static inline size_t count_slots(PyTypeObject *cls)
{
    return ((size_t)cls->tp_basicsize - sizeof(PyObject)) / sizeof(PyObject *);
}

static inline void clear_slots(PyObject *object, size_t count)
{
    for (PyObject **slot = slots_of(object), **end = slot + count; slot < end; slot++) {
        PyObject *value = *slot;
        if (value == NULL)
            continue;
        *slot = NULL;
        if (Py_REFCNT(value) == 1 && PyList_CheckExact(value))
            drop_list(value);
        else
            Py_DECREF(value);
    }
}

/* Clear an object's slots, and give it to its freelist or free it. `base`: the class that has the slots. */
static inline void let_go(PyObject *object, PyTypeObject *base)
{
    PyTypeObject *type = Py_TYPE(object);
    size_t count = count_slots(base);
    clear_slots(object, count);
    if (type != base || type->tp_finalize != NULL || count >= FREELISTS || !put(freelists + count, object))
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

PyObject *new_object(PyTypeObject *cls)
{
    PyObject *object = PyObject_GC_New(PyObject, cls);
    if (object != NULL)
        memset(slots_of(object), 0, count_slots(cls) * sizeof(PyObject *));
    return object;
}

Freelist *adopt_class(PyTypeObject *cls)
{
    size_t count = count_slots(cls);
    static bool ready;
    if (!ready) {
        for (int i = 0; i < FREELISTS; i++)
            freelists[i].room = most((size_t)i);
        for (int i = 0; i < LISTS; i++) /* beside its head a list has three numbers and pointers */
            list_freelists[i].room = most((size_t)i + 3) / (i > SHORT_LIST ? 8 : 1);
        ready = true;
    }
    cls->tp_dealloc = free_object;
    return count < FREELISTS ? freelists + count : &none;
}
