/* `PlainLines`: the lines of plain frames, as JSON or for reading, put together from their texts; or a line with
   those of the fields below it, as a tree has them.

   Strategy: a line is a row of texts and numbers. What an API in a version, one direction of a connection, a second
   and a subject add to it is in Python's tables; what isn't there yet Python adds (`learn`), and the line is begun
   again. Of an entry that isn't decoded the body's text is written here, and kept in the entry as `body_text` keeps
   it. Rules: whatever is out of the ordinary is declined, and nothing but that text is changed for it: the slow path
   writes its line. Whatever may run Python comes before the look-ups whose results are borrowed. */

#include "plain_lines.h"

#include <structmember.h>

static const char *const slot_names[SLOTS] = {
    "capture", "number", "flow", "time_ns", "body", "api_key", "api_version", "body_version", "correlation_id",
    "client_id", "request", "packet", "first_packet", "connection", "text",
};

enum { LONG_RUN = 64 << 10 }; /* a text that ends a run of lines */
enum { CLIENT_LENGTH = 8, CLIENT_TEXT = 10 }; /* where a request has its client id */

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
    if (size < 0 || size > room)
        Py_RETURN_NONE;
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

/* As `has_nothing_to_redact`, which is asked where a look doesn't suffice. */
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

/* --- what lines have in common --- */

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
    if (!(frame->facts & HAS_CODES) || frame->request == NULL || lines->tree_width)
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

/* --- what each kind of line has besides --- */

/* Of JSON: the client, and nothing that has to be said of the body. */
static enum Outcome find_client(const PlainLines *lines, Frame *frame)
{
    PyObject *client = value_of(lines, frame->entry, CLIENT_ID);
    if (frame->facts & OTHERWISE || client == NULL
        || value_of(lines, frame->entry, BODY_VERSION) != value_of(lines, frame->entry, API_VERSION))
        return DECLINED;
    frame->client = Py_NewRef(client);
    return WRITTEN;
}

/* What a line is about: what its body, or that of its request, names first; or what Python finds. */
static enum Outcome find_subject(const PlainLines *lines, Frame *frame)
{
    PyObject *beginning = PyTuple_GET_ITEM(frame->api, API_BEGINNING), *json = frame->body;
    if (frame->request != NULL) {
        PyObject *request_text = value_of(lines, frame->request, TEXT);
        json = is_row(request_text, BODY_SIZE) ? PyTuple_GET_ITEM(request_text, BODY_JSON) : Py_None;
    }
    if (PyUnicode_CheckExact(beginning) && PyUnicode_IS_COMPACT_ASCII(beginning) && PyUnicode_CheckExact(json)
        && PyUnicode_IS_COMPACT_ASCII(json)) {
        const Py_ssize_t start = PyUnicode_GET_LENGTH(beginning), size = PyUnicode_GET_LENGTH(json) - start;
        const char *name = (const char *)PyUnicode_1BYTE_DATA(json) + start, *end = NULL;
        if (start && size > 0 && memcmp(name - start, PyUnicode_1BYTE_DATA(beginning), (size_t)start) == 0)
            end = memchr(name, '"', (size_t)size);
        if (end != NULL && end > name && memchr(name, '\\', (size_t)(end - name)) == NULL) {
            PyObject *key = PyUnicode_DecodeASCII(name, end - name, NULL);
            PyObject *row = key == NULL ? NULL : PyDict_GetItemWithError(lines->subjects, key);
            Py_XDECREF(key);
            frame->subject = Py_XNewRef(row);
            if (row != NULL || PyErr_Occurred())
                return row == NULL ? FAILED : WRITTEN;
        }
    }
    frame->subject = PyObject_CallOneArg(lines->subject, frame->entry);
    return frame->subject == NULL ? FAILED : WRITTEN;
}

/* The client of a request; declined where its text is not as it is. */
static enum Outcome find_shown_client(const PlainLines *lines, Frame *frame)
{
    PyObject *client = value_of(lines, frame->entry, CLIENT_ID);
    if (client == NULL || PyTuple_GET_ITEM(frame->api, API_FIELDS) == Py_None
        || !is_transcriber(lines, PyTuple_GET_ITEM(frame->api, API_TRANSCRIBER))
        || !is_transcriber(lines, PyTuple_GET_ITEM(frame->api, API_HEADER))
        || value_of(lines, frame->entry, BODY_VERSION) != value_of(lines, frame->entry, API_VERSION))
        return DECLINED;
    if (frame->request != NULL || client == Py_None)
        return WRITTEN;
    if (!PyUnicode_CheckExact(client) || !PyUnicode_IS_COMPACT_ASCII(client)
        || PyUnicode_GET_LENGTH(client) > lines->tree_width)
        return DECLINED;
    const Py_UCS1 *const text = PyUnicode_1BYTE_DATA(client);
    for (Py_ssize_t i = 0; i < PyUnicode_GET_LENGTH(client); i++)
        if (text[i] < ' ' || text[i] > '~')
            return DECLINED;
    frame->client = Py_NewRef(client);
    return WRITTEN;
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
    Py_CLEAR(frame->subject);
}

static enum Outcome put(const PlainLines *lines, Frame *frame, JsonText *line)
{
    enum Outcome (*find)(const PlainLines *, Frame *) = lines->tree_width         ? find_shown_client
                                                        : lines->subjects == NULL ? find_client
                                                                                  : find_subject;
    enum Outcome outcome = read_plain(lines, frame);
    if (outcome == WRITTEN)
        outcome = find_errors(lines, frame);
    if (outcome == WRITTEN)
        outcome = find(lines, frame);
    if (outcome == WRITTEN)
        outcome = find_place(lines, frame);
    if (outcome != WRITTEN)
        return outcome;
    if (lines->tree_width)
        return put_tree(lines, frame, line) ? WRITTEN : DECLINED;
    return (lines->subjects == NULL ? put_json : put_line)(lines, frame, line) ? WRITTEN : DECLINED;
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
static enum Outcome add(const PlainLines *lines, PyObject *entry, PyObject *answer, int digits, JsonText *line)
{
    Frame frame = {.entry = entry, .answer = answer, .digits = digits};
    if (!PyObject_TypeCheck(entry, lines->entry) || (answer != NULL && !PyObject_TypeCheck(answer, lines->entry)))
        return DECLINED;
    enum Outcome outcome = add_once(lines, &frame, line);
    if (outcome != UNKNOWN)
        return outcome;
    PyObject *learned = PyObject_CallOneArg(lines->learn, entry);
    if (learned == NULL)
        return FAILED;
    Py_DECREF(learned);
    frame = (Frame){.entry = entry, .answer = answer, .digits = digits};
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
    return finish(&line, add((PlainLines *)self, arguments[0], NULL, digits, &line));
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
        outcome = is_stop < 0 ? FAILED : is_stop ? DECLINED : add(lines, entry, NULL, digits, &line);
        Py_DECREF(entry);
        at += outcome == WRITTEN;
    }
    PyObject *text = finish(&line, outcome == FAILED ? FAILED : WRITTEN);
    return text == NULL ? NULL : Py_BuildValue("Nn", text, at);
}

PyDoc_STRVAR(block_doc, "block(request, answer, digits) -> str | None\n\n"
                        "The block of a tree that has a plain request and its plain answer; None for all others.");

static PyObject *plain_lines_block(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    const PlainLines *lines = (PlainLines *)self;
    if (count != 3 || !lines->tree_width) {
        PyErr_SetString(PyExc_TypeError, "expected a request, its answer and a number of decimals, for a tree");
        return NULL;
    }
    const int digits = digits_of(arguments[2]);
    if (digits < 0)
        return NULL;
    JsonText line;
    begin_text(&line);
    enum Outcome outcome = add(lines, arguments[0], arguments[1], digits, &line);
    if (outcome == WRITTEN)
        outcome = add(lines, arguments[1], NULL, digits, &line);
    if (outcome == WRITTEN)
        outcome = make_room(&line, 1) ? WRITTEN : DECLINED;
    if (outcome == WRITTEN)
        put_char(&line, '\n');
    return finish(&line, outcome);
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

PyDoc_STRVAR(plain_lines_doc, "PlainLines(classes, tables, learn, body_text, has_nothing_to_redact, errors, subject)\n\n"
                              "Puts lines of plain frames together; see coordwire.capture.plain_lines.");

static PyObject *plain_lines_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    PyTypeObject *entry, *lazy, *strict_lazy;
    PyObject *apis, *places, *seconds, *subjects, *learn, *body_text, *has_nothing_to_redact, *errors, *subject;
    if (keywords != NULL && PyDict_GET_SIZE(keywords)) {
        PyErr_SetString(PyExc_TypeError, "PlainLines takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(arguments, "(O!O!O!)(O!O!O!O)OOOOO", &PyType_Type, &entry, &PyType_Type, &lazy, &PyType_Type,
                          &strict_lazy, &PyDict_Type, &apis, &PyDict_Type, &places, &PyDict_Type, &seconds, &subjects,
                          &learn, &body_text, &has_nothing_to_redact, &errors, &subject))
        return NULL;
    PyObject *module = PyType_GetModule(type);
    Engine *engine = module == NULL ? NULL : PyModule_GetState(module);
    if (engine == NULL || engine->transcriber_type == NULL || (subjects != Py_None && !PyDict_Check(subjects))) {
        PyErr_SetString(PyExc_TypeError, "expected a dict or None for subjects");
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
    lines->subjects = subjects == Py_None ? NULL : Py_NewRef(subjects);
    lines->learn = Py_NewRef(learn);
    lines->body_text = Py_NewRef(body_text);
    lines->has_nothing_to_redact = has_nothing_to_redact == Py_None ? NULL : Py_NewRef(has_nothing_to_redact);
    lines->errors = Py_NewRef(errors);
    lines->subject = Py_NewRef(subject);
    if (find_slots(entry, slot_names, SLOTS, lines->slots) < 0)
        Py_CLEAR(lines);
    return (PyObject *)lines;
}

OWNS(PlainLines, entry, subject)

static PyMemberDef plain_lines_members[] = {
    {"number_width", T_INT, offsetof(PlainLines, number_width), 0, "Characters of a packet's number."},
    {"latency_width", T_INT, offsetof(PlainLines, latency_width), 0, "Characters of a latency."},
    {"tree_width", T_INT, offsetof(PlainLines, tree_width), 0, "Characters of a line of a tree; 0 but for trees."},
    {NULL},
};

static PyMethodDef plain_lines_methods[] = {
    {"plain", plain_lines_plain, METH_O, plain_doc},
    {"line", (PyCFunction)(void (*)(void))plain_lines_line, METH_FASTCALL, line_doc},
    {"run", (PyCFunction)(void (*)(void))plain_lines_run, METH_FASTCALL, run_doc},
    {"block", (PyCFunction)(void (*)(void))plain_lines_block, METH_FASTCALL, block_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot plain_lines_slots[] = {
    {Py_tp_doc, (void *)plain_lines_doc},
    {Py_tp_new, plain_lines_new},
    {Py_tp_traverse, PlainLines_traverse},
    {Py_tp_clear, PlainLines_clear},
    {Py_tp_dealloc, PlainLines_dealloc},
    {Py_tp_members, plain_lines_members},
    {Py_tp_methods, plain_lines_methods},
    {0, NULL},
};

PyType_Spec plain_lines_spec = {
    .name = "coordwire._speedups._native.PlainLines",
    .basicsize = sizeof(PlainLines),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = plain_lines_slots,
};
