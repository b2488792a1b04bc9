/* Places: what a row of tangents consists of. Where lanes are trajectories a place is one tangent of each; where one
   trajectory is alone (COLUMNS) it is WIDE neighbouring tangents. The operations on a tangent are the same. */

#if defined(COLUMNS)
#if defined(__AVX512F__)
#define WIDE 8
typedef double w __attribute__((vector_size(64)));
INLINE w spread(v a) { return (w)_mm512_set1_pd(a); }
#define FMAW(a, b, c) ((w)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#elif defined(__AVX2__) && defined(__FMA__)
#define WIDE 4
typedef double w __attribute__((vector_size(32)));
INLINE w spread(v a) { return (w)_mm256_set1_pd(a); }
#define FMAW(a, b, c) ((w)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#else
#define WIDE 4
typedef double w __attribute__((vector_size(32)));
INLINE w spread(v a) { return (w){a, a, a, a}; }
#define FMAW(a, b, c) ((a) * (b) + (c))
#endif
typedef int64_t flags __attribute__((vector_size(sizeof(w))));
INLINE v part(const w *place, int number) { return (*place)[number]; }
INLINE void set_part(w *place, int number, v a) { (*place)[number] = a; }
#else
#define WIDE 1
typedef v w;
INLINE w spread(v a) { return a; }
#define FMAW(a, b, c) FMA(a, b, c)
INLINE v part(const w *place, int number) { (void)number; return *place; }
INLINE void set_part(w *place, int number, v a) { (void)number; *place = a; }
#endif

/* A number that several operations use, loaded once: compilers would load it for each. */
INLINE w in_register(w a)
{
#if defined(__AVX2__) && !defined(QUAD)
    __asm__("" : "+v"(a));
#endif
    return a;
}
