/* `PlainLines`: the lines of plain frames as JSON, put together from their texts.

   Strategy: a line is a row of texts and numbers. What an API in a version, one direction of a connection and a
   second add to it is in Python's tables; what isn't there yet Python adds (`learn`), and the line is begun again.
   Of an entry that isn't decoded the body's text is written here, and kept in the entry as `body_text` keeps it.
   Rules: a line is that of coordwire.capture.jsonlines; whatever is out of the ordinary is declined, and nothing but
   that text is changed for it: the slow path writes its line. Whatever may run Python comes before the look-ups whose
   results are borrowed. */

#include "../messages/transcribe.h"
#include "../slots.h"

#include <structmember.h>

enum {
    CAPTURE, NUMBER, FLOW, TIME_NS, BODY, API_KEY, API_VERSION, BODY_VERSION, CORRELATION_ID, CLIENT_ID, REQUEST,
    PACKET, FIRST_PACKET, CONNECTION, TEXT, SLOTS
};

/* The rows of the tables, and a body's text. */
enum { API_TRANSCRIBER, API_HEADER, API_IS_NAMED, API_IS_HARMLESS, API_OMITS_CLIENT, API_TEXT, API_SIZE };
enum { PLACE_CONNECTION, PLACE_FLOW, PLACE_CAPTURE, PLACE_BEFORE, PLACE_TEXT, PLACE_SIZE };
enum { SECOND_TEXT, SECOND_END, SECOND_SIZE };
enum { BODY_JSON, BODY_FACTS, BODY_SIZE };

typedef struct {
    PyObject_HEAD
    PyTypeObject *entry, *lazy, *strict_lazy, *transcriber;
    PyObject *apis, *places, *seconds;
    PyObject *learn, *body_text, *has_nothing_to_redact, *errors; /* has_nothing_to_redact: NULL to show all */
    Py_ssize_t slots[SLOTS];
} PlainLines;

/* What is read of an entry. Owned, where it is not NULL: request (of an answer), api, body, client, errors. What is
   borrowed holds until Python code runs. */
typedef struct {
    PyObject *entry, *request, *api, *body, *client, *errors;
    PyObject *place, *second; /* borrowed */
    int64_t key, version, facts, time_ns, packet, latency;
    bool has_latency;
    int digits;
} Frame;

static const char *const slot_names[SLOTS] = {
    "capture", "number", "flow", "time_ns", "body", "api_key", "api_version", "body_version", "correlation_id",
    "client_id", "request", "packet", "first_packet", "connection", "text",
};

enum { LONG_RUN = 64 << 10 }; /* a text that ends a run of lines */
enum { CLIENT_LENGTH = 8, CLIENT_TEXT = 10 }; /* where a request has its client id */
#define SECOND 1000000000LL
#define MOST_LATENCY (1LL << 53) /* up to here it is exact in a float64 */
#define MOST_DIGITS 1000000000000000LL /* below this, all digits of a latency are those of its float64 */

static inline PyObject *value_of(const PlainLines *lines, PyObject *entry, int index)
{
    return slot_value(entry, lines->slots[index]);
}

static inline bool number_of(const PlainLines *lines, PyObject *entry, int index, int64_t *number)
{
    return slot_number(entry, lines->slots[index], number);
}

enum Outcome { FAILED = -1, DECLINED, UNKNOWN, WRITTEN };

static bool is_row(PyObject *row, Py_ssize_t size)
{
    return row != NULL && PyTuple_CheckExact(row) && PyTuple_GET_SIZE(row) == size;
}

/* The row of a number in a table, borrowed; NULL, perhaps with an exception, where it has none. */
static PyObject *row_of(PyObject *table, int64_t number)
{
    PyObject *key = PyLong_FromLongLong(number);
    PyObject *row = key == NULL ? NULL : PyDict_GetItemWithError(table, key);
    Py_XDECREF(key);
    return row;
}

static enum Outcome unknown(void) { return PyErr_Occurred() ? FAILED : UNKNOWN; }

/* --- the body's text --- */

static bool is_transcriber(const PlainLines *lines, PyObject *object) { return Py_IS_TYPE(object, lines->transcriber); }

/* The client id of an entry whose bytes are sound, as a new reference; NULL with an exception. */
static PyObject *client_of(const PlainLines *lines, const Frame *frame, PyObject *bytes)
{
    if (frame->request != NULL) {
        PyObject *known = value_of(lines, frame->request, CLIENT_ID);
        return known != NULL ? Py_NewRef(known) : PyObject_GetAttrString(frame->request, "client_id");
    }
    const uint8_t *data = (const uint8_t *)PyBytes_AS_STRING(bytes);
    const Py_ssize_t room = PyBytes_GET_SIZE(bytes) - CLIENT_TEXT;
    const int size = PyTuple_GET_ITEM(frame->api, API_IS_NAMED) == Py_True && room >= 0
                         ? (int16_t)load16(data + CLIENT_LENGTH)
                         : -1;
    if (size < 0 || size > room) { /* the conversation may know it */
        PyObject *known = value_of(lines, frame->entry, CLIENT_ID);
        return Py_NewRef(known == NULL ? Py_None : known);
    }
    return PyUnicode_DecodeUTF8((const char *)data + CLIENT_TEXT, size, NULL);
}

/* Write the text of an entry that isn't decoded, and keep it there; false where that is left to Python. */
static bool write_body(const PlainLines *lines, const Frame *frame)
{
    PyObject *const transcriber = PyTuple_GET_ITEM(frame->api, API_TRANSCRIBER);
    PyObject *const header = PyTuple_GET_ITEM(frame->api, API_HEADER);
    PyObject *bytes = value_of(lines, frame->entry, BODY);
    PyObject *const version = value_of(lines, frame->entry, API_VERSION);
    if ((!Py_IS_TYPE(frame->entry, lines->lazy) && !Py_IS_TYPE(frame->entry, lines->strict_lazy)) || bytes == NULL
        || !PyBytes_CheckExact(bytes) || value_of(lines, frame->entry, BODY_VERSION) != version
        || !is_transcriber(lines, transcriber) || !is_transcriber(lines, header))
        return false;
    Py_INCREF(bytes);
    const uint8_t *const at = (const uint8_t *)PyBytes_AS_STRING(bytes), *const end = at + PyBytes_GET_SIZE(bytes);
    int flags;
    PyObject *json = transcribe((Transcriber *)transcriber, (Transcriber *)header, at, end, &flags);
    PyObject *facts = json == NULL ? NULL : PyLong_FromLong(flags);
    PyObject *text = facts == NULL ? NULL : PyTuple_Pack(BODY_SIZE, json, facts);
    PyObject *client = text == NULL ? NULL : client_of(lines, frame, bytes);
    if (client != NULL) {
        set_slot(frame->entry, lines->slots[CLIENT_ID], client);
        set_slot(frame->entry, lines->slots[TEXT], text);
    }
    const bool is_written = client != NULL;
    PyErr_Clear();
    Py_DECREF(bytes);
    Py_XDECREF(json);
    Py_XDECREF(facts);
    Py_XDECREF(text);
    Py_XDECREF(client);
    return is_written;
}

/* The body's text and its facts. */
static enum Outcome read_body(const PlainLines *lines, Frame *frame)
{
    PyObject *text = value_of(lines, frame->entry, TEXT);
    if ((text == NULL || text == Py_None) && !write_body(lines, frame)) {
        PyObject *known = PyObject_CallOneArg(lines->body_text, frame->entry);
        if (known == NULL)
            return FAILED;
        Py_DECREF(known);
    }
    text = value_of(lines, frame->entry, TEXT);
    if (!is_row(text, BODY_SIZE))
        return DECLINED;
    PyObject *json = PyTuple_GET_ITEM(text, BODY_JSON), *facts = PyTuple_GET_ITEM(text, BODY_FACTS);
    if (!PyUnicode_CheckExact(json) || !PyUnicode_IS_COMPACT_ASCII(json) || !PyLong_CheckExact(facts))
        return DECLINED;
    frame->facts = PyLong_AsLong(facts);
    frame->body = Py_NewRef(json);
    return WRITTEN;
}

/* --- what of it may be shown --- */

static bool has_zeros(PyObject *facts) { return !PyLong_CheckExact(facts) || PyLong_AsLong(facts) & HAS_ZEROS; }

/* As `shown_text` in coordwire/capture/redaction/entry_secrets.py, of a text that is known:
   `has_nothing_to_redact` is asked where a look doesn't suffice. */
static enum Outcome look(const PlainLines *lines, const Frame *frame)
{
    if (lines->has_nothing_to_redact == NULL)
        return WRITTEN;
    if (PyTuple_GET_ITEM(frame->api, API_IS_HARMLESS) == Py_True && !(frame->facts & HAS_ZEROS)) {
        PyObject *text = frame->request == NULL ? NULL : value_of(lines, frame->request, TEXT);
        if (frame->request == NULL
            || (is_row(text, BODY_SIZE) && PyUnicode_CheckExact(PyTuple_GET_ITEM(text, BODY_JSON))
                && !has_zeros(PyTuple_GET_ITEM(text, BODY_FACTS))))
            return WRITTEN;
    }
    PyObject *answer = PyObject_CallOneArg(lines->has_nothing_to_redact, frame->entry);
    if (answer == NULL)
        return FAILED;
    const bool is_shown = answer == Py_True;
    Py_DECREF(answer);
    return is_shown ? WRITTEN : DECLINED;
}

/* --- what a line has besides --- */

static enum Outcome find_api(const PlainLines *lines, Frame *frame)
{
    PyObject *request = value_of(lines, frame->entry, REQUEST);
    if (request == NULL || (request != Py_None && !PyObject_TypeCheck(request, lines->entry))
        || !number_of(lines, frame->entry, API_KEY, &frame->key)
        || !number_of(lines, frame->entry, API_VERSION, &frame->version) || frame->key < 0
        || frame->key > INT16_MAX || frame->version < 0 || frame->version > INT16_MAX)
        return DECLINED;
    frame->request = request == Py_None ? NULL : Py_NewRef(request);
    PyObject *api = row_of(lines->apis, frame->key << 17 | frame->version << 1 | (frame->request != NULL));
    if (api == NULL)
        return unknown();
    if (!is_row(api, API_SIZE))
        return DECLINED;
    frame->api = Py_NewRef(api);
    return WRITTEN;
}

/* What runs Python for an answer with error codes. */
static enum Outcome find_errors(const PlainLines *lines, Frame *frame)
{
    if (!(frame->facts & HAS_CODES) || frame->request == NULL)
        return WRITTEN;
    PyObject *arguments[] = {frame->entry, frame->body};
    frame->errors = PyObject_Vectorcall(lines->errors, arguments, 2, NULL);
    if (frame->errors == NULL)
        return FAILED;
    return PyUnicode_CheckExact(frame->errors) ? WRITTEN : DECLINED;
}

/* The connection's and the second's texts, the packet and the latency. */
static enum Outcome find_place(const PlainLines *lines, Frame *frame)
{
    PyObject *entry = frame->entry;
    PyObject *connection = value_of(lines, entry, CONNECTION), *flow = value_of(lines, entry, FLOW);
    int64_t asked_ns;
    if (connection == NULL || flow == NULL || !number_of(lines, entry, TIME_NS, &frame->time_ns)
        || !number_of(lines, entry, PACKET, &frame->packet) || frame->time_ns < 0 || frame->packet < 0)
        return DECLINED;
    frame->place = row_of(lines->places, (int64_t)((uintptr_t)connection | (frame->request != NULL)));
    if (!is_row(frame->place, PLACE_SIZE) || PyTuple_GET_ITEM(frame->place, PLACE_FLOW) != flow
        || PyTuple_GET_ITEM(frame->place, PLACE_CAPTURE) != value_of(lines, entry, CAPTURE))
        return unknown();
    frame->second = row_of(lines->seconds, frame->time_ns / SECOND);
    if (!is_row(frame->second, SECOND_SIZE))
        return frame->second == NULL ? unknown() : DECLINED;
    if (frame->request != NULL && number_of(lines, frame->request, TIME_NS, &asked_ns) && asked_ns >= 0) {
        frame->latency = frame->time_ns - asked_ns;
        frame->has_latency = true;
    } else if (frame->request != NULL && value_of(lines, frame->request, TIME_NS) != Py_None)
        return DECLINED;
    return WRITTEN;
}

/* The client, and nothing that has to be said of the body. */
static enum Outcome find_client(const PlainLines *lines, Frame *frame)
{
    PyObject *client = value_of(lines, frame->entry, CLIENT_ID);
    if (frame->facts & OTHERWISE || client == NULL
        || value_of(lines, frame->entry, BODY_VERSION) != value_of(lines, frame->entry, API_VERSION))
        return DECLINED;
    frame->client = Py_NewRef(client);
    return WRITTEN;
}

/* --- texts --- */

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

/* What has to be said of a client that a request leaves out. */
static bool put_client(const Frame *frame, JsonText *line, PyObject *bytes)
{
    if (!PUT(line, ",\"clientId\":") || !put_quoted(line, frame->client))
        return false;
    if (PyTuple_GET_ITEM(frame->api, API_OMITS_CLIENT) != Py_True)
        return true;
    if (frame->client == Py_None)
        return PUT(line, ",\"clientIsUnknown\":true");
    const uint8_t *const data = (const uint8_t *)PyBytes_AS_STRING(bytes);
    const bool is_inherited = frame->request == NULL && PyBytes_GET_SIZE(bytes) >= CLIENT_TEXT
                              && (int16_t)load16(data + CLIENT_LENGTH) < 0;
    return !is_inherited || PUT(line, ",\"clientIsInherited\":true");
}

/* An entry's line, whose place is known; false where it is left to Python. */
static bool put_json(const PlainLines *lines, const Frame *frame, JsonText *line)
{
    PyObject *entry = frame->entry, *bytes = value_of(lines, entry, BODY);
    return bytes != NULL && PyBytes_CheckExact(bytes) && put_text(line, PyTuple_GET_ITEM(frame->place, PLACE_BEFORE))
           && put_slot(lines, line, entry, NUMBER) && PUT(line, ",\"packet\":") && put_whole(line, frame->packet)
           && PUT(line, ",\"firstPacket\":") && put_slot(lines, line, entry, FIRST_PACKET)
           && put_text(line, PyTuple_GET_ITEM(frame->place, PLACE_TEXT)) && put_time(frame, line)
           && (frame->request == NULL ? PUT(line, "\",\"direction\":\"request\"")
                                      : put_request(lines, line, frame->request))
           && put_text(line, PyTuple_GET_ITEM(frame->api, API_TEXT)) && put_slot(lines, line, entry, CORRELATION_ID)
           && put_client(frame, line, bytes) && PUT(line, ",\"size\":")
           && put_whole(line, PyBytes_GET_SIZE(bytes))
           && (!frame->has_latency || (PUT(line, ",\"latencyMs\":") && put_milliseconds(line, frame->latency)))
           && PUT(line, ",\"body\":") && put_text(line, frame->body) && PUT(line, ",\"error\":null")
           && (frame->errors == NULL || put_text(line, frame->errors)) && PUT(line, "}\n");
}

/* --- a line --- */

/* Whether a frame is plain, and its body's text. */
static enum Outcome read_plain(const PlainLines *lines, Frame *frame)
{
    enum Outcome outcome = find_api(lines, frame);
    if (outcome == WRITTEN)
        outcome = read_body(lines, frame);
    return outcome == WRITTEN ? look(lines, frame) : outcome;
}

static void let_go(Frame *frame)
{
    Py_CLEAR(frame->request);
    Py_CLEAR(frame->api);
    Py_CLEAR(frame->body);
    Py_CLEAR(frame->client);
    Py_CLEAR(frame->errors);
}

static enum Outcome put(const PlainLines *lines, Frame *frame, JsonText *line)
{
    enum Outcome outcome = read_plain(lines, frame);
    if (outcome == WRITTEN)
        outcome = find_errors(lines, frame);
    if (outcome == WRITTEN)
        outcome = find_client(lines, frame);
    if (outcome == WRITTEN)
        outcome = find_place(lines, frame);
    if (outcome != WRITTEN)
        return outcome;
    return put_json(lines, frame, line) ? WRITTEN : DECLINED;
}

static enum Outcome add_once(const PlainLines *lines, Frame *frame, JsonText *line)
{
    const size_t start = line->size;
    const enum Outcome outcome = put(lines, frame, line);
    if (outcome != WRITTEN)
        line->size = start;
    let_go(frame);
    return outcome;
}

/* Write an entry's line; once more after Python has added what was not there. */
static enum Outcome add(const PlainLines *lines, PyObject *entry, int digits, JsonText *line)
{
    Frame frame = {.entry = entry, .digits = digits};
    if (!PyObject_TypeCheck(entry, lines->entry))
        return DECLINED;
    enum Outcome outcome = add_once(lines, &frame, line);
    if (outcome != UNKNOWN)
        return outcome;
    PyObject *learned = PyObject_CallOneArg(lines->learn, entry);
    if (learned == NULL)
        return FAILED;
    Py_DECREF(learned);
    frame = (Frame){.entry = entry, .digits = digits};
    return add_once(lines, &frame, line);
}

/* A number of decimals; -1 with an exception. */
static int digits_of(PyObject *argument)
{
    const long digits = PyLong_AsLong(argument);
    if (digits >= 0 && digits <= 9)
        return (int)digits;
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "expected a number of decimals up to 9");
    return -1;
}

/* End a text that was written or not, as a call returns it. */
static PyObject *finish(JsonText *line, enum Outcome outcome)
{
    PyObject *text = outcome == FAILED    ? NULL
                     : outcome == WRITTEN ? PyUnicode_DecodeUTF8(line->data, (Py_ssize_t)line->size, NULL)
                                          : Py_NewRef(Py_None);
    end_text(line);
    return text;
}

PyDoc_STRVAR(line_doc, "line(entry, digits) -> str | None\n\n"
                       "The line of a plain frame, whose time has so many decimals; None for every other entry.");

static PyObject *plain_lines_line(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "expected an entry and a number of decimals");
        return NULL;
    }
    const int digits = digits_of(arguments[1]);
    if (digits < 0)
        return NULL;
    JsonText line;
    begin_text(&line);
    return finish(&line, add((PlainLines *)self, arguments[0], digits, &line));
}

PyDoc_STRVAR(run_doc, "run(entries, at, digits, stops) -> (str, int)\n\n"
                      "The lines of the entries from an index on, and the index of the first one that is not plain,\n"
                      "whose API is among the stops, or before which the text is long enough.");

static PyObject *plain_lines_run(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    const PlainLines *lines = (PlainLines *)self;
    if (count != 4 || !PyList_CheckExact(arguments[0]) || !PyFrozenSet_CheckExact(arguments[3])) {
        PyErr_SetString(PyExc_TypeError, "expected entries, an index, a number of decimals and API keys");
        return NULL;
    }
    Py_ssize_t at = PyLong_AsSsize_t(arguments[1]);
    const int digits = at == -1 && PyErr_Occurred() ? -1 : digits_of(arguments[2]);
    if (digits < 0)
        return NULL;
    JsonText line;
    begin_text(&line);
    enum Outcome outcome = at < 0 ? DECLINED : WRITTEN;
    while (outcome == WRITTEN && at < PyList_GET_SIZE(arguments[0]) && line.size < LONG_RUN) {
        PyObject *entry = Py_NewRef(PyList_GET_ITEM(arguments[0], at));
        PyObject *key = PyObject_TypeCheck(entry, lines->entry) ? value_of(lines, entry, API_KEY) : NULL;
        const int is_stop = key == NULL || !PyLong_CheckExact(key) ? 1 : PySet_Contains(arguments[3], key);
        outcome = is_stop < 0 ? FAILED : is_stop ? DECLINED : add(lines, entry, digits, &line);
        Py_DECREF(entry);
        at += outcome == WRITTEN;
    }
    PyObject *text = finish(&line, outcome == FAILED ? FAILED : WRITTEN);
    return text == NULL ? NULL : Py_BuildValue("Nn", text, at);
}

/* --- which frames are plain --- */

#define LATEST (1LL << 62) /* nanoseconds, up to which a plain frame's time is */

static enum Outcome judge(const PlainLines *lines, PyObject *entry)
{
    Frame frame = {.entry = entry};
    if (!number_of(lines, entry, TIME_NS, &frame.time_ns) || frame.time_ns < 0 || frame.time_ns >= LATEST)
        return DECLINED;
    const enum Outcome outcome = read_plain(lines, &frame);
    let_go(&frame);
    return outcome;
}

PyDoc_STRVAR(plain_doc, "plain(entries) -> list[bool | None]\n\n"
                        "True for each frame that is known to be plain, whose body's text is then kept in it; None "
                        "for every other entry.");

static PyObject *plain_lines_plain(PyObject *self, PyObject *entries)
{
    const PlainLines *lines = (PlainLines *)self;
    PyObject *list = PySequence_List(entries); /* its own, whatever Python does meanwhile */
    for (Py_ssize_t index = 0; list != NULL && index < PyList_GET_SIZE(list); index++) {
        PyObject *entry = PyList_GET_ITEM(list, index), *learned;
        enum Outcome outcome = PyObject_TypeCheck(entry, lines->entry) ? judge(lines, entry) : DECLINED;
        if (outcome == UNKNOWN) {
            learned = PyObject_CallOneArg(lines->learn, entry);
            outcome = learned == NULL ? FAILED : judge(lines, entry);
            Py_XDECREF(learned);
        }
        if (outcome == FAILED)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, index, Py_NewRef(outcome == WRITTEN ? Py_True : Py_None));
    }
    return list;
}

/* --- its life --- */

PyDoc_STRVAR(plain_lines_doc, "PlainLines(classes, tables, learn, body_text, has_nothing_to_redact, errors)\n\n"
                              "Puts lines of plain frames together; see coordwire.capture.plain_lines.");

static PyObject *plain_lines_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    PyTypeObject *entry, *lazy, *strict_lazy;
    PyObject *apis, *places, *seconds, *learn, *body_text, *has_nothing_to_redact, *errors;
    if (keywords != NULL && PyDict_GET_SIZE(keywords)) {
        PyErr_SetString(PyExc_TypeError, "PlainLines takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(arguments, "(O!O!O!)(O!O!O!)OOOO", &PyType_Type, &entry, &PyType_Type, &lazy, &PyType_Type,
                          &strict_lazy, &PyDict_Type, &apis, &PyDict_Type, &places, &PyDict_Type, &seconds, &learn,
                          &body_text, &has_nothing_to_redact, &errors))
        return NULL;
    PyObject *module = PyType_GetModule(type);
    Engine *engine = module == NULL ? NULL : PyModule_GetState(module);
    if (engine == NULL || engine->transcriber_type == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the module is going");
        return NULL;
    }
    PlainLines *lines = (PlainLines *)type->tp_alloc(type, 0);
    if (lines == NULL)
        return NULL;
    lines->entry = (PyTypeObject *)Py_NewRef(entry);
    lines->lazy = (PyTypeObject *)Py_NewRef(lazy);
    lines->strict_lazy = (PyTypeObject *)Py_NewRef(strict_lazy);
    lines->transcriber = (PyTypeObject *)Py_NewRef(engine->transcriber_type);
    lines->apis = Py_NewRef(apis);
    lines->places = Py_NewRef(places);
    lines->seconds = Py_NewRef(seconds);
    lines->learn = Py_NewRef(learn);
    lines->body_text = Py_NewRef(body_text);
    lines->has_nothing_to_redact = has_nothing_to_redact == Py_None ? NULL : Py_NewRef(has_nothing_to_redact);
    lines->errors = Py_NewRef(errors);
    if (find_slots(entry, slot_names, SLOTS, lines->slots) < 0)
        Py_CLEAR(lines);
    return (PyObject *)lines;
}

OWNS(PlainLines, entry, errors)

static PyMethodDef plain_lines_methods[] = {
    {"plain", plain_lines_plain, METH_O, plain_doc},
    {"line", (PyCFunction)(void (*)(void))plain_lines_line, METH_FASTCALL, line_doc},
    {"run", (PyCFunction)(void (*)(void))plain_lines_run, METH_FASTCALL, run_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot plain_lines_slots[] = {
    {Py_tp_doc, (void *)plain_lines_doc},
    {Py_tp_new, plain_lines_new},
    {Py_tp_traverse, PlainLines_traverse},
    {Py_tp_clear, PlainLines_clear},
    {Py_tp_dealloc, PlainLines_dealloc},
    {Py_tp_methods, plain_lines_methods},
    {0, NULL},
};

PyType_Spec plain_lines_spec = {
    .name = "coordwire._speedups._native.PlainLines",
    .basicsize = sizeof(PlainLines),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = plain_lines_slots,
};
