/* What this processor can do, read from it: the twin of the compiler's own, which not every compiler can link. */
#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>

static inline int multiplies_without_carries(void) {
    unsigned a, b, c = 0, d;
    return __get_cpuid(1, &a, &b, &c, &d) && c >> 1 & 1;
}

/* The level as x86-64 counts them, as far as kernels use it: 2, 3 or 4. */
static inline long processor_level(void) {
    unsigned a, b = 0, c = 0, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return 2;
    /* which registers the system saves when it changes threads */
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 0x06) != 0x06 || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 2;
    const unsigned third = 1u << 3 | 1u << 5 | 1u << 8;                      /* bmi, avx2, bmi2 */
    const unsigned fourth = 1u << 16 | 1u << 17 | 1u << 30 | (1u << 31);     /* avx512f, dq, bw, vl */
    if ((b & third) != third) return 2;
    return (low & 0xE6) == 0xE6 && (b & fourth) == fourth ? 4 : 3;
}
#endif
