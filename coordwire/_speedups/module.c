/* The extension module: what Python sees of the message engine, the record kernel and the
   walks over packets and frames, and lines.

   Each part adds its own functions and types to the module (`*_exec`), keeps its state in a struct of its own
   and frees it in its own functions; this file only joins them. */

#include "slots.h"

static int module_exec(PyObject *module)
{
    static PyType_Spec *const specs[] = {
        &slot_maker_spec, &packet_walk_spec, &frame_walk_spec, &plain_lines_spec, NULL,
    };
    if (engine_exec(module) < 0 || records_exec(module) < 0)
        return -1;
    for (PyType_Spec *const *spec = specs; *spec != NULL; spec++)
        if (add_type(module, *spec) < 0)
            return -1;
    return 0;
}

static void module_free(void *module) { engine_clear(module); }

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, module_exec},
#if PY_VERSION_HEX >= 0x030C0000 /* those that share lock and allocator load it all the same */
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "coordwire._speedups._native",
    .m_doc = "Messages, records and packets at native speed.",
    .m_slots = slots,
    .m_traverse = engine_traverse,
    .m_clear = engine_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit__native(void)
{
    definition.m_size = engine_size;
    return PyModuleDef_Init(&definition);
}
