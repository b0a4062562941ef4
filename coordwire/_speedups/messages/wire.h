/* Primitives of the wire: big-endian numbers, unsigned varints, text, and numbers as Python has them.

   Strategy: inline functions over raw pointers. Rules: no reader looks beyond `end`, which its caller gives; a
   varint that isn't canonical is refused; no function here sets an exception except where it makes an object. */

#ifndef COORDWIRE_MESSAGES_WIRE_H
#define COORDWIRE_MESSAGES_WIRE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "../compiler.h"

/* Kafka writes and reads no string of more bytes, though a compact length could say more. */
enum { MAX_STRING = 32767 };

/* The most bytes that an unsigned varint of 32 bits takes. */
enum { MAX_UVARINT = 5 };

static inline uint16_t load16(const uint8_t *at) { return (uint16_t)(at[0] << 8 | at[1]); }

static inline uint32_t load32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline uint64_t load64(const uint8_t *at) { return (uint64_t)load32(at) << 32 | load32(at + 4); }

static inline uint8_t *store16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
    return at + 2;
}

static inline uint8_t *store32(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 24);
    at[1] = (uint8_t)(value >> 16);
    at[2] = (uint8_t)(value >> 8);
    at[3] = (uint8_t)value;
    return at + 4;
}

static inline uint8_t *store64(uint8_t *at, uint64_t value)
{
    return store32(store32(at, (uint32_t)(value >> 32)), (uint32_t)value);
}

static inline double as_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t as_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* An unsigned varint of 32 bits in the fewest bytes that hold it: false for any other. */
static inline bool read_uvarint(const uint8_t **at, const uint8_t *end, uint32_t *value)
{
    const uint8_t *p = *at;
    if (p == end)
        return false;
    uint64_t decoded = *p & 127;
    if (*p++ > 127) {
        int shift = 0;
        do {
            shift += 7;
            if (p == end || shift > 28)
                return false;
            decoded |= (uint64_t)(*p & 127) << shift;
        } while (*p++ > 127);
        if (p[-1] == 0 || decoded >> 32)
            return false;
    }
    *at = p;
    *value = (uint32_t)decoded;
    return true;
}

static inline uint8_t *write_uvarint(uint8_t *at, uint32_t value)
{
    while (value > 127) {
        *at++ = (uint8_t)(value | 128);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

/* Copy bytes; whether all of them are ASCII. */
static inline bool copy_ascii(uint8_t *to, const uint8_t *from, size_t size)
{
    uint64_t all_bits = 0, word;
    for (; size >= 8; to += 8, from += 8, size -= 8) {
        memcpy(&word, from, 8);
        memcpy(to, &word, 8);
        all_bits |= word;
    }
    for (; size; to++, from++, size--) {
        all_bits |= *from;
        *to = *from;
    }
    return (all_bits & UINT64_C(0x8080808080808080)) == 0;
}

/* An int that fits 64 bits; subclasses too: bool, and the enums of names. */
static inline bool as_integer(PyObject *value, long long *number)
{
    if (!PyLong_Check(value))
        return false;
#if PY_VERSION_HEX >= 0x030C0000
    if (PyUnstable_Long_IsCompact((PyLongObject *)value)) {
        *number = PyUnstable_Long_CompactValue((PyLongObject *)value);
        return true;
    }
#else
    if (Py_SIZE(value) >= -1 && Py_SIZE(value) <= 1) {
        *number = Py_SIZE(value) * (long long)((PyLongObject *)value)->ob_digit[0];
        return true;
    }
#endif
    int overflow;
    *number = PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow;
}

#endif
