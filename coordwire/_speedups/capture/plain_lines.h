/* `PlainLines`: what its two files share; see plain_lines.c.

   Rule: what a function borrows of an entry holds until Python code runs. */

#ifndef COORDWIRE_CAPTURE_PLAIN_LINES_H
#define COORDWIRE_CAPTURE_PLAIN_LINES_H

#include "../messages/field_lines.h"
#include "../slots.h"

enum {
    CAPTURE, NUMBER, FLOW, TIME_NS, BODY, API_KEY, API_VERSION, BODY_VERSION, CORRELATION_ID, CLIENT_ID, REQUEST,
    PACKET, FIRST_PACKET, CONNECTION, TEXT, SLOTS
};

/* The rows of the tables, and a body's text. beginning: how a body begins that names its subject; fields: the rows
   of put_field_lines(), None but for trees. */
enum { API_TRANSCRIBER, API_HEADER, API_IS_NAMED, API_IS_HARMLESS, API_TEXT, API_BEGINNING, API_FIELDS, API_SIZE };
enum { PLACE_CONNECTION, PLACE_FLOW, PLACE_CAPTURE, PLACE_BEFORE, PLACE_TEXT, PLACE_SIZE };
enum { SECOND_TEXT, SECOND_END, SECOND_SIZE };
enum { BODY_JSON, BODY_FACTS, BODY_SIZE };

#define SECOND 1000000000LL

typedef struct {
    PyObject_HEAD
    PyTypeObject *entry, *lazy, *strict_lazy, *transcriber;
    PyObject *apis, *places, *seconds, *subjects; /* subjects: NULL for JSON */
    PyObject *learn, *body_text, *has_nothing_to_redact, *errors, *subject; /* has_nothing_to_redact: NULL to show all */
    int number_width, latency_width, tree_width; /* tree_width: 0 but for trees */
    Py_ssize_t slots[SLOTS];
} PlainLines;

/* What is read of an entry. Owned, where it is not NULL: request (of an answer), api, body, client, errors, subject.
   answer: the answer of the block that begins with the entry; NULL for none. */
typedef struct {
    PyObject *entry, *answer, *request, *api, *body, *client, *errors, *subject;
    PyObject *place, *second; /* borrowed */
    int64_t key, version, facts, time_ns, packet, latency;
    bool has_latency;
    int digits;
} Frame;

static inline PyObject *value_of(const PlainLines *lines, PyObject *entry, int index)
{
    return slot_value(entry, lines->slots[index]);
}

static inline bool number_of(const PlainLines *lines, PyObject *entry, int index, int64_t *number)
{
    return slot_number(entry, lines->slots[index], number);
}

/* line_texts.c: write an entry's line, whose place is known, and for a tree those of its fields; false where it is
   left to Python. */
bool put_json(const PlainLines *lines, const Frame *frame, JsonText *line);
bool put_line(const PlainLines *lines, const Frame *frame, JsonText *line);
bool put_tree(const PlainLines *lines, const Frame *frame, JsonText *line);

#endif
