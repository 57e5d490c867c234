/* What translated kernels stand on: arrays with their sizes, memory that is freed when a kernel ends, and trouble that
   ends a kernel. With WINDROW_CHECKED every access is compared with the size of its array. */
#include "python.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef double float64_t;
typedef uint8_t bool_t;

enum { OUT_OF_BOUNDS = 1, OUT_OF_MEMORY, DIVIDED_BY_ZERO };

typedef struct block {
    struct block *before;
    int64_t unused; /* what is behind is aligned to 16 bytes */
} block;

typedef struct scope {
    jmp_buf escape;
    block *blocks;
    struct scope *outer;
} scope;

static __thread scope *current;

static void enter(scope *here) {
    here->blocks = NULL;
    here->outer = current;
    current = here;
}

static block *allocated(void) { return current->blocks; }

static void release(block *mark) {
    while (current->blocks != mark) {
        block *last = current->blocks;
        current->blocks = last->before;
        free(last);
    }
}

static void leave(scope *here) {
    release(NULL);
    current = here->outer;
}

__attribute__((noreturn, cold, noinline)) static void fail(int trouble) { longjmp(current->escape, trouble); }

static void *new_block(int64_t count, int64_t width, int zero) {
    if (count < 0 || count > (INT64_MAX >> 5)) fail(OUT_OF_MEMORY);
    size_t size = sizeof(block) + (size_t)(count * width);
    block *made = zero ? calloc(1, size) : malloc(size);
    if (!made) fail(OUT_OF_MEMORY);
    made->before = current->blocks;
    current->blocks = made;
    return made + 1;
}

static inline int64_t checked(int64_t index, int64_t size) {
    if ((uint64_t)index >= (uint64_t)size) fail(OUT_OF_BOUNDS);
    return index;
}

#ifdef WINDROW_CHECKED
#define AT(index, size) checked(index, size)
#define MUST(condition) ((condition) ? (void)0 : fail(OUT_OF_BOUNDS))
#else
#define AT(index, size) (index)
#define MUST(condition) (void)0
#endif

static inline int64_t divided_int(int64_t one, int64_t other) {
    if (other == 0) fail(DIVIDED_BY_ZERO);
    int64_t found = one / other;
    return found - (one % other != 0 && (one < 0) != (other < 0));
}
static inline int64_t remainder_of_int(int64_t one, int64_t other) {
    if (other == 0) fail(DIVIDED_BY_ZERO);
    int64_t found = one % other;
    return found + (found != 0 && (found < 0) != (other < 0) ? other : 0);
}
static inline uint64_t divided_word(uint64_t one, uint64_t other) {
    if (other == 0) fail(DIVIDED_BY_ZERO);
    return one / other;
}
static inline uint64_t remainder_of_word(uint64_t one, uint64_t other) {
    if (other == 0) fail(DIVIDED_BY_ZERO);
    return one % other;
}

#define EXTREMES(name, type)                                                                         \
    static inline type least_##name(type one, type other) { return other < one ? other : one; }      \
    static inline type greatest_##name(type one, type other) { return other > one ? other : one; }
EXTREMES(int, int64_t)
EXTREMES(word, uint64_t)
EXTREMES(float, double)

#define ARRAYS(name)                                                                                        \
    typedef struct { name##_t *data; int64_t size; } name##_array;                                          \
    typedef struct { name##_t *data; int64_t rows, columns; } name##_2_array;                               \
    static inline name##_array name##_new(int64_t size) {                                                   \
        return (name##_array){new_block(size, sizeof(name##_t), 0), size};                                  \
    }                                                                                                       \
    static inline name##_array name##_zeros(int64_t size) {                                                 \
        return (name##_array){new_block(size, sizeof(name##_t), 1), size};                                  \
    }                                                                                                       \
    static inline name##_2_array name##_2_zeros(int64_t rows, int64_t columns) {                            \
        return (name##_2_array){new_block(rows * columns, sizeof(name##_t), 1), rows, columns};             \
    }                                                                                                       \
    static inline void name##_fill(name##_array array, name##_t value) {                                    \
        for (int64_t at = 0; at < array.size; at++) array.data[at] = value;                                 \
    }                                                                                                       \
    static inline name##_array name##_full(int64_t size, name##_t value) {                                  \
        name##_array made = name##_new(size);                                                               \
        name##_fill(made, value);                                                                           \
        return made;                                                                                        \
    }                                                                                                       \
    static inline name##_array name##_slice(name##_array array, int64_t low, int64_t high) {                \
        MUST(0 <= low && low <= high && high <= array.size);                                                \
        return (name##_array){array.data + low, high - low};                                                \
    }                                                                                                       \
    static inline name##_array name##_2_row(name##_2_array array, int64_t row) {                            \
        return (name##_array){array.data + AT(row, array.rows) * array.columns, array.columns};             \
    }                                                                                                       \
    static inline name##_array name##_2_flat(name##_2_array array) {                                        \
        return (name##_array){array.data, array.rows * array.columns};                                      \
    }                                                                                                       \
    static inline void name##_move(name##_array to, name##_array from) {                                    \
        MUST(to.size == from.size);                                                                         \
        memmove(to.data, from.data, (size_t)to.size * sizeof(name##_t));                                    \
    }                                                                                                       \
    static inline name##_array name##_copy(name##_array array) {                                            \
        name##_array made = name##_new(array.size);                                                         \
        name##_move(made, array);                                                                           \
        return made;                                                                                        \
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
ARRAYS(uint8)
ARRAYS(bool)
ARRAYS(uint16)
ARRAYS(int32)
ARRAYS(uint32)
ARRAYS(int64)
ARRAYS(uint64)
ARRAYS(float64)
#pragma GCC diagnostic pop

static int compared(const void *one, const void *other) {
    int32_t left = *(const int32_t *)one, right = *(const int32_t *)other;
    return (left > right) - (left < right);
}
static void int32_sort(int32_array array) { qsort(array.data, (size_t)array.size, sizeof(int32_t), compared); }
