/* What Python hands to kernels, and gets from them. */
typedef struct {
    Py_buffer buffer;
    void *data;
    int64_t size, rows, columns, as_int;
    uint64_t as_word;
    double as_float;
    int held;
    char kind;
} taken;

static PyObject *part_of(PyObject *item, int place) { return item ? PyTuple_GetItem(item, place) : NULL; }

/* The kind of elements: u, i or f; 0 for all that kernels do not take. */
static char kind_of(const char *format) {
    if (!format) return 'u';
    while (*format == '<' || *format == '=' || *format == '@' || *format == '^') format++;
    if (!*format || format[1]) return 0;
    if (strchr("BHILQ?", *format)) return 'u';
    if (strchr("bhilq", *format)) return 'i';
    return *format == 'd' ? 'f' : 0;
}

static int taken_array(taken *value, PyObject *item, int dimensions, int is_written) {
    int flags = PyBUF_FORMAT | PyBUF_ND | (is_written ? PyBUF_WRITABLE : 0);
    if (!item || PyObject_GetBuffer(item, &value->buffer, flags) < 0) return 0;
    Py_buffer *found = &value->buffer;
    value->held = 1;
    value->data = found->buf;
    value->size = found->itemsize ? found->len / found->itemsize : 0;
    value->kind = kind_of(found->format);
    if (found->ndim != dimensions) {
        PyErr_Format(PyExc_TypeError, "an array of %d dimensions is given where %d are expected", found->ndim, dimensions);
        return 0;
    }
    value->rows = dimensions == 2 ? found->shape[0] : value->size;
    value->columns = dimensions == 2 ? found->shape[1] : 1;
    return 1;
}

static int taken_int(taken *value, PyObject *item) {
    if (!item) return 0;
    value->as_int = PyLong_AsLongLong(item);
    return value->as_int != -1 || !PyErr_Occurred();
}

static int taken_word(taken *value, PyObject *item) {
    PyObject *number = item ? PyNumber_Index(item) : NULL;
    if (!number) return 0;
    value->as_word = PyLong_AsUnsignedLongLongMask(number);
    Py_DecRef(number);
    return value->as_word != UINT64_MAX || !PyErr_Occurred();
}

static int taken_float(taken *value, PyObject *item) {
    if (!item) return 0;
    value->as_float = PyFloat_AsDouble(item);
    return value->as_float != -1 || !PyErr_Occurred();
}

static int taken_truth(taken *value, PyObject *item) {
    if (!item) return 0;
    value->as_int = PyObject_IsTrue(item);
    return value->as_int >= 0;
}

static void given_back(taken *values, int count) {
    for (int at = 0; at < count; at++)
        if (values[at].held) PyBuffer_Release(&values[at].buffer);
}

#define KIND(name, letter, width)                                                                          \
    static inline int is_##name(const taken *value) {                                                      \
        return value->kind == letter && value->buffer.itemsize == width;                                   \
    }
KIND(u1, 'u', 1)
KIND(u2, 'u', 2)
KIND(u4, 'u', 4)
KIND(u8, 'u', 8)
KIND(i4, 'i', 4)
KIND(i8, 'i', 8)

static PyObject *none(void) {
    Py_IncRef(&_Py_NoneStruct);
    return &_Py_NoneStruct;
}

static PyObject *tuple_of(int count, ...) {
    PyObject *made = PyTuple_New(count);
    va_list parts;
    va_start(parts, count);
    for (int at = 0; at < count; at++) {
        PyObject *part = va_arg(parts, PyObject *);
        if (made && part) PyTuple_SetItem(made, at, part);
        else if (part) Py_DecRef(part);
    }
    va_end(parts);
    return made;
}

static PyObject *refused_count(const char *name, Py_ssize_t given, int expected) {
    return PyErr_Format(PyExc_TypeError, "%s takes %d arguments, %d were given", name, expected, (int)given);
}

static void refused_types(const char *name, const taken *values, int count) {
    char kinds[256] = "";
    for (int at = 0; at < count && strlen(kinds) < 240; at++)
        if (values[at].held) {
            size_t end = strlen(kinds);
            const char text[] = {' ', values[at].kind ? values[at].kind : '?', (char)('0' + values[at].buffer.itemsize), 0};
            memcpy(kinds + end, text, sizeof text);
        }
    PyErr_Format(PyExc_TypeError, "%s is not compiled for arrays of the types%s", name, kinds);
}

static void refused(const char *name, int trouble) {
    if (trouble == OUT_OF_MEMORY) PyErr_Format(PyExc_MemoryError, "%s: not enough memory", name);
    else if (trouble == DIVIDED_BY_ZERO) PyErr_Format(PyExc_ZeroDivisionError, "%s: a division by zero", name);
    else PyErr_Format(PyExc_IndexError, "%s: an index is out of bounds", name);
}
