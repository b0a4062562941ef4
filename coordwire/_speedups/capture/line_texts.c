/* The texts of plain frames: JSON, a line for reading, and a tree's line with those of its fields.

   Rules: a text is that of Python's own code for it; a number or text whose form needs more than there is here is
   left to that code. Nothing that was borrowed is used after a call that may run Python. */

#include "plain_lines.h"

#define MOST_LATENCY (1LL << 53) /* up to here it is exact in a float64 */
#define MOST_DIGITS 1000000000000000LL /* below this, all digits of a latency are those of its float64 */

/* --- pieces --- */

static bool put_bytes(JsonText *line, const char *bytes, size_t size)
{
    if (!make_room(line, size))
        return false;
    put_plain(line, bytes, size);
    return true;
}

#define PUT(line, literal) put_bytes(line, literal, sizeof(literal) - 1)

/* The UTF-8 of a text, borrowed; NULL where it has none. */
static const char *utf8_of(PyObject *text, Py_ssize_t *size)
{
    const char *bytes = PyUnicode_CheckExact(text) ? PyUnicode_AsUTF8AndSize(text, size) : NULL;
    if (bytes == NULL)
        PyErr_Clear();
    return bytes;
}

static bool put_text(JsonText *line, PyObject *text)
{
    Py_ssize_t size;
    const char *bytes = utf8_of(text, &size);
    return bytes != NULL && put_bytes(line, bytes, (size_t)size);
}

/* A text or None in JSON. */
static bool put_quoted(JsonText *line, PyObject *text)
{
    if (text == Py_None)
        return PUT(line, "null");
    Py_ssize_t size;
    const char *bytes = utf8_of(text, &size);
    return bytes != NULL && put_string(line, (const uint8_t *)bytes, (size_t)size);
}

static bool put_whole(JsonText *line, int64_t number)
{
    if (!make_room(line, NUMBER_ROOM))
        return false;
    put_number(line, number);
    return true;
}

static bool put_slot(const PlainLines *lines, JsonText *line, PyObject *entry, int index)
{
    int64_t number;
    return number_of(lines, entry, index, &number) && put_whole(line, number);
}

/* The first `digits` of a number of so many. */
static void put_digits(JsonText *line, int64_t number, int64_t first, int digits)
{
    for (; digits; digits--, first /= 10)
        put_char(line, (char)('0' + number / first % 10));
}

static bool put_time(const Frame *frame, JsonText *line)
{
    if (!put_text(line, PyTuple_GET_ITEM(frame->second, SECOND_TEXT)) || !make_room(line, 10))
        return false;
    if (frame->digits)
        put_char(line, '.');
    put_digits(line, frame->time_ns % SECOND, SECOND / 10, frame->digits);
    return put_text(line, PyTuple_GET_ITEM(frame->second, SECOND_END));
}

static bool put_blanks(JsonText *line, Py_ssize_t count)
{
    if (count < 0 || !make_room(line, (size_t)count))
        return false;
    memset(line->data + line->size, ' ', (size_t)count);
    line->size += (size_t)count;
    return true;
}

/* --- JSON --- */

/* A latency in milliseconds, as Python has the float. */
static bool put_milliseconds(JsonText *line, int64_t latency)
{
    const int64_t size = latency < 0 ? -latency : latency;
    if (size >= MOST_DIGITS || (size && size < 100)) { /* with an exponent, or not all digits */
        const double number = (double)latency / 1e6;
        uint64_t bits;
        memcpy(&bits, &number, sizeof bits);
        return size < MOST_LATENCY && put_float(line, bits);
    }
    if (!make_room(line, NUMBER_ROOM + 8))
        return false;
    if (latency < 0)
        put_char(line, '-');
    put_number(line, size / 1000000);
    put_char(line, '.');
    put_digits(line, size % 1000000, 100000, 6);
    for (int zeros = 0; zeros < 5 && line->data[line->size - 1] == '0'; zeros++)
        line->size--;
    return true;
}

static bool put_request(const PlainLines *lines, JsonText *line, PyObject *request)
{
    if (!PUT(line, "\",\"direction\":\"response\",\"request\":") || !put_slot(lines, line, request, NUMBER))
        return false;
    return value_of(lines, request, PACKET) == Py_None
           || (PUT(line, ",\"requestPacket\":") && put_slot(lines, line, request, PACKET));
}

bool put_json(const PlainLines *lines, const Frame *frame, JsonText *line)
{
    PyObject *entry = frame->entry, *bytes = value_of(lines, entry, BODY);
    return bytes != NULL && PyBytes_CheckExact(bytes) && put_text(line, PyTuple_GET_ITEM(frame->place, PLACE_BEFORE))
           && put_slot(lines, line, entry, NUMBER) && PUT(line, ",\"packet\":") && put_whole(line, frame->packet)
           && PUT(line, ",\"firstPacket\":") && put_slot(lines, line, entry, FIRST_PACKET)
           && put_text(line, PyTuple_GET_ITEM(frame->place, PLACE_TEXT)) && put_time(frame, line)
           && (frame->request == NULL ? PUT(line, "\",\"direction\":\"request\"")
                                      : put_request(lines, line, frame->request))
           && put_text(line, PyTuple_GET_ITEM(frame->api, API_TEXT)) && put_slot(lines, line, entry, CORRELATION_ID)
           && PUT(line, ",\"clientId\":") && put_quoted(line, frame->client) && PUT(line, ",\"size\":")
           && put_whole(line, PyBytes_GET_SIZE(bytes))
           && (!frame->has_latency || (PUT(line, ",\"latencyMs\":") && put_milliseconds(line, frame->latency)))
           && PUT(line, ",\"body\":") && put_text(line, frame->body) && PUT(line, ",\"error\":null")
           && (frame->errors == NULL || put_text(line, frame->errors)) && PUT(line, "}\n");
}

/* A latency in milliseconds. unit: nanoseconds of its last decimal. */
static bool put_rounded(JsonText *text, int64_t latency, int64_t unit, int decimals)
{
    const int64_t rounded = (latency + unit / 2) / unit, millisecond = 1000000 / unit;
    if (latency < 0 || latency % unit == unit / 2 || latency >= MOST_DIGITS || !make_room(text, 2 * NUMBER_ROOM))
        return false; /* how a half is rounded depends on the float64 */
    put_grouped(text, rounded / millisecond);
    put_char(text, '.');
    put_digits(text, rounded % millisecond, millisecond / 10, decimals);
    put_plain(text, " ms", 3);
    return true;
}

/* A latency with three decimals, right in its column. */
static bool put_latency(const PlainLines *lines, JsonText *line, int64_t latency)
{
    JsonText text;
    begin_text(&text);
    return put_rounded(&text, latency, 1000, 3)
           && put_blanks(line, lines->latency_width - (Py_ssize_t)text.size)
           && put_bytes(line, text.data, text.size);
}

bool put_line(const PlainLines *lines, const Frame *frame, JsonText *line)
{
    JsonText number;
    begin_text(&number);
    put_number(&number, frame->packet);
    if (!put_time(frame, line) || !PUT(line, "  ")
        || !put_blanks(line, lines->number_width - (Py_ssize_t)number.size)
        || !put_bytes(line, number.data, number.size) || !put_text(line, PyTuple_GET_ITEM(frame->place, PLACE_TEXT))
        || !put_text(line, PyTuple_GET_ITEM(frame->api, API_TEXT)) || !put_text(line, frame->subject)
        || (frame->has_latency && !put_latency(lines, line, frame->latency))
        || (frame->errors != NULL && !put_text(line, frame->errors)))
        return false;
    while (line->size && line->data[line->size - 1] == ' ')
        line->size--;
    return PUT(line, "\n");
}

static bool put_packets(const PlainLines *lines, const Frame *frame, JsonText *line)
{
    int64_t first = frame->packet;
    PyObject *known = value_of(lines, frame->entry, FIRST_PACKET);
    if (known != Py_None && !number_of(lines, frame->entry, FIRST_PACKET, &first))
        return false;
    if (first == frame->packet)
        return PUT(line, "  packet ") && put_whole(line, first);
    return PUT(line, "  packets ") && put_whole(line, first) && PUT(line, "-") && put_whole(line, frame->packet);
}

/* The rule above a request and its answer. */
static bool put_rule(const PlainLines *lines, const Frame *frame, JsonText *line)
{
    static const char dash[] = "\xe2\x94\x80";
    PyObject *flow = PyTuple_GET_ITEM(frame->place, PLACE_TEXT);
    const size_t start = line->size + 2 * (sizeof dash - 2); /* a dash is one character */
    if (!PUT(line, "\xe2\x94\x80\xe2\x94\x80 #") || !put_slot(lines, line, frame->entry, NUMBER) || !PUT(line, " #")
        || !put_slot(lines, line, frame->answer, NUMBER) || !put_text(line, PyTuple_GET_ITEM(frame->place, PLACE_BEFORE))
        || !put_time(frame, line) || !PUT(line, " ") || !PyUnicode_CheckExact(flow))
        return false;
    Py_ssize_t dashes = lines->tree_width - (Py_ssize_t)(line->size - start) - PyUnicode_GET_LENGTH(flow);
    for (dashes = dashes < 2 ? 2 : dashes; dashes; dashes--)
        if (!PUT(line, dash))
            return false;
    return put_text(line, flow) && PUT(line, "\n");
}

/* A frame's line, and its fields. */
bool put_tree(const PlainLines *lines, const Frame *frame, JsonText *line)
{
    PyObject *entry = frame->entry, *bytes = value_of(lines, entry, BODY);
    const bool is_slow = frame->latency >= 10000000; /* then one decimal suffices */
    if (bytes == NULL || !PyBytes_CheckExact(bytes) || (frame->answer != NULL && !put_rule(lines, frame, line))
        || !put_text(line, PyTuple_GET_ITEM(frame->api, API_TEXT))
        || !put_slot(lines, line, entry, CORRELATION_ID)
        || (frame->client != NULL
            && (!PUT(line, "  \"") || !put_text(line, frame->client) || !PUT(line, "\"")))
        || !PUT(line, "  ") || !make_room(line, 2 * NUMBER_ROOM))
        return false;
    put_grouped(line, PyBytes_GET_SIZE(bytes));
    if (!PUT(line, " B")
        || (frame->has_latency
            && (!PUT(line, "  ") || !put_rounded(line, frame->latency, is_slow ? 100000 : 1000, is_slow ? 1 : 3)))
        || !put_packets(lines, frame, line) || !PUT(line, "\n"))
        return false;
    const Transcriber *const transcriber = (Transcriber *)PyTuple_GET_ITEM(frame->api, API_TRANSCRIBER);
    const Transcriber *const header = (Transcriber *)PyTuple_GET_ITEM(frame->api, API_HEADER);
    const uint8_t *at = (const uint8_t *)PyBytes_AS_STRING(bytes), *const end = at + PyBytes_GET_SIZE(bytes);
    Py_INCREF(bytes); /* Python runs */
    at = skip_header(header, at, end);
    const bool is_whole = at != NULL
                          && put_field_lines(line, transcriber, PyTuple_GET_ITEM(frame->api, API_FIELDS),
                                             lines->tree_width, at, end);
    Py_DECREF(bytes);
    return is_whole;
}
