/* The functions of windrow/kernels/native.py in C. */
#if defined(__x86_64__) && defined(__GNUC__)
#include "processor.h"
#include <immintrin.h>
#define FOLDS 1
#else
#define FOLDS 0
#endif

typedef int64_t (*codec)(void *, void *, int64_t, const void *, int64_t);

static inline uint64_t native_load(uint64_array words, int64_t at) {
    uint64_t value;
    MUST(0 <= at && at + 8 <= words.size * 8);
    memcpy(&value, (const char *)words.data + at, 8);
    return value;
}

static inline int64_t native_leading_zeros(uint64_t value) { return value ? __builtin_clzll(value) : 64; }

static inline int64_t native_bits_set(uint64_t value) { return __builtin_popcountll(value); }

static inline int64_t native_copy(uint8_array out, int64_t at, uint8_array source, int64_t first, int64_t size) {
    MUST(size >= 0 && 0 <= at && at + size <= out.size && 0 <= first && first + size <= source.size);
    memcpy(out.data + at, source.data + first, (size_t)size);
    return at + size;
}

static inline int64_t native_call(uint8_array out, int64_t at, int64_t room, int64_t function, int64_t state,
                                  uint8_array source, int64_t first, int64_t size) {
    MUST(room >= 0 && 0 <= at && at + room <= out.size);
    MUST(size >= 0 && 0 <= first && first + size <= source.size);
    return ((codec)(intptr_t)function)((void *)(intptr_t)state, out.data + at, room, source.data + first, size);
}

#if FOLDS
static inline int64_t native_can_fold(void) {
    static int found = -1;
    if (found < 0) found = multiplies_without_carries();
    return found;
}

/* What 128 bits are multiplied by to lie 512, and 128, bits further on: powers of x modulo the polynomial, reflected. */
#define BY_FOUR 0x01C6E41596, 0x0154442BD4
#define BY_ONE 0x00CCAA009E, 0x01751997D0

__attribute__((target("pclmul,sse2"))) static inline __m128i moved(__m128i value, __m128i by) {
    return _mm_xor_si128(_mm_clmulepi64_si128(value, by, 0x00), _mm_clmulepi64_si128(value, by, 0x11));
}

__attribute__((target("pclmul,sse2"))) static tuple2_word_word native_fold(uint8_array data, int64_t at, int64_t blocks,
                                                                           uint64_t state) {
    MUST(0 <= at && blocks > 0 && at + blocks * 64 <= data.size);
    const __m128i *place = (const __m128i *)(data.data + at);
    __m128i lanes[4], by = _mm_set_epi64x(BY_FOUR);
    for (int lane = 0; lane < 4; lane++) lanes[lane] = _mm_loadu_si128(place + lane);
    lanes[0] = _mm_xor_si128(lanes[0], _mm_set_epi64x(0, (long long)state));
    for (int64_t block = 1; block < blocks; block++) {
        place += 4;
        for (int lane = 0; lane < 4; lane++)
            lanes[lane] = _mm_xor_si128(moved(lanes[lane], by), _mm_loadu_si128(place + lane));
    }
    by = _mm_set_epi64x(BY_ONE);
    __m128i found = lanes[0];
    for (int lane = 1; lane < 4; lane++) found = _mm_xor_si128(moved(found, by), lanes[lane]);
    uint64_t words[2];
    _mm_storeu_si128((__m128i *)words, found);
    return (tuple2_word_word){words[0], words[1]};
}
#else
static inline int64_t native_can_fold(void) { return 0; }
static tuple2_word_word native_fold(uint8_array data, int64_t at, int64_t blocks, uint64_t state) {
    (void)data, (void)at, (void)blocks, (void)state;
    fail(OUT_OF_BOUNDS);
}
#endif
