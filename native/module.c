/* The module that Python imports: the kernels for the widest instructions that this processor has. */
#include "processor.h"
#include "python.h"
#include <stdlib.h>

#define TEXT_OF(word) #word
#define TEXT(word) TEXT_OF(word)
#define JOINED_OF(one, other) one##other
#define JOINED(one, other) JOINED_OF(one, other)

extern PyMethodDef kernels_base[];
#ifdef WIDE
extern PyMethodDef kernels_wide[], kernels_widest[];
#endif

static PyObject *digest(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return PyUnicode_FromString(DIGEST);
}

static PyMethodDef own[] = {{"digest", digest, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};

/* The level of this processor: 2, 3 or 4, as x86-64 counts them; never above the one that a variable names. */
static long level(void) {
    long found = 2;
#ifdef WIDE
    const char *most = getenv("WINDROW_KERNELS_LEVEL");
    found = processor_level();
    if (most && *most >= '2' && *most <= '4' && found > *most - '0') found = *most - '0';
#endif
    return found;
}

static int execute(PyObject *module) {
    long found = level();
    if (PyModule_AddFunctions(module, own) < 0 || PyModule_AddIntConstant(module, "level", found) < 0) return -1;
    if (PyModule_AddFunctions(module, kernels_base) < 0) return -1;
#ifdef WIDE
    /* what is added later takes the place of what was there */
    if (found > 2 && PyModule_AddFunctions(module, kernels_wide) < 0) return -1;
    if (found > 3 && PyModule_AddFunctions(module, kernels_widest) < 0) return -1;
#endif
    return 0;
}

static PyModuleDef_Slot slots[] = {{2, execute}, {0, NULL}};
static PyModuleDef definition = {{1, 0, 0, 0, 0}, TEXT(MODULE), NULL, 0, NULL, slots, NULL, NULL, NULL};

__attribute__((visibility("default"))) PyObject *JOINED(PyInit_, MODULE)(void);
PyObject *JOINED(PyInit_, MODULE)(void) { return PyModuleDef_Init(&definition); }
