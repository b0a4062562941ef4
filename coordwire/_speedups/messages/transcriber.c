/* Transcribers: what coordwire.jsontext says of a program's fields, checked.

   Rule: everything that memory safety depends on is checked here, once: there is a row for each op that is on the
   wire, and the transcriber of a struct is of the very program that its op has. */

#include "transcribe.h"

/* A tuple (key, code, place, default, inner) as a TextOp. */
static int read_text_row(const Transcriber *self, PyObject *row, Py_ssize_t index)
{
    const Program *program = self->program;
    const Op *op = program->ops + index;
    TextOp *field = (TextOp *)self->ops + index;
    PyObject *key, *default_value, *inner;
    int code, place;
    if (!PyTuple_Check(row)) {
        PyErr_SetString(PyExc_TypeError, "a row is a tuple");
        return -1;
    }
    if (!PyArg_ParseTuple(row, "SpiOO", &key, &code, &place, &default_value, &inner))
        return -1;
    const bool is_struct = op->kind == STRUCT, is_sequence = op->code == BYTES_TO_END || op->code == STRUCTS_TO_END;
    if (PyBytes_GET_SIZE(key) > UINT16_MAX || place < 0 || place > program->inlined || is_sequence
        || (code && (op->code != INT16 || index >= program->inlined + program->tagged))
        || (default_value != Py_None && !PyBytes_CheckExact(default_value))
        || is_struct != (inner != Py_None) || (is_struct && !Py_IS_TYPE(inner, Py_TYPE(self)))
        || (is_struct && ((Transcriber *)inner)->program != op->inner)) {
        PyErr_SetString(PyExc_ValueError, "the row is wrong");
        return -1;
    }
    *field = (TextOp){
        .key = Py_NewRef(key),
        .default_value = default_value == Py_None ? NULL : Py_NewRef(default_value),
        .inner = is_struct ? (Transcriber *)Py_NewRef(inner) : NULL,
        .place = (uint16_t)place,
        .code = code,
    };
    return 0;
}

/* Whether a tagged field is written before one that isn't; false with an exception if there are too many. */
static bool has_moves(const Transcriber *self)
{
    const Program *program = self->program;
    bool moves = false;
    for (int i = program->inlined; i < Py_SIZE(self); i++)
        moves |= self->ops[i].place < program->inlined;
    if (moves && program->inlined > MAX_MOVED)
        PyErr_SetString(PyExc_ValueError, "too many fields");
    return moves;
}

static PyObject *transcriber_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"program", "rows", NULL};
    PyObject *program, *rows;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!", names, &program, &PyTuple_Type, &rows))
        return NULL;
    PyObject *module = PyType_GetModule(type);
    Engine *engine = module == NULL ? NULL : PyModule_GetState(module);
    if (engine == NULL || !Py_IS_TYPE(program, engine->program_type)) {
        PyErr_SetString(PyExc_TypeError, "expected a program");
        return NULL;
    }
    const Program *typed_program = (Program *)program;
    if (PyTuple_GET_SIZE(rows) != typed_program->inlined + typed_program->tagged) {
        PyErr_SetString(PyExc_ValueError, "expected a row for each field on the wire");
        return NULL;
    }
    Transcriber *self = (Transcriber *)type->tp_alloc(type, PyTuple_GET_SIZE(rows));
    if (self == NULL)
        return NULL;
    self->program = (Program *)Py_NewRef(program);
    for (Py_ssize_t i = 0; i < Py_SIZE(self); i++)
        if (read_text_row(self, PyTuple_GET_ITEM(rows, i), i) < 0)
            goto fail;
    self->moves = has_moves(self);
    if (!PyErr_Occurred())
        return (PyObject *)self;
fail:
    Py_DECREF(self);
    return NULL;
}

static int transcriber_traverse(PyObject *object, visitproc visit, void *arg)
{
    Transcriber *self = (Transcriber *)object;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->program);
    for (Py_ssize_t i = 0; i < Py_SIZE(self); i++)
        Py_VISIT(self->ops[i].inner);
    return 0;
}

static void transcriber_dealloc(PyObject *object)
{
    Transcriber *self = (Transcriber *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    for (Py_ssize_t i = 0; i < Py_SIZE(self); i++) {
        Py_CLEAR(self->ops[i].key);
        Py_CLEAR(self->ops[i].default_value);
        Py_CLEAR(self->ops[i].inner);
    }
    Py_CLEAR(self->program);
    type->tp_free(object);
    Py_DECREF(type);
}

PyDoc_STRVAR(transcribe_doc,
             "transcribe($self, data, header=None, /)\n--\n\n"
             "The JSON text of a message that fills the bytes after a header, and what was found in it: 1 for an\n"
             "error code that is not 0, and 2 for a tagged field at its default. None if it isn't served.");

static PyObject *transcriber_transcribe(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count < 1 || count > 2 || (count == 2 && args[1] != Py_None && !Py_IS_TYPE(args[1], Py_TYPE(self)))) {
        PyErr_SetString(PyExc_TypeError, "transcribe() takes data and a header's transcriber");
        return NULL;
    }
    const Transcriber *header = count == 2 && args[1] != Py_None ? (Transcriber *)args[1] : NULL;
    Py_buffer data;
    if (PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE) < 0)
        return NULL;
    const uint8_t *at = data.buf;
    int facts;
    PyObject *text = transcribe((Transcriber *)self, header, at, at + data.len, &facts);
    PyBuffer_Release(&data);
    if (text == NULL)
        Py_RETURN_NONE;
    return Py_BuildValue("Ni", text, facts);
}

static PyMethodDef transcriber_methods[] = {
    {"transcribe", (PyCFunction)(void (*)(void))transcriber_transcribe, METH_FASTCALL, transcribe_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot transcriber_slots[] = {
    {Py_tp_doc, "Writes the JSON text of a struct's bytes in one version."},
    {Py_tp_new, transcriber_new},
    {Py_tp_traverse, transcriber_traverse},
    {Py_tp_dealloc, transcriber_dealloc},
    {Py_tp_methods, transcriber_methods},
    {0, NULL},
};

PyType_Spec transcriber_spec = {
    .name = "coordwire._speedups._native.Transcriber",
    .basicsize = sizeof(Transcriber),
    .itemsize = sizeof(TextOp),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = transcriber_slots,
};
