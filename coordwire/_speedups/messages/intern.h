/* Values that come again and again: topics, members and hosts, ports and epochs, topic ids.

   Strategy: tables of a fixed size, each value at the one place that its hash gives; a value that is found
   there is not made once more. It gets there when it is seen twice in a row at that place, so that what comes
   once costs no more than a look, and isn't kept. The tables belong to the module, and last from message to
   message. Rules: what is found is compared in whole, never by its hash alone; only what can't change is shared,
   and a UUID, which can by force, only while it is what was kept. What untrusted bytes can have kept is bounded by
   the tables and by LONGEST_SHARED. */

#ifndef COORDWIRE_MESSAGES_INTERN_H
#define COORDWIRE_MESSAGES_INTERN_H

#include "wire.h"

enum {
    TEXT_BITS = 10,
    NUMBER_BITS = 8,
    UUID_BITS = 7,
    LONGEST_SHARED = 96, /* bytes of text */
};

typedef struct Interned {
    uint64_t tag;       /* of the object that is kept: a hash of the text, or the number */
    uint64_t candidate; /* of the last one that was seen and isn't kept */
    PyObject *object;   /* NULL for none */
} Interned;

typedef struct InternedUuid {
    uint64_t high, low, candidate;
    PyObject *number, *object; /* NULL for none */
} InternedUuid;

typedef struct InternTable {
    PyObject *empty; /* text */
    Interned texts[1 << TEXT_BITS];
    Interned numbers[1 << NUMBER_BITS];
    InternedUuid uuids[1 << UUID_BITS];
} InternTable;

#define INTERN_FACTOR UINT64_C(0x9E3779B97F4A7C15)

/* intern.c; each NULL with an exception where the value can't be made. */
PyObject *share_text(Interned *place, uint64_t tag, const uint8_t *at, size_t size);
PyObject *share_number(Interned *place, int64_t number);
/* Text of strict UTF-8 that isn't shared. */
PyObject *make_text(const uint8_t *at, size_t size);
void clear_interned(InternTable *interned);

static inline uint64_t load_word(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, 8);
    return word;
}

/* The words of 2 to 7 bytes, as one: each byte is in it. */
static inline uint64_t load_few(const uint8_t *at, size_t size)
{
    uint32_t first, last;
    uint16_t head, tail;
    if (size >= 4) {
        memcpy(&first, at, 4);
        memcpy(&last, at + size - 4, 4);
        return (uint64_t)first << 32 | last;
    }
    memcpy(&head, at, 2);
    memcpy(&tail, at + size - 2, 2);
    return (uint64_t)head << 32 | tail;
}

/* A hash of 2 bytes or more, of the first and the last 16: its first bits tell most. */
static inline uint64_t text_tag(const uint8_t *at, size_t size)
{
    const uint64_t factor = INTERN_FACTOR;
    if (size < 8)
        return (size * factor ^ load_few(at, size)) * factor;
    uint64_t tag = load_word(at) * factor + load_word(at + size - 8) * (3 * factor) + size * (5 * factor);
    if (size > 16)
        tag += load_word(at + 8) * (7 * factor) + load_word(at + size - 16) * (9 * factor);
    return tag;
}

static inline bool is_same(const uint8_t *a, const uint8_t *b, size_t size)
{
    if (size < 8)
        return load_few(a, size) == load_few(b, size);
    if (size <= 16)
        return load_word(a) == load_word(b) && load_word(a + size - 8) == load_word(b + size - 8);
    return memcmp(a, b, size) == 0;
}

/* Text of strict UTF-8; NULL with an exception where it isn't. */
static inline PyObject *read_text(InternTable *interned, const uint8_t *at, size_t size)
{
    if (size == 0)
        return Py_NewRef(interned->empty);
    if (size < 2 || size > LONGEST_SHARED)
        return make_text(at, size);
    uint64_t tag = text_tag(at, size);
    Interned *place = interned->texts + (tag >> (64 - TEXT_BITS));
    PyObject *object = place->object;
    if (place->tag == tag && object != NULL && (size_t)PyUnicode_GET_LENGTH(object) == size
        && is_same((const uint8_t *)((PyASCIIObject *)object + 1), at, size))
        return Py_NewRef(object);
    return share_text(place, tag, at, size);
}

/* A number of which Python doesn't keep one object. */
static inline PyObject *read_interned_number(InternTable *interned, int64_t number)
{
    Interned *place = interned->numbers + ((uint64_t)number * INTERN_FACTOR >> (64 - NUMBER_BITS));
    if (place->tag == (uint64_t)number && place->object != NULL)
        return Py_NewRef(place->object);
    return share_number(place, number);
}

#endif
