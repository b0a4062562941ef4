/* Values without parts to bytes: numbers, booleans, uuids, text and bytes, and the lengths before them.

   Rules: as encode.c has them; a function here returns -1 or NULL when it gives up. */

#ifndef COORDWIRE_MESSAGES_VALUE_WRITERS_H
#define COORDWIRE_MESSAGES_VALUE_WRITERS_H

#include "encode.h"

/* --- lengths --- */

/* A length or count, -1 for null, with room for `extra` bytes after it: where they go. */
static inline uint8_t *put_length(Writer *writer, uint8_t flags, int wide, Py_ssize_t length, size_t extra)
{
    if (length > (wide == 2 ? INT16_MAX : INT32_MAX))
        return NULL;
    uint8_t *at = reserve(writer, MAX_UVARINT + extra);
    if (at == NULL)
        return NULL;
    if (flags & COMPACT)
        return write_uvarint(at, (uint32_t)(length + 1));
    return wide == 2 ? store16(at, (uint16_t)length) : store32(at, (uint32_t)length);
}

static inline int write_length(Writer *writer, uint8_t flags, int wide, Py_ssize_t length)
{
    uint8_t *at = put_length(writer, flags, wide, length, 0);
    return at == NULL ? -1 : wrote(writer, at);
}

static inline int write_sized(Writer *writer, uint8_t flags, int wide, const void *bytes, Py_ssize_t size)
{
    uint8_t *at = put_length(writer, flags, wide, size, (size_t)size);
    if (at == NULL)
        return -1;
    memcpy(at, bytes, (size_t)size);
    return wrote(writer, at + size);
}

/* --- values without parts --- */

static inline uint8_t *store8(uint8_t *at, uint8_t value)
{
    *at = value;
    return at + 1;
}

ALWAYS_INLINE uint8_t *store_number(uint8_t *at, int size, long long number)
{
    switch (size) {
    case 1: return store8(at, (uint8_t)number);
    case 2: return store16(at, (uint16_t)number);
    case 4: return store32(at, (uint32_t)number);
    default: return store64(at, (uint64_t)number);
    }
}

/* Numbers in a row, most often one. */
ALWAYS_INLINE int write_numbers(Writer *writer, PyObject **item, PyObject **stop, int size, long long least,
                                long long most)
{
    uint8_t *at = reserve(writer, (size_t)(stop - item) * (size_t)size);
    if (at == NULL)
        return -1;
    for (; item < stop; item++) {
        long long number;
        if (!is_within(*item, least, most, &number))
            return -1;
        at = store_number(at, size, number);
    }
    return wrote(writer, at);
}

static inline int write_float(Writer *writer, PyObject *value)
{
    uint8_t *at = PyFloat_CheckExact(value) ? reserve(writer, 8) : NULL;
    return at == NULL ? -1 : wrote(writer, store64(at, as_bits(PyFloat_AS_DOUBLE(value))));
}

static inline int write_boolean(Writer *writer, PyObject *value)
{
    uint8_t *at = PyBool_Check(value) ? reserve(writer, 1) : NULL;
    if (at == NULL)
        return -1;
    *at = value == Py_True;
    return wrote(writer, at + 1);
}

static inline int write_uuid(Writer *writer, PyObject *value)
{
    PyObject *number = uuid_number(writer->engine, value);
    uint8_t *at = number == NULL ? NULL : reserve(writer, 16);
    if (at == NULL)
        return -1;
#if PY_VERSION_HEX >= 0x030D0000
    Py_ssize_t size = PyLong_AsNativeBytes(number, at, 16,
                                           Py_ASNATIVEBYTES_BIG_ENDIAN | Py_ASNATIVEBYTES_UNSIGNED_BUFFER
                                               | Py_ASNATIVEBYTES_REJECT_NEGATIVE);
    if (size < 0 || size > 16)
        return -1;
#else
    if (_PyLong_AsByteArray((PyLongObject *)number, at, 16, 0, 0) < 0)
        return -1;
#endif
    return wrote(writer, at + 16);
}

/* Text after a length of `wide` bytes, where it isn't compact. */
static inline int write_string(Writer *writer, uint8_t flags, int wide, PyObject *value)
{
    if (!PyUnicode_CheckExact(value))
        return -1;
    if (PyUnicode_IS_COMPACT_ASCII(value))
        return write_sized(writer, flags, wide, PyUnicode_1BYTE_DATA(value), PyUnicode_GET_LENGTH(value));
    PyObject *wire = PyUnicode_AsUTF8String(value); /* not AsUTF8AndSize, which the text would keep */
    if (wire == NULL)
        return -1;
    int status = write_sized(writer, flags, wide, PyBytes_AS_STRING(wire), PyBytes_GET_SIZE(wire));
    Py_DECREF(wire);
    return status;
}

/* Bytes after a length of `flags`; `bare`: without one. */
static inline int write_octets(Writer *writer, uint8_t flags, bool bare, const void *bytes, Py_ssize_t size)
{
    if (!bare)
        return write_sized(writer, flags, 4, bytes, size);
    uint8_t *at = reserve(writer, (size_t)size);
    if (at == NULL)
        return -1;
    memcpy(at, bytes, (size_t)size);
    return wrote(writer, at + size);
}

static inline int write_bytes(Writer *writer, uint8_t flags, bool bare, PyObject *value)
{
    if (PyBytes_CheckExact(value))
        return write_octets(writer, flags, bare, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value));
    if (!PyByteArray_CheckExact(value) && !PyMemoryView_Check(value))
        return -1;
    Py_buffer view;
    if (PyObject_GetBuffer(value, &view, PyBUF_SIMPLE) < 0)
        return -1;
    int status = write_octets(writer, flags, bare, view.buf, view.len);
    PyBuffer_Release(&view);
    return status;
}

/* Numbers, booleans, uuids, strings or bytes. */
static inline int write_leaves(Writer *writer, uint8_t kind, uint8_t flags, PyObject **item, PyObject **stop)
{
    switch (kind) {
    case INT8: return write_numbers(writer, item, stop, 1, INT8_MIN, INT8_MAX);
    case INT16: return write_numbers(writer, item, stop, 2, INT16_MIN, INT16_MAX);
    case INT32: return write_numbers(writer, item, stop, 4, INT32_MIN, INT32_MAX);
    case INT64: return write_numbers(writer, item, stop, 8, INT64_MIN, INT64_MAX);
    case UINT16: return write_numbers(writer, item, stop, 2, 0, UINT16_MAX);
    case UINT32: return write_numbers(writer, item, stop, 4, 0, UINT32_MAX);
    default: break;
    }
    for (; item < stop; item++) {
        int failed = kind == STRING        ? write_string(writer, flags, 2, *item)
                     : kind == LONG_STRING ? write_string(writer, flags, 4, *item)
                     : kind == BYTES       ? write_bytes(writer, flags, false, *item)
                     : kind == UUID        ? write_uuid(writer, *item)
                     : kind == BOOLEAN     ? write_boolean(writer, *item)
                                           : write_float(writer, *item);
        if (failed)
            return -1;
    }
    return 0;
}

#endif
