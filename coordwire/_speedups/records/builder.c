/* `Builder`: what `RecordBatchBuilder` is made of, and its `append`.

   Strategy: a method of the class itself, not of its base, is what the interpreter calls with the least ado; so
   a subclass gets one over the Python function, which stays beside it. Rules: whatever it can't serve (other
   arguments, a body that Python writes, a record in doubt) goes to that function, with the same arguments. */

#include "record_codec.h"

#include "body.h"

typedef struct {
    PyObject_HEAD
    PyObject *body;  /* a Body, or what Python has instead */
    PyObject *limit; /* the bytes that the batch may grow to, or None */
    Body *native;    /* `body`, if it is one and `limit` is plain; borrowed */
    Py_ssize_t most; /* `limit`, -1 for any */
} Builder;

static PyObject *call_python(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    PyObject *function = PyObject_GetAttrString(self, "_append");
    PyObject *fit = function ? PyObject_Vectorcall(function, args, (size_t)count, names) : NULL;
    Py_XDECREF(function);
    return fit;
}

static PyObject *builder_append(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    Body *body = ((Builder *)self)->native;
    if (count != 1 || names || !body)
        return call_python(self, args, count, names);
    Py_INCREF(body); /* headers may be asked whether they are true, and then do anything */
    PyObject *fit = body_append(body, args[0], ((Builder *)self)->most);
    Py_DECREF(body);
    if (fit != Py_None)
        return fit;
    Py_DECREF(fit);
    return call_python(self, args, count, names);
}

static PyMethodDef append = {
    "append", (PyCFunction)(void (*)(void))builder_append, METH_FASTCALL | METH_KEYWORDS,
    "append($self, record)\n--\n\n"
    "Add a record, unless the batch would grow beyond its limit: then False, and nothing has changed.\n\n"
    "The first record always fits, as in Kafka's producer. Its offset is the next one if it has none (-1).\n"
    "Raises `WrongType`, `OutOfRange` (also for offsets that don't rise), `NotInVersion`.",
};

static int builder_traverse(Builder *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->body);
    Py_VISIT(self->limit);
    return 0;
}

static int builder_clear(Builder *self)
{
    self->native = NULL;
    Py_CLEAR(self->body);
    Py_CLEAR(self->limit);
    return 0;
}

static void builder_dealloc(Builder *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    builder_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

/* The method over the function, which is `_append` then; in the class made of Builder, not in those made of that. */
static PyObject *builder_init_subclass(PyObject *class, PyObject *unused)
{
    (void)unused;
    if (((PyTypeObject *)class)->tp_base->tp_dealloc != (destructor)builder_dealloc)
        Py_RETURN_NONE;
    PyObject *function = PyObject_GetAttrString(class, "append");
    PyObject *method = function ? PyDescr_NewMethod((PyTypeObject *)class, &append) : NULL;
    int failed = !method || PyObject_SetAttrString(class, "_append", function) < 0
                 || PyObject_SetAttrString(class, "append", method) < 0;
    Py_XDECREF(method);
    Py_XDECREF(function);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef builder_methods[] = {
    {"__init_subclass__", builder_init_subclass, METH_NOARGS | METH_CLASS, "Serve the subclass's `append`."},
    {0},
};

static PyObject *builder_get(Builder *self, void *name)
{
    PyObject *value = *(const char *)name == '_' ? self->body : self->limit;
    if (!value)
        PyErr_SetString(PyExc_AttributeError, name);
    return Py_XNewRef(value);
}

static int builder_set(Builder *self, PyObject *value, void *name)
{
    PyObject **place = *(const char *)name == '_' ? &self->body : &self->limit, *before = *place;
    int64_t most = -1;
    *place = Py_XNewRef(value);
    int plain = self->limit == Py_None || (plain_int(self->limit, &most) && most >= 0);
    self->native = plain && self->body && is_body(self->body) ? (Body *)self->body : NULL;
    self->most = (Py_ssize_t)most;
    Py_XDECREF(before);
    return 0;
}

static PyGetSetDef builder_getset[] = {
    {"_body", (getter)builder_get, (setter)builder_set, "What writes the records, or None.", "_body"},
    {"limit", (getter)builder_get, (setter)builder_set, "The bytes that the batch may grow to, or None.", "limit"},
    {0},
};

static PyType_Slot builder_slots[] = {
    {Py_tp_doc, "What records are appended to."},
    {Py_tp_methods, builder_methods},
    {Py_tp_getset, builder_getset},
    {Py_tp_traverse, builder_traverse},
    {Py_tp_clear, builder_clear},
    {Py_tp_dealloc, builder_dealloc},
    {0, NULL},
};

static PyType_Spec builder_spec = {
    .name = "coordwire._speedups._native.Builder",
    .basicsize = sizeof(Builder),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = builder_slots,
};

int builder_exec(PyObject *module)
{
    return add_type(module, &builder_spec);
}
