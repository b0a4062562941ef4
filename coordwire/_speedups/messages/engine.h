/* The message engine's own types: what a program is, and what its parts offer to each other.

   Strategy: `coordwire.codec.program` compiles a struct's rows in one version to a Program: a flat array of Ops,
   and from them the Steps that decode.c and encode.c take. Objects are read and filled by the offsets of their
   slots, taken from the class's own member descriptors when the program is made.

   Rules: a program never changes once it is made, holds inner programs only (so that it can't hold itself),
   and is at most MAX_DEPTH deep. Whatever the engine doesn't accept it leaves to the Python code, without an
   exception: it never words a refusal. The interpreter's lock is held throughout; no Python code runs, but for
   what a collection, or the end of a shared UUID, may call while bytes are read: nothing is borrowed then that
   such code could drop. */

#ifndef COORDWIRE_MESSAGES_ENGINE_H
#define COORDWIRE_MESSAGES_ENGINE_H

#include "../slots.h"
#include "freelist.h"
#include "intern.h"
#include "wire.h"

enum { MAX_DEPTH = 32 };

/* Kafka's limits, as coordwire.limits has them. */
enum { MAX_ARRAY_ELEMENTS = 1000000, MAX_TAGGED_FIELDS = 10000 };

/* Types of fields, by the numbers that coordwire.codec.program gives them. What follows them are not types:
   first what a field can be otherwise (an array, bytes without a length, structs without a count), then what
   else a step can be. */
enum {
    INT8, INT16, INT32, INT64, UINT16, UINT32, FLOAT64, BOOLEAN, UUID, STRING, BYTES, STRUCT,
    LONG_STRING, /* text after an int32 length */
    KINDS,
    ARRAY = KINDS, BYTES_TO_END, STRUCTS_TO_END,
    COMPACT_STRING, COMPACT_BYTES,
    MARKED,        /* a struct that may be null */
    TAGGED_MARKED, /* the same in a tagged field, where another number says so */
    TAGS,          /* the section of tagged fields */
    CONSTANT,      /* a default that can't be changed */
    FRESH_ONE,     /* a default that can; and either, if the slot is empty */
    ABSENT,        /* a field that the version lacks, and that can't be dropped */
    NO_TAGS,       /* where there is no section */
    END,
};

/* What else is true of a field. */
enum {
    IS_ARRAY = 1,
    NULLABLE = 2,   /* null may be in this version */
    COMPACT = 4,    /* lengths are varints, one more than what they tell */
    SHORT = 8,      /* the count is an int16 */
    TO_END = 16,    /* without length or count, up to the end */
    IGNORABLE = 32, /* dropped where the version lacks it, not refused */
    FRESH = 64,     /* the default is a new list or struct */
    EVER_NULL = 128, /* null may be in some version */
    ALL_FLAGS = 255,
};

typedef struct Program Program;

typedef struct Op {
    uint8_t code;       /* a kind, or ARRAY, BYTES_TO_END, STRUCTS_TO_END */
    uint8_t kind;       /* the type, of elements if it is an array */
    uint8_t flags;
    Py_ssize_t offset;  /* of the slot in its object */
    Program *inner;     /* of structs */
    PyObject *default_value; /* the default; of FRESH ones None */
    int64_t min_size;   /* bytes that an element takes at least on the wire; above 0 */
    int64_t memory_cost; /* bytes that an element may take in memory */
    int64_t tag;        /* of tagged fields; -1 of others */
} Op;

/* What decoding or encoding does next: an op's value, or what else a struct needs. */
typedef struct Step {
    uint8_t code, flags;
    uint16_t offset; /* of the slot in its object */
    int32_t rest;    /* decoding: bytes that the steps after it take at least; encoding: the room that they need */
    union {
        const Op *op;
        const Program *program; /* of TAGS: the one that it belongs to */
        PyObject *default_value; /* of CONSTANT, borrowed from its op */
    };
} Step;

struct Program {
    PyObject_VAR_HEAD
    PyTypeObject *cls;
    Py_ssize_t tags;  /* the offset of unknown tagged fields */
    uint16_t inlined; /* ops by place: first those on the wire in order, then tagged ones by number, */
    uint16_t tagged;  /* then those that the version lacks: the rest */
    uint8_t depth;
    bool flexible;
    int32_t min_size; /* bytes that a struct takes at least on the wire */
    int32_t room;     /* bytes that its numbers and lengths take at most */
    Freelist *freelist;     /* where its objects wait; NULL if they aren't made and freed by freelist.c */
    Step *steps;      /* of decoding; the others follow them */
    Step *known;      /* the same of each tagged field, by twos */
    Step *writing;    /* of encoding */
    PyObject *module; /* owned: a type that is cleared lets go of it while its objects live */
    Engine *engine;   /* in its state */
    Op ops[];
};

/* The numbers of which Python keeps one object each. */
enum { LEAST_SMALL = -5, SMALLS = 262 };

struct Engine {
    PyObject *smalls[SMALLS];
    InternTable interned;
    PyTypeObject *program_type, *decoder_type, *encoder_type;
    PyTypeObject *framer_type, *transcriber_type;
    PyObject *version, *strict, *deviations, *api_key; /* names of arguments, and of an attribute */
    /* What bind() was given; NULL before. */
    PyTypeObject *uuid_type, *limits_type;
    PyObject *safety;  /* of every UUID */
    PyObject *current; /* the context variable of the budgets */
    Py_ssize_t uuid_int, uuid_safety;
    Py_ssize_t elements, memory, memory_factor, frame;
    int64_t kept_back; /* bytes of memory a byte that the factor keeps for texts and numbers */
    int64_t tag_cost;  /* bytes of memory that an unknown tagged field counts for */
};

/* A number, the interpreter's own object where it is small. */
static inline PyObject *read_number(Engine *engine, int64_t number)
{
    uint64_t at = (uint64_t)number - (uint64_t)LEAST_SMALL;
    return at < SMALLS ? Py_NewRef(engine->smalls[at]) : read_interned_number(&engine->interned, number);
}

/* program.c */
extern PyType_Spec program_spec;
/* Whether objects of a class are made in the common way, and have no dictionary. */
bool is_plain(PyTypeObject *cls);

/* sizes.c: bytes that each type takes on the wire, as an element; 1 where its length decides. */
extern const uint8_t wire_sizes[KINDS];
/* Bytes that a field takes at least on the wire. */
int32_t least_of(const Op *op);

/* intern.c: the UUID of 16 bytes; NULL with an exception where it can't be made. */
PyObject *read_uuid(Engine *engine, const uint8_t *at);

typedef struct Budgets {
    int64_t elements, memory;
} Budgets;

/* Whether a tag is a field that only other versions have: Kafka refuses its number here, known or not. */
static inline bool is_barred(const Program *program, uint32_t tag)
{
    const Op *op = program->ops + program->inlined + program->tagged, *stop = program->ops + Py_SIZE(program);
    while (op < stop && op->tag != tag)
        op++;
    return op < stop;
}

/* decode.c: the message from `start` on, and where it ends; NULL without an exception where it is refused.
   `budgets`: NULL for the context's. `has_zero`: set if a text has a zero; NULL where that is not asked. */
PyObject *engine_decode(const Program *program, const uint8_t *start, const uint8_t *end, const Budgets *budgets,
                        const uint8_t **stop, bool *has_zero);

/* budgets.c: the context's budgets for `size` bytes; false if they are out of the engine's range. */
bool engine_budgets(const Engine *engine, int64_t size, Budgets *budgets);

/* Whether the context's budgets allow a frame of so many bytes; false too if that is unknown. */
bool engine_takes(const Engine *engine, int64_t size);

/* encode.c: a message's bytes; NULL without an exception where it is refused. `head`: NULL, or the program of a
   header that comes first, both after the size of both. */
PyObject *engine_encode(const Program *program, PyObject *message, const Program *head, PyObject *header);

/* dispatch.c: what is in each class as `decode`, `_decode_at` and `encode`. */
extern PyType_Spec decoder_spec, encoder_spec;

/* transcriber.c */
extern PyType_Spec transcriber_spec;

/* frames.c, exchange.c */
extern PyType_Spec framer_spec, exchange_spec;

#endif
