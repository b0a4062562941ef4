/* The message engine. */

#include "module.h"

int engine_exec(PyObject *module)
{
    (void)module;
    return 0;
}
