/* Numbers and bytes as records hold them, into memory that grows. Rule: the caller has reserved the room. */

#ifndef COORDWIRE_RECORDS_PUT_H
#define COORDWIRE_RECORDS_PUT_H

#include <string.h>

#include "../compiler.h"
#include "record_codec.h"

#define MOST INT32_MAX /* bytes of one record, and the largest delta of an offset */

static inline Py_ssize_t varint_size(uint64_t raw)
{
    return raw < 128 ? 1 : raw < 1 << 14 ? 2 : (count_bits(raw) + 6) / 7;
}

static inline uint64_t zigzag(int64_t number)
{
    return (uint64_t)number << 1 ^ -(uint64_t)(number < 0);
}

static inline char *put_varint(char *at, uint64_t raw)
{
    while (raw > 127) {
        *at++ = (char)(raw | 128);
        raw >>= 7;
    }
    *at++ = (char)raw;
    return at;
}

/* Small ones without a call, by pieces that overlap. */
static inline char *put_data(char *at, const char *data, Py_ssize_t size)
{
    if (size > 32) {
        memcpy(at, data, (size_t)size);
    } else if (size >= 16) {
        memcpy(at, data, 16);
        memcpy(at + size - 16, data + size - 16, 16);
    } else if (size >= 8) {
        memcpy(at, data, 8);
        memcpy(at + size - 8, data + size - 8, 8);
    } else if (size >= 4) {
        memcpy(at, data, 4);
        memcpy(at + size - 4, data + size - 4, 4);
    } else {
        for (Py_ssize_t index = 0; index < size; index++)
            at[index] = data[index];
    }
    return at + size;
}

static inline char *put_bytes(char *at, const char *data, Py_ssize_t size)
{
    return put_data(put_varint(at, (uint64_t)size << 1), data, size);
}

static inline int grow(struct bytes *bytes, Py_ssize_t added)
{
    Py_ssize_t room = added > PY_SSIZE_T_MAX / 2 - bytes->used ? -1 : bytes->used + added;
    char *data = room < 0 ? NULL : PyMem_RawRealloc(bytes->data, (size_t)(room += room / 2 + 256));
    if (!data) {
        PyErr_NoMemory();
        return -1;
    }
    bytes->data = data;
    bytes->room = room;
    return 0;
}

static inline int reserve(struct bytes *bytes, Py_ssize_t added)
{
    return added <= bytes->room - bytes->used ? 0 : grow(bytes, added);
}

static inline int plain_int(PyObject *value, int64_t *number)
{
    int overflow;
    if (!value || !PyLong_CheckExact(value))
        return 0;
#if PY_VERSION_HEX < 0x030C0000 && PYLONG_BITS_IN_DIGIT == 30
    const digit *digits = ((PyLongObject *)value)->ob_digit;
    if (Py_SIZE(value) == 1 || Py_SIZE(value) == 2) {
        *number = Py_SIZE(value) == 1 ? digits[0] : digits[0] | (int64_t)digits[1] << 30;
        return 1;
    }
#endif
    *number = PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow;
}

/* The size of a key or value with its length before it; 0 in doubt. */
static inline Py_ssize_t bytes_size(PyObject *value)
{
    if (value == Py_None)
        return 1;
    if (!value || !PyBytes_CheckExact(value) || PyBytes_GET_SIZE(value) > MOST)
        return 0;
    return varint_size((uint64_t)PyBytes_GET_SIZE(value) << 1) + PyBytes_GET_SIZE(value);
}

static inline char *put_value(char *at, PyObject *value)
{
    if (value == Py_None) {
        *at++ = 1;
        return at;
    }
    return put_bytes(at, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value));
}

#endif
