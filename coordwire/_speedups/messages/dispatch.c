/* What is in each message class as `decode`, `_decode_at` and `encode`.

   Strategy: an object a class that is called without being bound, knows its class and has the programs of its
   versions; calls that the engine can't serve (other arguments) go to the Python function of that name, with the
   same arguments; bytes that it declines and values that it gives up go straight to the interpreter, so that a
   refusal costs one run of the engine and one of the interpreter. Rules: what the Python function would
   accept or refuse decides; a version's program is asked for once, when it is first used; each subclass has its
   own: Message gives it as the class is made, and one that Message didn't see gets it when it is first looked
   up (unless the interpreter specializes the call at that very moment, which passes by here). */

#include "engine.h"

#include <structmember.h>

/* One more than the highest version that a class may have; Kafka's are far lower. */
enum { MOST_VERSIONS = 256 };

typedef struct Caller {
    PyObject_VAR_HEAD /* how many versions: above, and where a program is None, Python alone serves */
    vectorcallfunc call;
    PyTypeObject *cls;
    PyObject *compile;  /* (cls, version) -> Program, or None where there is none */
    PyObject *function; /* the Python function, whose first argument is the class or message */
    PyObject *exact;    /* the interpreter: (cls, data, start, version, strict, deviations) or (message, version) */
    PyObject *module;   /* owned: a type that is cleared lets go of it while its objects live */
    Engine *engine;     /* in its state */
    PyObject *programs[]; /* by version; NULL where it wasn't asked for yet */
} Caller;

static PyObject *decode_at(PyObject *self, PyObject *const *args, size_t count, PyObject *names);
static PyObject *encode(PyObject *self, PyObject *const *args, size_t count, PyObject *names);

/* Where it is in its class. */
static const char *name_of(const Caller *caller)
{
    return caller->call == encode ? "encode" : caller->call == decode_at ? "_decode_at" : "decode";
}

static PyObject *compile(Caller *caller, long long number, PyObject *version)
{
    PyObject *program = PyObject_CallFunctionObjArgs(caller->compile, caller->cls, version, NULL);
    if (program == NULL)
        return NULL;
    if (caller->programs[number] == NULL)
        caller->programs[number] = program;
    else /* Python code ran: somebody else was faster, and may be using the first */
        Py_DECREF(program);
    return caller->programs[number];
}

/* The program of a version, borrowed; NULL where the Python function serves it, or with an exception where it
   could not be compiled: that has to leave. */
static inline Program *program_of(Caller *caller, PyObject *version)
{
    long long number;
    if (!PyLong_CheckExact(version) || !as_integer(version, &number) || number < 0 || number >= Py_SIZE(caller))
        return NULL;
    PyObject *program = caller->programs[number];
    if (program == NULL && (program = compile(caller, number, version)) == NULL)
        return NULL;
    return Py_IS_TYPE(program, caller->engine->program_type) ? (Program *)program : NULL;
}

/* --- the Python function --- */

/* Call it with the class before the arguments. */
static PyObject *call_python(Caller *caller, PyObject *const *args, size_t count, PyObject *names)
{
    if (PyErr_Occurred())
        return NULL;
    Py_ssize_t all = PyVectorcall_NARGS(count) + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
    PyObject **with = PyMem_New(PyObject *, all + 1);
    if (with == NULL)
        return PyErr_NoMemory();
    with[0] = (PyObject *)caller->cls;
    if (all)
        memcpy(with + 1, args, (size_t)all * sizeof *with);
    PyObject *result
        = PyObject_Vectorcall(caller->function, with, (size_t)PyVectorcall_NARGS(count) + 1, names);
    PyMem_Free(with);
    return result;
}

/* --- decode --- */

/* Give a subclass that inherits a decoder one of its own: the interpreter, once it specializes a call, takes what
   it finds without asking for whom. */
static NOINLINE PyObject *make_own(Caller *caller, PyTypeObject *cls, PyObject *name)
{
    PyObject *own
        = PyObject_CallFunction((PyObject *)Py_TYPE(caller), "OOOOni", cls, caller->compile, caller->function,
                                caller->exact, Py_SIZE(caller), caller->call == decode_at);
    if (own != NULL && PyType_Type.tp_setattro((PyObject *)cls, name, own) < 0)
        Py_CLEAR(own);
    return own;
}

/* Whether a class inherits an object under a name; -1 with an exception. */
static int inherits(PyTypeObject *cls, PyObject *name, const PyObject *object)
{
    PyObject *order = Py_NewRef(cls->tp_mro), *item = NULL;
    for (Py_ssize_t i = 0; item == NULL && i < PyTuple_GET_SIZE(order); i++) {
        PyObject *own = PyObject_GetAttrString(PyTuple_GET_ITEM(order, i), "__dict__");
        item = own == NULL ? NULL : PyObject_GetItem(own, name);
        Py_XDECREF(own);
        if (item == NULL && !PyErr_ExceptionMatches(PyExc_KeyError))
            break;
        if (item == NULL)
            PyErr_Clear();
    }
    Py_DECREF(order);
    Py_XDECREF(item);
    return item == NULL && PyErr_Occurred() ? -1 : item == object;
}

/* A decoder needs no binding; a subclass that comes here by super() is Python's to serve. */
static PyObject *decoder_get(PyObject *self, PyObject *object, PyObject *type)
{
    (void)object;
    Caller *caller = (Caller *)self;
    if (type == NULL || type == (PyObject *)caller->cls)
        return Py_NewRef(self);
    PyObject *name = PyUnicode_InternFromString(name_of(caller));
    if (name == NULL)
        return NULL;
    int inherited = inherits((PyTypeObject *)type, name, self);
    PyObject *item = inherited < 0 ? NULL
        : inherited                 ? make_own(caller, (PyTypeObject *)type, name)
                                    : PyMethod_New(caller->function, type);
    Py_DECREF(name);
    return item;
}

/* Whether the first argument is the object on which the interpreter found a decoder, or the class on which
   super() did: since it passes for a method, it may be called so. */
static inline bool is_bound(const Caller *caller, PyObject *first)
{
    return PyType_IsSubtype(PyType_Check(first) ? (PyTypeObject *)first : Py_TYPE(first), caller->cls);
}

static PyObject *call_bound(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    PyObject *type = PyType_Check(args[0]) ? args[0] : (PyObject *)Py_TYPE(args[0]);
    PyObject *bound = decoder_get(self, NULL, type);
    PyObject *result = bound == NULL ? NULL : PyObject_Vectorcall(bound, args + 1, (size_t)count - 1, names);
    Py_XDECREF(bound);
    return result;
}

/* The message, or what the interpreter makes of bytes that the engine declines; NULL where there is no program, and
   with an exception. */
static PyObject *decode_from(Caller *caller, PyObject *data, Py_ssize_t start, PyObject *version, PyObject *strict,
                             PyObject *deviations)
{
    const Program *program = program_of(caller, version);
    const Py_ssize_t size = PyBytes_GET_SIZE(data);
    if (program == NULL || start < 0 || start > size)
        return NULL;
    const uint8_t *first = (const uint8_t *)PyBytes_AS_STRING(data), *stop;
    PyObject *message = engine_decode(program, first + start, first + size, NULL, &stop, NULL);
    if (message != NULL && stop == first + size)
        return message;
    Py_XDECREF(message);
    PyObject *position = PyLong_FromSsize_t(start);
    if (position == NULL)
        return NULL;
    PyObject *const args[] = {(PyObject *)caller->cls, data, position, version, strict, deviations};
    PyObject *result = PyObject_Vectorcall(caller->exact, args, 6, NULL);
    Py_DECREF(position);
    return result;
}

static PyObject *decode(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
    Caller *caller = (Caller *)self;
    const Engine *engine = caller->engine;
    if (PyVectorcall_NARGS(count) == 2 && is_bound(caller, args[0]))
        return call_bound(self, args, 2, names);
    if (PyVectorcall_NARGS(count) != 1 || names == NULL || !PyBytes_Check(args[0]))
        return call_python(caller, args, count, names);
    PyObject *version = NULL, *strict = Py_True, *deviations = Py_None;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i), *value = args[1 + i];
        if (name == engine->version)
            version = value;
        else if (name == engine->strict)
            strict = value;
        else if (name == engine->deviations)
            deviations = value;
        else
            return call_python(caller, args, count, names);
    }
    PyObject *message = version == NULL ? NULL : decode_from(caller, args[0], 0, version, strict, deviations);
    return message != NULL ? message : call_python(caller, args, count, names);
}

/* (data, start, version, strict, deviations) */
static PyObject *decode_at(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
    Caller *caller = (Caller *)self;
    if (PyVectorcall_NARGS(count) == 6 && is_bound(caller, args[0]))
        return call_bound(self, args, 6, names);
    if (PyVectorcall_NARGS(count) == 5 && names == NULL && PyBytes_Check(args[0]) && PyLong_CheckExact(args[1])) {
        Py_ssize_t start = PyLong_AsSsize_t(args[1]);
        if (start == -1)
            PyErr_Clear();
        PyObject *message = decode_from(caller, args[0], start, args[2], args[3], args[4]);
        if (message != NULL)
            return message;
    }
    return call_python(caller, args, count, names);
}

/* --- encode --- */

/* (message, version=) */
static PyObject *encode(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
    Caller *caller = (Caller *)self;
    if (PyVectorcall_NARGS(count) == 1 && names != NULL && PyTuple_GET_SIZE(names) == 1
        && PyTuple_GET_ITEM(names, 0) == caller->engine->version) {
        const Program *program = program_of(caller, args[1]);
        if (PyErr_Occurred())
            return NULL;
        if (program != NULL) {
            PyObject *wire = engine_encode(program, args[0], NULL, NULL);
            return wire != NULL ? wire : PyObject_Vectorcall(caller->exact, args, 2, NULL);
        }
    }
    return PyObject_Vectorcall(caller->function, args, count, names);
}

/* --- the types --- */

static PyObject *caller_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"cls", "compile", "function", "exact", "versions", "at", NULL};
    PyObject *cls, *compile, *function, *exact;
    Py_ssize_t versions;
    int at = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OOOn|p", names, &PyType_Type, &cls, &compile, &function,
                                     &exact, &versions, &at))
        return NULL;
    if (versions < 0 || versions > MOST_VERSIONS) {
        PyErr_SetString(PyExc_ValueError, "versions");
        return NULL;
    }
    PyObject *module = PyType_GetModule(type);
    Caller *caller = module == NULL ? NULL : (Caller *)type->tp_alloc(type, versions);
    if (caller == NULL)
        return NULL;
    caller->module = Py_NewRef(module);
    caller->engine = PyModule_GetState(module);
    caller->call = type == caller->engine->encoder_type ? encode : at ? decode_at : decode;
    caller->cls = (PyTypeObject *)Py_NewRef(cls);
    caller->compile = Py_NewRef(compile);
    caller->function = Py_NewRef(function);
    caller->exact = Py_NewRef(exact);
    return (PyObject *)caller;
}

static int caller_traverse(PyObject *self, visitproc visit, void *arg)
{
    Caller *caller = (Caller *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(caller->module);
    Py_VISIT(caller->cls);
    Py_VISIT(caller->compile);
    Py_VISIT(caller->function);
    Py_VISIT(caller->exact);
    for (Py_ssize_t i = 0; i < Py_SIZE(caller); i++)
        Py_VISIT(caller->programs[i]);
    return 0;
}

/* Only what can be part of a cycle and isn't needed to be called once more. */
static int caller_clear(PyObject *self)
{
    Caller *caller = (Caller *)self;
    for (Py_ssize_t i = 0; i < Py_SIZE(caller); i++)
        Py_CLEAR(caller->programs[i]);
    return 0;
}

static void caller_dealloc(PyObject *self)
{
    Caller *caller = (Caller *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    caller_clear(self);
    Py_CLEAR(caller->cls);
    Py_CLEAR(caller->compile);
    Py_CLEAR(caller->function);
    Py_CLEAR(caller->exact);
    Py_CLEAR(caller->module);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *encoder_get(PyObject *self, PyObject *object, PyObject *type)
{
    (void)type;
    return object == NULL ? Py_NewRef(self) : PyMethod_New(self, object);
}

/* The Python function, as inspect looks for it; a decoder's is bound to its class. */
static PyObject *get_wrapped(PyObject *self, void *closure)
{
    (void)closure;
    Caller *caller = (Caller *)self;
    if (caller->call == encode)
        return Py_NewRef(caller->function);
    return PyMethod_New(caller->function, (PyObject *)caller->cls);
}

/* The class, as a bound method gives it; an encoder is not a method. */
static PyObject *get_self(PyObject *self, void *name)
{
    Caller *caller = (Caller *)self;
    if (caller->call == encode)
        return PyErr_Format(PyExc_AttributeError, "'%.100s' object has no attribute '%s'", Py_TYPE(self)->tp_name,
                            (const char *)name);
    return Py_NewRef(caller->cls);
}

/* As a bound method is pickled and copied: by its class and name. */
static PyObject *caller_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    Caller *caller = (Caller *)self;
    PyObject *builtins = PyImport_ImportModule("builtins");
    PyObject *getattr = builtins == NULL ? NULL : PyObject_GetAttrString(builtins, "getattr");
    Py_XDECREF(builtins);
    return getattr == NULL ? NULL : Py_BuildValue("N(Os)", getattr, caller->cls, name_of(caller));
}

/* Names, annotations and documentation are the Python function's. */
static PyObject *get_from_function(PyObject *self, void *name)
{
    return PyObject_GetAttrString(((Caller *)self)->function, name);
}

static PyGetSetDef caller_attributes[] = {
    {"__wrapped__", get_wrapped, NULL, NULL, NULL},
    {"__self__", get_self, NULL, NULL, "__self__"},
    {"__annotations__", get_from_function, NULL, NULL, "__annotations__"},
    {"__doc__", get_from_function, NULL, NULL, "__doc__"},
    {"__name__", get_from_function, NULL, NULL, "__name__"},
    {"__qualname__", get_from_function, NULL, NULL, "__qualname__"},
    {"__module__", get_from_function, NULL, NULL, "__module__"},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef caller_methods[] = {
    {"__reduce__", caller_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef caller_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Caller, call), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

#define CALLER_SLOTS(get)                                                                                      \
    {Py_tp_new, caller_new}, {Py_tp_call, PyVectorcall_Call}, {Py_tp_traverse, caller_traverse},               \
    {Py_tp_clear, caller_clear}, {Py_tp_dealloc, caller_dealloc}, {Py_tp_descr_get, get},                      \
    {Py_tp_getset, caller_attributes}, {Py_tp_methods, caller_methods}, {Py_tp_members, caller_members},       \
    {0, NULL},

static PyType_Slot decoder_slots[] = {CALLER_SLOTS(decoder_get)};
static PyType_Slot encoder_slots[] = {CALLER_SLOTS(encoder_get)};

#define CALLER_FLAGS                                                                                           \
    (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE           \
     | Py_TPFLAGS_METHOD_DESCRIPTOR)

PyType_Spec decoder_spec = {
    .name = "coordwire._speedups._native.Decoder",
    .basicsize = sizeof(Caller),
    .itemsize = sizeof(PyObject *),
    .flags = CALLER_FLAGS,
    .slots = decoder_slots,
};

PyType_Spec encoder_spec = {
    .name = "coordwire._speedups._native.Encoder",
    .basicsize = sizeof(Caller),
    .itemsize = sizeof(PyObject *),
    .flags = CALLER_FLAGS,
    .slots = encoder_slots,
};
