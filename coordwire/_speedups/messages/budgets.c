/* The budgets of the context, read from the Python object that holds them.

   Rule: budgets that are not of the class that bind() was given, or out of range, are refused without an exception,
   and Python decides. */

#include "engine.h"

static inline long long number_at(PyObject *object, Py_ssize_t offset, bool *failed)
{
    PyObject *value = *slot_at(object, offset);
    long long number = 0;
    *failed |= value == NULL || !as_integer(value, &number) || number > (INT64_C(1) << 60)
        || number < -(INT64_C(1) << 60);
    return number;
}

/* The context's budgets; NULL without an exception if there are none of the class. */
static PyObject *find_limits(const Engine *engine)
{
    PyObject *limits;
    if (engine->current == NULL || PyContextVar_Get(engine->current, NULL, &limits) < 0) {
        PyErr_Clear();
        return NULL;
    }
    if (limits != NULL && !Py_IS_TYPE(limits, engine->limits_type))
        Py_CLEAR(limits);
    return limits;
}

bool engine_budgets(const Engine *engine, int64_t size, Budgets *budgets)
{
    PyObject *limits = find_limits(engine);
    if (limits == NULL)
        return false;
    bool failed = false;
    budgets->elements = number_at(limits, engine->elements, &failed);
    budgets->memory = number_at(limits, engine->memory, &failed);
    int64_t factor = number_at(limits, engine->memory_factor, &failed) - engine->kept_back;
    failed |= factor > (INT64_C(1) << 60) / (size + 1) || factor < -engine->kept_back;
    if (!failed)
        budgets->memory += factor * size;
    Py_DECREF(limits); /* the context still has it, or no one else had it: no foreign code runs */
    return !failed;
}

bool engine_takes(const Engine *engine, int64_t size)
{
    PyObject *limits = find_limits(engine);
    if (limits == NULL)
        return false;
    bool failed = false;
    int64_t most = number_at(limits, engine->frame, &failed);
    Py_DECREF(limits);
    return !failed && size <= most;
}
