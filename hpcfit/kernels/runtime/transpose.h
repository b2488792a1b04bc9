/* Blocks of numbers that lie member by member in memory, to and from lanes. */

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define HAS_SHUFFLES 1
#endif
#endif

#if defined(HAS_SHUFFLES) && W == 8
#define LOW_1(a, b) __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14)
#define HIGH_1(a, b) __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15)
#define LOW_2(a, b) __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define HIGH_2(a, b) __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define LOW_4(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define HIGH_4(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15)
#elif defined(HAS_SHUFFLES) && W == 4
#define LOW_1(a, b) __builtin_shufflevector(a, b, 0, 4, 2, 6)
#define HIGH_1(a, b) __builtin_shufflevector(a, b, 1, 5, 3, 7)
#define LOW_2(a, b) __builtin_shufflevector(a, b, 0, 1, 4, 5)
#define HIGH_2(a, b) __builtin_shufflevector(a, b, 2, 3, 6, 7)
#endif

#ifdef LOW_1
#define EXCHANGE(d, m)                                                   \
    for (int i = 0; i < W; i++) if (!(i & d)) {                          \
        const v a = m[i], b = m[i + d];                                  \
        m[i] = LOW_##d(a, b);                                            \
        m[i + d] = HIGH_##d(a, b);                                       \
    }

/* Columns become rows. */
INLINE void transpose(v m[W])
{
    EXCHANGE(1, m)
    EXCHANGE(2, m)
#if W == 8
    EXCHANGE(4, m)
#endif
}
#else
INLINE void transpose(v m[W])
{
    for (int i = 0; i < W; i++) for (int l = 0; l < i; l++) {
        const double swapped = m[i][l];
        m[i][l] = m[l][i];
        m[l][i] = swapped;
    }
}
#endif

/* The first `count` numbers at an address, and zeros; and back. No other numbers are touched. */
#if W == 8 && defined(__AVX512F__)
INLINE v some(const double *from, int count) { return (v)_mm512_maskz_loadu_pd((__mmask8)((1 << count) - 1), from); }
INLINE void put_some(double *to, v x, int count) { _mm512_mask_storeu_pd(to, (__mmask8)((1 << count) - 1), (__m512d)x); }
#else
INLINE v some(const double *from, int count) { v r = all(0); for (int i = 0; i < count; i++) r[i] = from[i]; return r; }
INLINE void put_some(double *to, v x, int count) { for (int i = 0; i < count; i++) to[i] = x[i]; }
#endif

/* to[i] = number i of every lane's block, which begins at from + at[l]. */
INLINE void load(const double *from, const long *at, int count, v *to)
{
    for (int first = 0; first < count; first += W) {
        const int own = count - first < W ? count - first : W;
        v m[W];
        EACH(l) m[l] = some(from + at[l] + first, own);
        transpose(m);
        for (int i = 0; i < own; i++) to[first + i] = m[i];
    }
}

/* The same back into the blocks of those lanes that have one. */
INLINE void save(double *to, const long *at, int count, const v *from)
{
    for (int first = 0; first < count; first += W) {
        const int own = count - first < W ? count - first : W;
        v m[W];
        for (int i = 0; i < W; i++) m[i] = i < own ? from[first + i] : all(0);
        transpose(m);
        EACH(l) if (at[l] >= 0) put_some(to + at[l] + first, m[l], own);
    }
}
