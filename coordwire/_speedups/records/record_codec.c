/* The record half of the module: the type `Codec` with the methods that the other files give it, the checksum,
   and the types of all these files.

   Rule: this file is on top. It calls the others, and none of them calls it. */

#include "record_codec.h"

#include "../crc32c/crc32c.h"

static PyMethodDef codec_methods[] = {
    {"read", (PyCFunction)(void (*)(void))codec_read, METH_FASTCALL,
     "read(data, count, base_offset, base_timestamp, stamp)\n--\n\nAn iterator over records; see Run."},
    {"know", codec_know, METH_O, "know(batch)\n--\n\nThe class RecordBatch, which a Walk makes and `records` reads."},
    {"walk", (PyCFunction)(void (*)(void))codec_walk, METH_FASTCALL,
     "walk(batches, data)\n--\n\nAn instance of a subclass of Walk over bytes."},
    {"records", (PyCFunction)(void (*)(void))codec_records, METH_FASTCALL,
     "records(batch, create_time)\n--\n\nAn iterator over a RecordBatch, checks and codec included; see Run."},
    {"encode", (PyCFunction)(void (*)(void))codec_encode, METH_FASTCALL,
     "encode(records, base_offset, last_offset, max_timestamp, producer_id, producer_epoch, base_sequence,"
     " partition_leader_epoch, transactional, control)\n--\n\nA whole batch without codec; None in doubt."},
    {"body", (PyCFunction)(void (*)(void))codec_body, METH_FASTCALL,
     "body(base_offset, base_timestamp)\n--\n\nA Body; the first record sets a base that is None."},
    {0},
};

static PyType_Slot codec_slots[] = {
    {Py_tp_doc, "Codec(record)\n--\n\nReads and writes instances of a slotted class, `Record`."},
    {Py_tp_new, codec_new},
    {Py_tp_traverse, codec_traverse},
    {Py_tp_clear, codec_clear},
    {Py_tp_dealloc, codec_dealloc},
    {Py_tp_methods, codec_methods},
    {0, NULL},
};

static PyType_Spec codec_spec = {
    .name = "coordwire._speedups._native.Codec",
    .basicsize = sizeof(Codec),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = codec_slots,
};

static PyObject *py_crc32c(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count < 1 || count > 2) {
        PyErr_SetString(PyExc_TypeError, "a checksum is of data and perhaps the checksum before it");
        return NULL;
    }
    unsigned long crc = 0;
    if (count == 2) {
        crc = PyLong_AsUnsignedLongMask(args[1]);
        if (crc == (unsigned long)-1 && PyErr_Occurred())
            return NULL;
    }
    Py_buffer view;
    if (PyObject_GetBuffer(args[0], &view, PyBUF_SIMPLE) < 0)
        return NULL;
    const int64_t sum = crc32c((uint32_t)crc, view.buf, (size_t)view.len);
    PyBuffer_Release(&view);
    return sum < 0 ? NULL : PyLong_FromLongLong(sum);
}

static PyObject *py_use_package(PyObject *module, PyObject *is_used)
{
    (void)module;
    const int used = PyObject_IsTrue(is_used);
    if (used < 0 || crc32c_use_package(used) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Whether some bytes are in others: looked for by their last, as memchr is fast where it is rare, as in what a
   codec made. */
static PyObject *py_contains(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Py_buffer data, part;
    (void)module;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "contains takes data and a part");
        return NULL;
    }
    if (PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE) < 0)
        return NULL;
    if (PyObject_GetBuffer(args[1], &part, PyBUF_SIMPLE) < 0) {
        PyBuffer_Release(&data);
        return NULL;
    }
    int is_match = !part.len;
    const char *first = part.buf, *at = data.buf, *end = at + data.len;
    if (!is_match && part.len <= data.len)
        at += part.len - 1;
    else
        at = end;
    while (!is_match && at < end && (at = memchr(at, first[part.len - 1], (size_t)(end - at)))) {
        at++;
        is_match = !memcmp(at - part.len, first, (size_t)part.len);
    }
    PyBuffer_Release(&part);
    PyBuffer_Release(&data);
    return PyBool_FromLong(is_match);
}

static PyMethodDef functions[] = {
    {"contains", (PyCFunction)(void (*)(void))py_contains, METH_FASTCALL,
     "contains(data, part, /)\n--\n\nWhether bytes have others in them; fast where the last of these is rare."},
    {"crc32c", (PyCFunction)(void (*)(void))py_crc32c, METH_FASTCALL,
     "crc32c(data, crc=0, /)\n--\n\nThe CRC-32C of data after bytes that have the checksum crc."},
    {"use_crc32c_package", py_use_package, METH_O,
     "use_crc32c_package(is_used, /)\n--\n\nHave checksums from the package crc32c, as where the processor has no"
     " instruction, or no longer; for tests."},
    {0},
};

int records_exec(PyObject *module)
{
    if (crc32c_use_package(0) < 0 || add_type(module, &codec_spec) < 0 || PyModule_AddFunctions(module, functions) < 0
        || PyModule_AddObjectRef(module, "CRC32C_IS_FAST", crc32c_is_fast() ? Py_True : Py_False) < 0
        || read_exec(module) < 0 || write_exec(module) < 0
        || arrow_exec(module) < 0 || batch_exec(module) < 0 || walk_exec(module) < 0
        || builder_exec(module) < 0)
        return -1;
    return 0;
}
