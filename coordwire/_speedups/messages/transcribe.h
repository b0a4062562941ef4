/* A message's bytes to its JSON text, without objects: what a Transcriber is.

   Strategy: it has a Program, whose steps say what is on the wire, and for each op of it the text's own facts.
   Rules: it accepts the bytes that decode.c accepts, but for unknown tagged fields and fields without a length,
   which it leaves to the Python code. */

#ifndef COORDWIRE_MESSAGES_TRANSCRIBE_H
#define COORDWIRE_MESSAGES_TRANSCRIBE_H

#include "engine.h"
#include "json_text.h"

/* What is found on the way: error codes that are not 0; tagged fields at their defaults, which encode.c would not
   write (all other bytes are as it would write them); "\u0000" in the text. */
enum { HAS_CODES = 1, OTHERWISE = 2, HAS_ZEROS = 4 };

/* Fields of a struct whose places are remembered, for tagged ones that are written before others. */
enum { MAX_MOVED = 40 };

typedef struct Transcriber Transcriber;

typedef struct TextOp {
    PyObject *key;       /* '"name":' in bytes */
    PyObject *default_value;  /* of tagged fields: their default's bytes on the wire; else NULL */
    Transcriber *inner;  /* of structs */
    uint16_t place;      /* of tagged fields: how many of the others are written before it */
    bool code;           /* whether it is an error code */
} TextOp;

struct Transcriber {
    PyObject_VAR_HEAD
    Program *program;
    bool moves; /* whether a tagged field may have to be written before others */
    TextOp ops[]; /* those of the program that are on the wire */
};

/* A length or count, -1 for null. */
static inline const uint8_t *length_of(uint8_t flags, int wide, const uint8_t *at, const uint8_t *end, int64_t *length)
{
    if (flags & COMPACT) {
        uint32_t value;
        if (!read_uvarint(&at, end, &value))
            return NULL;
        *length = (int64_t)value - 1;
        return at;
    }
    if (end - at < wide)
        return NULL;
    *length = wide == 2 ? (int16_t)load16(at) : (int32_t)load32(at);
    return *length < -1 ? NULL : at + wide;
}

/* transcribe.c: the text of a message that fills the bytes after a header; NULL without an exception where it is
   refused or memory is short. `header`: NULL for none. */
PyObject *transcribe(const Transcriber *transcriber, const Transcriber *header, const uint8_t *at,
                     const uint8_t *end, int *found);

#endif
