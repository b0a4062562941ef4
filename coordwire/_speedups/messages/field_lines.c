/* Lines for reading: walks a message's bytes by its program, as transcribe.c does.

   Strategy: that of `MessageLines`: what fits on the rest of a line is written flat, else its text is dropped again
   and the field is opened up, from the same bytes. A flat text ends where its room does, so that the work is linear.
   Rules: the bytes are those of a whole message (transcribe.c has accepted them); no byte is read without a look at
   the end all the same. Whatever the lines show otherwise than as it is (texts that are long or not printable
   ASCII, floats, unknown tagged fields) or would not end soon is declined. A function returns where its value
   ends, and NULL when it is declined or takes more than its room. Python code runs for the texts of numbers only. */

#include "field_lines.h"

enum { MOST_LINES = 1000000, LONGEST_TEXT = 400, MOST_SHOWN = 32, LEAST_SHOWN = 8, TEXT_ROOM = LONGEST_TEXT + 32 };

typedef struct Walk {
    JsonText *text;
    const uint8_t *end;
    size_t hidden; /* bytes of the text beyond one for each character */
    int64_t width;
    int lines;
    bool is_declined;
} Walk;

/* The fields of a struct, one after the other. */
typedef struct Fields {
    const Transcriber *transcriber;
    PyObject *rows;
    const uint8_t *at; /* where the next one begins */
    int index;
    int64_t tags; /* that remain; -1 before their section */
} Fields;

/* One of them. `stop`: where a tagged one ends; NULL for the others. */
typedef struct Part {
    const Op *op;
    const Step *step;
    const Transcriber *inner;
    PyObject *names, *rows;
    const char *label;
    int64_t size; /* of the label */
    const uint8_t *at, *stop;
} Part;

/* Where a text ended. */
typedef struct Mark {
    size_t size, hidden;
} Mark;

static const uint8_t *put_flat_struct(Walk *walk, const Transcriber *transcriber, PyObject *rows, int64_t room,
                                      bool has_braces, const uint8_t *at);
static const uint8_t *put_open_struct(Walk *walk, const Transcriber *transcriber, PyObject *rows, int depth,
                                      bool is_packed, const uint8_t *at);

static const uint8_t *decline(Walk *walk)
{
    walk->is_declined = true;
    return NULL;
}

static Mark mark_of(const Walk *walk) { return (Mark){walk->text->size, walk->hidden}; }

static void drop(Walk *walk, Mark mark)
{
    walk->text->size = mark.size;
    walk->hidden = mark.hidden;
}

/* Characters that were written since a mark. */
static int64_t length_since(const Walk *walk, Mark mark)
{
    return (int64_t)(walk->text->size - mark.size) - (int64_t)(walk->hidden - mark.hidden);
}

static bool put(Walk *walk, const char *bytes, int64_t size)
{
    if (!make_room(walk->text, (size_t)size)) {
        walk->is_declined = true;
        return false;
    }
    put_plain(walk->text, bytes, (size_t)size);
    return true;
}

/* Put text before what was written since a mark. */
static bool put_before(Walk *walk, Mark mark, const char *bytes, int blanks)
{
    JsonText *text = walk->text;
    const size_t size = strlen(bytes), after = text->size - mark.size, added = size + (size_t)blanks;
    if (!make_room(text, added)) {
        walk->is_declined = true;
        return false;
    }
    char *const to = text->data + mark.size;
    memmove(to + added, to, after);
    memcpy(to, bytes, size);
    memset(to + size, ' ', (size_t)blanks);
    text->size += added;
    return true;
}

static bool end_line(Walk *walk)
{
    walk->is_declined |= ++walk->lines > MOST_LINES;
    return !walk->is_declined && put(walk, "\n", 1);
}

static bool begin_line(Walk *walk, int depth) { return put_before(walk, mark_of(walk), "", 2 * depth); }

/* --- fields --- */

static bool find_row(Walk *walk, const Fields *fields, int index, Part *part)
{
    PyObject *row = PyTuple_GET_ITEM(fields->rows, index);
    const Program *program = fields->transcriber->program;
    const int tag = index - program->inlined;
    if (!PyTuple_CheckExact(row) || PyTuple_GET_SIZE(row) != 3 || !PyBytes_CheckExact(PyTuple_GET_ITEM(row, 0))) {
        walk->is_declined = true;
        return false;
    }
    *part = (Part){
        .op = program->ops + index,
        .step = tag < 0 ? program->steps + index : program->known + 2 * tag,
        .inner = fields->transcriber->ops[index].inner,
        .names = PyTuple_GET_ITEM(row, 1),
        .rows = PyTuple_GET_ITEM(row, 2),
        .label = PyBytes_AS_STRING(PyTuple_GET_ITEM(row, 0)),
        .size = PyBytes_GET_SIZE(PyTuple_GET_ITEM(row, 0)),
        .at = fields->at,
    };
    return true;
}

static bool begin_fields(Walk *walk, const Transcriber *transcriber, PyObject *rows, const uint8_t *at, Fields *fields)
{
    *fields = (Fields){.transcriber = transcriber, .rows = rows, .at = at, .tags = -1};
    walk->is_declined |= !PyTuple_CheckExact(rows) || PyTuple_GET_SIZE(rows) != Py_SIZE(transcriber);
    return !walk->is_declined;
}

/* The next tagged field that is set. */
static bool next_tagged(Walk *walk, Fields *fields, Part *part)
{
    const Program *program = fields->transcriber->program;
    uint32_t count, tag, size;
    if (fields->tags < 0) {
        if (!read_uvarint(&fields->at, walk->end, &count))
            return decline(walk) != NULL;
        fields->tags = count;
    }
    while (fields->tags) {
        fields->tags--;
        if (!read_uvarint(&fields->at, walk->end, &tag) || !read_uvarint(&fields->at, walk->end, &size)
            || size > walk->end - fields->at)
            return decline(walk) != NULL;
        const int stop = program->inlined + program->tagged;
        while (fields->index < stop && program->ops[fields->index].tag < tag)
            fields->index++;
        if (fields->index == stop || program->ops[fields->index].tag != tag)
            return decline(walk) != NULL;
        const PyObject *standard = fields->transcriber->ops[fields->index].default_value;
        if (standard != NULL && Py_SIZE(standard) == (Py_ssize_t)size
            && memcmp(PyBytes_AS_STRING((PyObject *)standard), fields->at, size) == 0) {
            fields->at += size;
            continue;
        }
        if (!find_row(walk, fields, fields->index++, part))
            return false;
        part->stop = fields->at + size;
        return true;
    }
    return false;
}

/* The next field that is shown; false after the last one, and where the message is declined. */
static bool next_field(Walk *walk, Fields *fields, Part *part)
{
    const Program *program = fields->transcriber->program;
    if (walk->is_declined)
        return false;
    if (fields->index < program->inlined)
        return find_row(walk, fields, fields->index++, part);
    return program->flexible && next_tagged(walk, fields, part);
}

/* Go on after a field's value. */
static bool pass(Walk *walk, Fields *fields, const Part *part, const uint8_t *at)
{
    walk->is_declined |= at == NULL || (part->stop != NULL && at != part->stop);
    fields->at = at;
    return !walk->is_declined;
}

/* --- values without parts --- */

static const uint8_t *put_null(Walk *walk, const uint8_t *at) { return put(walk, "null", 4) ? at : NULL; }

static bool is_printable(const uint8_t *at, int64_t size)
{
    for (const uint8_t *const stop = at + size; at < stop; at++)
        if (*at < ' ' || *at > '~')
            return false;
    return true;
}

/* So many bytes, and the first of them in hexadecimal. */
static void put_octets(Walk *walk, const uint8_t *at, int64_t size, int64_t room)
{
    static const char hex[] = "0123456789abcdef";
    JsonText *text = walk->text;
    int64_t count = room - 24 < 2 * LEAST_SHOWN ? LEAST_SHOWN : (room - 24) / 2;
    if (count > MOST_SHOWN)
        count = MOST_SHOWN;
    put_grouped(text, size);
    put_plain(text, " bytes", size == 1 ? 5 : 6);
    if (!size)
        return;
    put_char(text, ' ');
    for (int64_t i = 0; i < count && i < size; i++) {
        put_char(text, hex[at[i] >> 4]);
        put_char(text, hex[at[i] & 15]);
    }
    if (size > count) {
        put_plain(text, "\xe2\x80\xa6", 3);
        walk->hidden += 2;
    }
}

static const uint8_t *put_sized(Walk *walk, uint8_t kind, uint8_t flags, int64_t room, const uint8_t *at)
{
    int64_t size;
    at = length_of(flags, kind == STRING ? 2 : 4, at, walk->end, &size);
    if (at == NULL || size > walk->end - at)
        return decline(walk);
    if (size < 0)
        return put_null(walk, at);
    if (!make_room(walk->text, TEXT_ROOM) || (kind != BYTES && (size > LONGEST_TEXT || !is_printable(at, size))))
        return decline(walk);
    if (kind == BYTES)
        put_octets(walk, at, size, room);
    else {
        put_char(walk->text, '"');
        put_plain(walk->text, (const char *)at, (size_t)size);
        put_char(walk->text, '"');
    }
    return at + size;
}

/* The text that Python has for a number. */
static bool put_name(Walk *walk, PyObject *names, int64_t number)
{
    PyObject *key = PyLong_FromLongLong(number);
    PyObject *name = key == NULL ? NULL : PyObject_GetItem(names, key);
    const bool is_known = name != NULL && PyUnicode_CheckExact(name) && PyUnicode_IS_COMPACT_ASCII(name)
                          && put(walk, (const char *)PyUnicode_1BYTE_DATA(name), PyUnicode_GET_LENGTH(name));
    PyErr_Clear();
    Py_XDECREF(key);
    Py_XDECREF(name);
    return is_known;
}

static const uint8_t *put_fixed(Walk *walk, const Part *part, const uint8_t *at)
{
    const uint8_t kind = part->op->kind;
    JsonText *text = walk->text;
    int64_t number = 0;
    if (walk->end - at < wire_sizes[kind] || !make_room(text, 2 * NUMBER_ROOM))
        return decline(walk);
    switch (kind) {
    case INT8: number = (int8_t)*at; break;
    case INT16: number = (int16_t)load16(at); break;
    case INT32: number = (int32_t)load32(at); break;
    case INT64: number = (int64_t)load64(at); break;
    case UINT16: number = load16(at); break;
    case UINT32: number = load32(at); break;
    case BOOLEAN: put_plain(text, *at ? "true" : "false", *at ? 4 : 5); return at + 1;
    case UUID: put_bare_uuid(text, at); return at + wire_sizes[UUID];
    default: return decline(walk);
    }
    if (part->names == Py_None)
        put_number(text, number);
    else if (!put_name(walk, part->names, number))
        return decline(walk);
    return at + wire_sizes[kind];
}

static const uint8_t *put_leaf(Walk *walk, const Part *part, uint8_t flags, int64_t room, const uint8_t *at)
{
    const uint8_t kind = part->op->kind;
    if (kind == STRING || kind == LONG_STRING || kind == BYTES)
        return put_sized(walk, kind, flags, room, at);
    return put_fixed(walk, part, at);
}

/* --- values with parts --- */

static bool is_array(const Part *part) { return part->step->code == ARRAY; }

static bool is_struct(const Part *part) { return part->op->kind == STRUCT && !is_array(part); }

/* The number of an array's elements, -1 for null; elements that are not there are declined. */
static const uint8_t *count_of(Walk *walk, const Part *part, int64_t *count)
{
    const Op *op = part->op;
    const uint8_t *at = length_of(op->flags, op->flags & SHORT ? 2 : 4, part->at, walk->end, count);
    return at == NULL || *count * op->min_size > walk->end - at ? decline(walk) : at;
}

/* A struct's first byte, after its marker if it has one; at its end with `is_null`. */
static const uint8_t *open_struct(Walk *walk, const Part *part, bool *is_null)
{
    const uint8_t code = part->step->code;
    *is_null = false;
    if (code == STRUCT)
        return part->at;
    if ((code != MARKED && code != TAGGED_MARKED) || part->at == walk->end)
        return decline(walk);
    *is_null = *part->at == (code == MARKED ? UINT8_MAX : 0);
    return part->at + 1;
}

static const uint8_t *put_flat_array(Walk *walk, const Part *part, int64_t room)
{
    int64_t count;
    const uint8_t *at = count_of(walk, part, &count);
    if (at == NULL || count < 0)
        return at == NULL ? NULL : put_null(walk, at);
    const Mark start = mark_of(walk);
    if (!put(walk, "[", 1))
        return NULL;
    for (int64_t i = 0; i < count; i++) {
        if (i && !put(walk, ", ", 2))
            return NULL;
        const int64_t remaining = room - length_since(walk, start) - 1;
        at = part->op->kind == STRUCT ? put_flat_struct(walk, part->inner, part->rows, remaining, true, at)
                                      : put_leaf(walk, part, part->op->flags & (uint8_t)~NULLABLE, walk->width, at);
        if (at == NULL || length_since(walk, start) + 1 > room)
            return NULL;
    }
    return put(walk, "]", 1) ? at : NULL;
}

/* A field's value on one line. */
static const uint8_t *put_flat(Walk *walk, const Part *part, int64_t room)
{
    if (is_array(part))
        return put_flat_array(walk, part, room);
    if (!is_struct(part))
        return put_leaf(walk, part, part->step->flags, room, part->at);
    bool is_null;
    const uint8_t *at = open_struct(walk, part, &is_null);
    if (at == NULL || is_null)
        return at == NULL ? NULL : put_null(walk, at);
    return put_flat_struct(walk, part->inner, part->rows, room, true, at);
}

static const uint8_t *put_flat_struct(Walk *walk, const Transcriber *transcriber, PyObject *rows, int64_t room,
                                      bool has_braces, const uint8_t *at)
{
    Fields fields;
    Part part;
    const Mark start = mark_of(walk);
    if (!begin_fields(walk, transcriber, rows, at, &fields) || (has_braces && !put(walk, "{", 1)))
        return NULL;
    for (bool is_first = true; next_field(walk, &fields, &part); is_first = false) {
        if ((!is_first && !put(walk, ", ", 2)) || !put(walk, part.label, part.size))
            return NULL;
        const uint8_t *after = put_flat(walk, &part, room - length_since(walk, start) - has_braces);
        if (after == NULL || length_since(walk, start) + has_braces > room || !pass(walk, &fields, &part, after))
            return NULL;
    }
    return walk->is_declined || (has_braces && !put(walk, "}", 1)) ? NULL : fields.at;
}

/* --- opened up --- */

static const uint8_t *put_open_element(Walk *walk, const Part *part, int depth, const uint8_t *at)
{
    if (!begin_line(walk, depth + 1) || !put(walk, "- ", 2))
        return NULL;
    if (part->op->kind != STRUCT) {
        at = put_leaf(walk, part, part->op->flags & (uint8_t)~NULLABLE, walk->width, at);
        return at != NULL && end_line(walk) ? at : NULL;
    }
    const Mark start = mark_of(walk);
    const uint8_t *after = put_flat_struct(walk, part->inner, part->rows, walk->width - 2 * depth - 6, false, at);
    if (after != NULL)
        return end_line(walk) ? after : NULL;
    const size_t before = start.size - 2 * ((size_t)depth + 2);
    drop(walk, (Mark){before, start.hidden});
    after = walk->is_declined ? NULL : put_open_struct(walk, part->inner, part->rows, depth + 2, true, at);
    if (after != NULL && walk->text->size > before)
        walk->text->data[start.size - 2] = '-'; /* in the place of a blank */
    return after;
}

static const uint8_t *put_open_array(Walk *walk, const Part *part, int depth)
{
    int64_t count;
    const uint8_t *at = count_of(walk, part, &count);
    if (at == NULL || !put(walk, part->label, part->size - (count < 2)) || !make_room(walk->text, 2 * NUMBER_ROOM))
        return NULL;
    if (count > 1) {
        put_number(walk->text, count);
        put_plain(walk->text, " elements", 9);
    }
    if (!end_line(walk))
        return NULL;
    for (; count > 0 && at != NULL; count--)
        at = put_open_element(walk, part, depth, at);
    return at;
}

/* A field on lines of its own. */
static const uint8_t *put_field(Walk *walk, const Part *part, int depth)
{
    if (!begin_line(walk, depth))
        return NULL;
    const Mark start = mark_of(walk);
    if (!put(walk, part->label, part->size))
        return NULL;
    const uint8_t *at = put_flat(walk, part, walk->width - 2 * depth - part->size);
    if (at != NULL || walk->is_declined)
        return at != NULL && end_line(walk) ? at : NULL;
    drop(walk, start);
    if (is_array(part))
        return put_open_array(walk, part, depth);
    bool is_null;
    at = open_struct(walk, part, &is_null);
    if (at == NULL || !put(walk, part->label, part->size - 1) || !end_line(walk))
        return NULL;
    return put_open_struct(walk, part->inner, part->rows, depth + 1, true, at);
}

/* A struct's fields; if packed, as many on a line as fit. */
static const uint8_t *put_open_struct(Walk *walk, const Transcriber *transcriber, PyObject *rows, int depth,
                                      bool is_packed, const uint8_t *at)
{
    Fields fields;
    Part part;
    Mark line = mark_of(walk); /* where the line begins that still has room */
    bool has_line = false;
    if (!begin_fields(walk, transcriber, rows, at, &fields))
        return NULL;
    while (next_field(walk, &fields, &part)) {
        const Mark start = mark_of(walk);
        const uint8_t *after = NULL;
        if (is_packed) {
            if (!put(walk, part.label, part.size))
                return NULL;
            after = put_flat(walk, &part, walk->width - 2 * depth - part.size - 1);
        }
        if (after == NULL) {
            drop(walk, start);
            if (walk->is_declined || (has_line && !end_line(walk)))
                return NULL;
            has_line = false;
            after = put_field(walk, &part, depth);
        } else if (has_line && length_since(walk, line) + 3 <= walk->width) {
            if (!put_before(walk, start, ", ", 0))
                return NULL;
        } else {
            if (!put_before(walk, start, has_line ? ",\n" : "", 2 * depth))
                return NULL;
            walk->lines += has_line;
            line = start;
            line.size += has_line ? 2 : 0;
            has_line = true;
        }
        if (!pass(walk, &fields, &part, after))
            return NULL;
    }
    return walk->is_declined || (has_line && !end_line(walk)) ? NULL : fields.at;
}

bool put_field_lines(JsonText *text, const Transcriber *transcriber, PyObject *rows, int width, const uint8_t *at,
                     const uint8_t *end)
{
    Walk walk = {.text = text, .end = end, .width = width};
    return put_open_struct(&walk, transcriber, rows, 1, false, at) == end;
}
