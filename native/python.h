/* The part of Python's stable ABI (3.11) that kernels use, so that a machine without Python's headers builds them. */
#ifndef WINDROW_PYTHON_H
#define WINDROW_PYTHON_H
#include <stddef.h>
#include <stdint.h>

typedef intptr_t Py_ssize_t;
typedef struct _object PyObject;
typedef struct _ts PyThreadState;
typedef struct {
    void *buf;
    PyObject *obj;
    Py_ssize_t len, itemsize;
    int readonly, ndim;
    char *format;
    Py_ssize_t *shape, *strides, *suboffsets;
    void *internal;
} Py_buffer;
typedef struct {
    const char *ml_name;
    void *ml_meth;
    int ml_flags;
    const char *ml_doc;
} PyMethodDef;
typedef struct {
    Py_ssize_t references;
    void *type;
    void *initialise;
    Py_ssize_t index;
    void *copy;
} PyModuleDef_Base;
typedef struct {
    int slot;
    void *value;
} PyModuleDef_Slot;
typedef struct {
    PyModuleDef_Base base;
    const char *name, *doc;
    Py_ssize_t size;
    PyMethodDef *methods;
    PyModuleDef_Slot *slots;
    void *traverse, *clear, *free;
} PyModuleDef;

enum { METH_NOARGS = 0x04, METH_FASTCALL = 0x80, PyBUF_WRITABLE = 0x01, PyBUF_FORMAT = 0x04, PyBUF_ND = 0x08 };

PyObject *PyModuleDef_Init(PyModuleDef *);
int PyModule_AddFunctions(PyObject *, PyMethodDef *);
int PyModule_AddIntConstant(PyObject *, const char *, long);
int PyObject_GetBuffer(PyObject *, Py_buffer *, int);
void PyBuffer_Release(Py_buffer *);
PyThreadState *PyEval_SaveThread(void);
void PyEval_RestoreThread(PyThreadState *);
PyObject *PyErr_Occurred(void);
PyObject *PyErr_Format(PyObject *, const char *, ...);
void Py_DecRef(PyObject *);
void Py_IncRef(PyObject *);
int PyObject_IsTrue(PyObject *);
PyObject *PyNumber_Index(PyObject *);
long long PyLong_AsLongLong(PyObject *);
unsigned long long PyLong_AsUnsignedLongLongMask(PyObject *);
double PyFloat_AsDouble(PyObject *);
PyObject *PyLong_FromLongLong(long long);
PyObject *PyLong_FromUnsignedLongLong(unsigned long long);
PyObject *PyFloat_FromDouble(double);
PyObject *PyBool_FromLong(long);
PyObject *PyUnicode_FromString(const char *);
PyObject *PyTuple_New(Py_ssize_t);
PyObject *PyTuple_GetItem(PyObject *, Py_ssize_t);
int PyTuple_SetItem(PyObject *, Py_ssize_t, PyObject *);
extern PyObject _Py_NoneStruct;
extern PyObject *PyExc_TypeError, *PyExc_IndexError, *PyExc_MemoryError, *PyExc_ZeroDivisionError;
#endif
