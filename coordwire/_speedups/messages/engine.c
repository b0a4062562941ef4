/* The message engine's part of the module: its types, what it was given, and their lifetimes. */

#include "engine.h"

PyDoc_STRVAR(bind_doc,
             "bind($module, /, uuid, safety, limits, current, kept_back, tag_cost)\n--\n\n"
             "Tell the engine of the Python objects that it needs: the class UUID and the safety of every UUID,\n"
             "the class of budgets, the context variable that holds one, the bytes of memory that a byte may take\n"
             "unseen, and those that an unknown tagged field counts for.");

static PyObject *bind(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"uuid", "safety", "limits", "current", "kept_back", "tag_cost", NULL};
    static const char *const slots[] = {"int", "is_safe", "elements", "memory", "memory_factor", "frame"};
    PyObject *uuid, *safety, *limits, *current;
    long long kept_back, tag_cost;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OO!O!LL", names, &PyType_Type, &uuid, &safety, &PyType_Type,
                                     &limits, &PyContextVar_Type, &current, &kept_back,
                                     &tag_cost))
        return NULL;
    if (tag_cost < 0 || tag_cost > 1 << 20) {
        PyErr_SetString(PyExc_ValueError, "tag_cost");
        return NULL;
    }
    Py_ssize_t offsets[6];
    if (find_slots((PyTypeObject *)uuid, slots, 2, offsets) < 0
        || find_slots((PyTypeObject *)limits, slots + 2, 4, offsets + 2) < 0)
        return NULL;
    if (!is_plain((PyTypeObject *)uuid)) {
        PyErr_SetString(PyExc_TypeError, "this UUID is made in another way");
        return NULL;
    }
    Engine *engine = PyModule_GetState(module);
    Py_XSETREF(engine->uuid_type, (PyTypeObject *)Py_NewRef(uuid));
    Py_XSETREF(engine->safety, Py_NewRef(safety));
    Py_XSETREF(engine->limits_type, (PyTypeObject *)Py_NewRef(limits));
    Py_XSETREF(engine->current, Py_NewRef(current));
    engine->uuid_int = offsets[0];
    engine->uuid_safety = offsets[1];
    engine->elements = offsets[2];
    engine->memory = offsets[3];
    engine->memory_factor = offsets[4];
    engine->frame = offsets[5];
    engine->kept_back = kept_back;
    engine->tag_cost = tag_cost;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"bind", (PyCFunction)(void (*)(void))bind, METH_VARARGS | METH_KEYWORDS, bind_doc},
    {NULL, NULL, 0, NULL},
};

const Py_ssize_t engine_size = sizeof(Engine);

int engine_exec(PyObject *module)
{
    Engine *engine = PyModule_GetState(module);
    if ((engine->program_type = make_type(module, &program_spec)) == NULL
        || (engine->decoder_type = make_type(module, &decoder_spec)) == NULL
        || (engine->encoder_type = make_type(module, &encoder_spec)) == NULL
        || (engine->framer_type = make_type(module, &framer_spec)) == NULL
        || (engine->transcriber_type = make_type(module, &transcriber_spec)) == NULL
        || add_type(module, &exchange_spec) < 0)
        return -1;
    for (int i = 0; i < SMALLS; i++)
        if ((engine->smalls[i] = PyLong_FromLong(LEAST_SMALL + i)) == NULL)
            return -1;
    if ((engine->interned.empty = PyUnicode_New(0, 0)) == NULL)
        return -1;
    if ((engine->version = PyUnicode_InternFromString("version")) == NULL
        || (engine->strict = PyUnicode_InternFromString("strict")) == NULL
        || (engine->deviations = PyUnicode_InternFromString("deviations")) == NULL
        || (engine->api_key = PyUnicode_InternFromString("api_key")) == NULL)
        return -1;
    return PyModule_AddFunctions(module, functions);
}

int engine_traverse(PyObject *module, visitproc visit, void *arg)
{
    Engine *engine = PyModule_GetState(module);
    Py_VISIT(engine->program_type);
    Py_VISIT(engine->decoder_type);
    Py_VISIT(engine->encoder_type);
    Py_VISIT(engine->framer_type);
    Py_VISIT(engine->transcriber_type);
    Py_VISIT(engine->uuid_type);
    Py_VISIT(engine->limits_type);
    Py_VISIT(engine->safety);
    Py_VISIT(engine->current);
    return 0;
}

int engine_clear(PyObject *module)
{
    Engine *engine = PyModule_GetState(module);
    Py_CLEAR(engine->program_type);
    Py_CLEAR(engine->decoder_type);
    Py_CLEAR(engine->encoder_type);
    Py_CLEAR(engine->framer_type);
    Py_CLEAR(engine->transcriber_type);
    Py_CLEAR(engine->uuid_type);
    Py_CLEAR(engine->limits_type);
    Py_CLEAR(engine->safety);
    Py_CLEAR(engine->current);
    for (int i = 0; i < SMALLS; i++)
        Py_CLEAR(engine->smalls[i]);
    clear_interned(&engine->interned);
    Py_CLEAR(engine->version);
    Py_CLEAR(engine->strict);
    Py_CLEAR(engine->deviations);
    Py_CLEAR(engine->api_key);
    return 0;
}
