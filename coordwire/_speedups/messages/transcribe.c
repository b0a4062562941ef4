/* A message's bytes to its JSON text: runs a program over the bytes, as decode.c does.

   Rules: as in decode.c, what a struct takes at least is checked once, at its start, and holds until its end.
   Each field is written with a comma after it, and the struct's end takes the place of the last one; so a tagged
   field, which comes last on the wire, can be moved to where it belongs. */

#include "transcribe.h"

typedef struct Walk {
    JsonText text;
    const uint8_t *end;
    const Engine *engine;
    int64_t size; /* of the whole */
    bool charged;
    int found; /* of TextFacts */
    Budgets budgets;
} Walk;

static const uint8_t *put_struct(Walk *walk, const Transcriber *transcriber, const uint8_t *at);

static bool book(Walk *walk, int64_t count, int64_t cost)
{
    Budgets *budgets = &walk->budgets;
    if (!walk->charged && !engine_budgets(walk->engine, walk->size, budgets))
        return false;
    walk->charged = true;
    budgets->elements -= count;
    budgets->memory -= count * cost;
    return budgets->elements >= 0 && budgets->memory >= 0;
}

static bool put_null(Walk *walk, uint8_t flags)
{
    if (!(flags & NULLABLE) || !make_room(&walk->text, 4))
        return false;
    put_plain(&walk->text, "null", 4);
    return true;
}

/* Text or bytes, with `rest` bytes after it. */
static const uint8_t *put_sized(Walk *walk, uint8_t kind, uint8_t flags, int32_t rest, const uint8_t *at)
{
    int64_t length;
    at = length_of(flags, kind == STRING ? 2 : 4, at, walk->end, &length);
    if (at == NULL || length > walk->end - at - rest)
        return NULL;
    if (length < 0)
        return put_null(walk, flags) ? at : NULL;
    if (kind == STRING && length > MAX_STRING)
        return NULL;
    bool fits = kind == BYTES ? put_base64(&walk->text, at, (size_t)length) : put_string(&walk->text, at, (size_t)length);
    return fits ? at + length : NULL;
}

/* A value of a fixed size, whose bytes are there. */
static bool put_fixed(Walk *walk, uint8_t kind, const uint8_t *at)
{
    JsonText *text = &walk->text;
    if (kind == FLOAT64)
        return put_float(text, load64(at));
    if (kind == UUID)
        return put_uuid(text, at);
    if (!make_room(text, NUMBER_ROOM))
        return false;
    switch (kind) {
    case INT8: put_number(text, (int8_t)*at); break;
    case INT16: put_number(text, (int16_t)load16(at)); break;
    case INT32: put_number(text, (int32_t)load32(at)); break;
    case INT64: put_number(text, (int64_t)load64(at)); break;
    case UINT16: put_number(text, load16(at)); break;
    case UINT32: put_number(text, load32(at)); break;
    default: /* BOOLEAN */
        if (*at > 1)
            return false;
        put_plain(text, *at ? "true" : "false", *at ? 4 : 5);
    }
    return true;
}

static const uint8_t *put_element(Walk *walk, const Op *op, const Transcriber *inner, const uint8_t *at)
{
    const uint8_t flags = op->flags & (uint8_t)~NULLABLE; /* of the array: its elements never are null */
    if (op->kind == STRUCT)
        return put_struct(walk, inner, at);
    if (op->kind == STRING || op->kind == LONG_STRING || op->kind == BYTES)
        return put_sized(walk, op->kind, flags, 0, at);
    return put_fixed(walk, op->kind, at) ? at + wire_sizes[op->kind] : NULL;
}

static const uint8_t *put_array(Walk *walk, const Op *op, const Transcriber *inner, const uint8_t *at)
{
    int64_t count;
    at = length_of(op->flags, op->flags & SHORT ? 2 : 4, at, walk->end, &count);
    if (at == NULL)
        return NULL;
    if (count < 0)
        return put_null(walk, op->flags) ? at : NULL;
    if (count * op->min_size > walk->end - at || count > MAX_ARRAY_ELEMENTS
        || !book(walk, count, op->memory_cost) || !make_room(&walk->text, 2))
        return NULL;
    put_char(&walk->text, '[');
    for (int64_t remaining = count; remaining; remaining--) {
        at = put_element(walk, op, inner, at);
        if (at == NULL || !make_room(&walk->text, 1))
            return NULL;
        put_char(&walk->text, ',');
    }
    if (count)
        walk->text.data[walk->text.size - 1] = ']';
    else
        put_char(&walk->text, ']');
    return at;
}

/* A field with its name, and a comma. */
static const uint8_t *put_field(Walk *walk, const Step *step, const TextOp *field, const uint8_t *at)
{
    JsonText *text = &walk->text;
    const Op *op = step->op;
    const size_t size = (size_t)PyBytes_GET_SIZE(field->key);
    if (!make_room(text, size + NUMBER_ROOM))
        return NULL;
    put_plain(text, PyBytes_AS_STRING(field->key), size);
    switch (step->code) {
    case COMPACT_STRING:
    case STRING:
    case LONG_STRING:
    case BYTES:
    case COMPACT_BYTES:
        at = put_sized(walk, op->kind, step->flags, step->rest, at);
        break;
    case ARRAY: at = put_array(walk, op, field->inner, at); break;
    case STRUCT: at = put_struct(walk, field->inner, at); break;
    case MARKED:
    case TAGGED_MARKED:
        if (*at == (step->code == MARKED ? UINT8_MAX : 0))
            at = put_null(walk, step->flags) ? at + 1 : NULL;
        else
            at = *at == 1 ? put_struct(walk, field->inner, at + 1) : NULL;
        break;
    default: /* of a fixed size; what has no steps here was refused when the transcriber was made */
        if (!put_fixed(walk, step->code, at))
            return NULL;
        if (field->code && load16(at))
            walk->found |= HAS_CODES;
        at += wire_sizes[step->code];
    }
    if (at == NULL || walk->end - at < step->rest || !make_room(text, 1))
        return NULL;
    put_char(text, ',');
    return at;
}

/* --- tagged fields --- */

static void reverse(char *first, char *stop)
{
    for (; first < --stop; first++) {
        const char byte = *first;
        *first = *stop;
        *stop = byte;
    }
}

/* Exchange the text from `to` to `from` with the text after it. */
static void move_text(JsonText *text, size_t to, size_t from)
{
    char *data = text->data;
    reverse(data + to, data + from);
    reverse(data + from, data + text->size);
    reverse(data + to, data + text->size);
}

/* The section of tagged fields, each moved to its place, whose positions are in `marks`. */
static const uint8_t *put_tags(Walk *walk, const Transcriber *transcriber, const size_t *marks, const uint8_t *at)
{
    const Program *program = transcriber->program;
    const uint8_t *const end = walk->end;
    uint32_t count;
    if (*at == 0)
        return at + 1;
    if (!read_uvarint(&at, end, &count) || (int64_t)count * 2 > end - at || count > MAX_TAGGED_FIELDS
        || !book(walk, count, walk->engine->tag_cost))
        return NULL;
    const Op *const first = program->ops + program->inlined, *const stop = first + program->tagged, *op = first;
    size_t moved = 0;
    for (; count; count--) {
        uint32_t tag, size;
        if (!read_uvarint(&at, end, &tag) || !read_uvarint(&at, end, &size) || size > end - at)
            return NULL;
        while (op < stop && op->tag < tag)
            op++;
        if (op == stop || op->tag != tag || size < (uint32_t)least_of(op))
            return NULL;
        const TextOp *field = transcriber->ops + (op - program->ops);
        if (field->default_value != NULL && PyBytes_GET_SIZE(field->default_value) == (Py_ssize_t)size
            && memcmp(PyBytes_AS_STRING(field->default_value), at, size) == 0) {
            walk->found |= OTHERWISE;
            at += size;
            op++;
            continue;
        }
        const size_t before = walk->text.size;
        const uint8_t *const after = walk->end = at + size;
        at = put_field(walk, program->known + 2 * (op - first), field, at);
        walk->end = end;
        if (at != after)
            return NULL;
        if (transcriber->moves && field->place < program->inlined) {
            move_text(&walk->text, marks[field->place] + moved, before);
            moved += walk->text.size - before;
        }
        op++; /* each at most once */
    }
    return at;
}

static const uint8_t *put_struct(Walk *walk, const Transcriber *transcriber, const uint8_t *at)
{
    const Program *program = transcriber->program;
    JsonText *text = &walk->text;
    size_t marks[MAX_MOVED];
    if (walk->end - at < program->min_size || !make_room(text, 2))
        return NULL;
    put_char(text, '{');
    const size_t start = text->size;
    for (int i = 0; i < program->inlined; i++) {
        if (transcriber->moves)
            marks[i] = text->size;
        if ((at = put_field(walk, program->steps + i, transcriber->ops + i, at)) == NULL)
            return NULL;
    }
    if (program->flexible && (at = put_tags(walk, transcriber, marks, at)) == NULL)
        return NULL;
    if (text->size > start)
        text->data[text->size - 1] = '}';
    else
        put_char(text, '}');
    return at;
}

/* Begin a walk, which end_text() ends. */
static void begin_walk(Walk *walk, const Transcriber *transcriber, const uint8_t *at, const uint8_t *end)
{
    walk->engine = transcriber->program->engine;
    walk->end = end;
    walk->size = end - at;
    walk->charged = false;
    walk->found = 0;
    begin_text(&walk->text);
}

/* Where the message begins after a header; NULL where that is refused or memory is short. */
static const uint8_t *skip_header(const Transcriber *header, const uint8_t *at, const uint8_t *end)
{
    Walk walk;
    begin_walk(&walk, header, at, end);
    at = walk.engine->current == NULL ? NULL : put_struct(&walk, header, at); /* else the module is going */
    end_text(&walk.text);
    return at;
}

static bool has_zero(const JsonText *text)
{
    const char *at = text->data, *const end = at + text->size;
    while ((at = memchr(at, '\\', (size_t)(end - at))) != NULL) {
        if (end - at >= 6 && memcmp(at, "\\u0000", 6) == 0)
            return true;
        at++;
    }
    return false;
}

PyObject *transcribe(const Transcriber *transcriber, const Transcriber *header, const uint8_t *at,
                     const uint8_t *end, int *found)
{
    Walk walk;
    if (header != NULL && (at = skip_header(header, at, end)) == NULL)
        return NULL;
    begin_walk(&walk, transcriber, at, end);
    at = walk.engine->current == NULL ? NULL : put_struct(&walk, transcriber, at);
    PyObject *text = NULL;
    if (at == end) {
        text = PyUnicode_New((Py_ssize_t)walk.text.size, 127);
        if (text != NULL)
            memcpy(PyUnicode_1BYTE_DATA(text), walk.text.data, walk.text.size);
        else
            PyErr_Clear();
    }
    *found = walk.found | (text != NULL && has_zero(&walk.text) ? HAS_ZEROS : 0);
    end_text(&walk.text);
    return text;
}
