/* Lanes: W numbers that move together. All arithmetic is elementwise, so a lane's bits depend on that lane
   alone. Compiled with contraction off: where a fused multiply-add is meant, FMA is written. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef QUAD
#include <quadmath.h>
typedef __float128 real;
typedef __float128 v;
#define W 1
#define LANE(x, l) (x)
#define FMA(a, b, c) ((a) * (b) + (c))
#define EXP expq
#define LOG logq
#define SQRT sqrtq
#define SIN sinq
#define COS cosq
#define TAN tanq
#define ASIN asinq
#define ACOS acosq
#define ATAN atanq
#define SINH sinhq
#define COSH coshq
#define TANH tanhq
#define POW powq
#define FABS fabsq
#define EPSILON FLT128_EPSILON
#else
#if defined(__AVX2__)
#include <immintrin.h>
#endif
typedef double real;
#define EXP exp
#define LOG log
#define SQRT sqrt
#define SIN sin
#define COS cos
#define TAN tan
#define ASIN asin
#define ACOS acos
#define ATAN atan
#define SINH sinh
#define COSH cosh
#define TANH tanh
#define POW pow
#define FABS fabs
#define EPSILON 2.220446049250313e-16
#if defined(COLUMNS)   /* one trajectory; the lanes are its tangents (wide.h) */
typedef double v;
#define W 1
#define LANE(x, l) (x)
#if defined(__FMA__)
#define FMA(a, b, c) __builtin_fma(a, b, c)
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#endif
#else
#define LANE(x, l) ((x)[l])
#if defined(__AVX512F__)
#define W 8
typedef double v __attribute__((vector_size(64)));
#define FMA(a, b, c) ((v)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#elif defined(__AVX2__) && defined(__FMA__)
#define W 4
typedef double v __attribute__((vector_size(32)));
#define FMA(a, b, c) ((v)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#else
#define W 4
typedef double v __attribute__((vector_size(32)));
#define FMA(a, b, c) ((a) * (b) + (c))
#endif
#endif
#endif

/* Numbers in memory are doubles; a 128-bit number is a pair of them, high and low. */
#ifdef QUAD
static inline real get(const double *a, long i) { return (real)a[2 * i] + (real)a[2 * i + 1]; }
static inline void put(double *a, long i, real x) { a[2 * i] = (double)x; a[2 * i + 1] = (double)(x - (real)a[2 * i]); }
#else
static inline real get(const double *a, long i) { return a[i]; }
static inline void put(double *a, long i, real x) { a[i] = x; }
#endif

#ifdef QUAD
#define ORDER 44
#else
#define ORDER 24
#endif
#define I(k) (real)1 / k
static const real inverse[46] = {   /* 1 / k */
    0, I(1), I(2), I(3), I(4), I(5), I(6), I(7), I(8), I(9), I(10), I(11), I(12), I(13), I(14), I(15),
    I(16), I(17), I(18), I(19), I(20), I(21), I(22), I(23), I(24), I(25), I(26), I(27), I(28), I(29),
    I(30), I(31), I(32), I(33), I(34), I(35), I(36), I(37), I(38), I(39), I(40), I(41), I(42), I(43),
    I(44), I(45)};
#undef I
#if !defined(QUAD) && defined(__FMA__)
#define I(k) (double)(1.0L / k - (long double)(1.0 / k))
static const double inverse_low[26] = {   /* 1 / k - inverse[k] */
    0, I(1), I(2), I(3), I(4), I(5), I(6), I(7), I(8), I(9), I(10), I(11), I(12), I(13), I(14), I(15),
    I(16), I(17), I(18), I(19), I(20), I(21), I(22), I(23), I(24), I(25)};
#undef I
#endif

#define EACH(l) for (int l = 0; l < W; l++)
#define INLINE static inline __attribute__((always_inline))

#if W == 8
INLINE v all(real a) { return (v)_mm512_set1_pd(a); }
#elif W == 4 && defined(__AVX2__)
INLINE v all(real a) { return (v)_mm256_set1_pd(a); }
#else
INLINE v all(real a) { v r; EACH(l) LANE(r, l) = a; return r; }
#endif

/* a / k, without the error of 1 / k, which is the same at every step and would make invariants drift. */
#if !defined(QUAD) && defined(__FMA__)
INLINE v over(v a, int k) { return FMA(a, all(inverse[k]), a * inverse_low[k]); }
#else
INLINE v over(v a, int k) { return a / (real)k; }
#endif

/* a > b ? a : b, a < b ? a : b, |a|, sign > 0 ? yes : no, the root, the flag a <= b (1 or 0), and whether any flag
   is set: in one instruction each, where compilers would take them apart into lanes. */
#if W == 8
INLINE v larger(v a, v b) { return (v)_mm512_max_pd((__m512d)a, (__m512d)b); }
INLINE v smaller(v a, v b) { return (v)_mm512_min_pd((__m512d)a, (__m512d)b); }
INLINE v size(v a) { return (v)_mm512_abs_pd((__m512d)a); }
INLINE v pick(v sign, v yes, v no)
{
    return (v)_mm512_mask_blend_pd(_mm512_cmp_pd_mask((__m512d)sign, _mm512_setzero_pd(), _CMP_GT_OQ), (__m512d)no, (__m512d)yes);
}
INLINE v v_sqrt(v a) { return (v)_mm512_sqrt_pd((__m512d)a); }
INLINE v at_most(v a, v b) { return (v)_mm512_maskz_mov_pd(_mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_LE_OQ), _mm512_set1_pd(1)); }
INLINE int any(v flags) { return _mm512_cmp_pd_mask((__m512d)flags, _mm512_setzero_pd(), _CMP_NEQ_UQ) != 0; }
#elif W == 4 && defined(__AVX2__)
INLINE v larger(v a, v b) { return (v)_mm256_max_pd((__m256d)a, (__m256d)b); }
INLINE v smaller(v a, v b) { return (v)_mm256_min_pd((__m256d)a, (__m256d)b); }
INLINE v size(v a) { return (v)_mm256_andnot_pd(_mm256_set1_pd(-0.0), (__m256d)a); }
INLINE v pick(v sign, v yes, v no)
{
    return (v)_mm256_blendv_pd((__m256d)no, (__m256d)yes, _mm256_cmp_pd((__m256d)sign, _mm256_setzero_pd(), _CMP_GT_OQ));
}
INLINE v v_sqrt(v a) { return (v)_mm256_sqrt_pd((__m256d)a); }
INLINE v at_most(v a, v b) { return (v)_mm256_and_pd(_mm256_cmp_pd((__m256d)a, (__m256d)b, _CMP_LE_OQ), _mm256_set1_pd(1)); }
INLINE int any(v flags) { return _mm256_movemask_pd(_mm256_cmp_pd((__m256d)flags, _mm256_setzero_pd(), _CMP_NEQ_UQ)) != 0; }
#else
INLINE v larger(v a, v b) { v r; EACH(l) LANE(r, l) = LANE(a, l) > LANE(b, l) ? LANE(a, l) : LANE(b, l); return r; }
INLINE v smaller(v a, v b) { v r; EACH(l) LANE(r, l) = LANE(a, l) < LANE(b, l) ? LANE(a, l) : LANE(b, l); return r; }
INLINE v size(v a) { v r; EACH(l) LANE(r, l) = FABS(LANE(a, l)); return r; }
INLINE v pick(v sign, v yes, v no) { v r; EACH(l) LANE(r, l) = LANE(sign, l) > 0 ? LANE(yes, l) : LANE(no, l); return r; }
INLINE v v_sqrt(v a) { v r; EACH(l) LANE(r, l) = SQRT(LANE(a, l)); return r; }
INLINE v at_most(v a, v b) { v r; EACH(l) LANE(r, l) = LANE(a, l) <= LANE(b, l); return r; }
INLINE int any(v flags) { int r = 0; EACH(l) r |= LANE(flags, l) != 0; return r; }
#endif

#define LANEWISE(name, function) INLINE v name(v a) { v r; EACH(l) LANE(r, l) = function(LANE(a, l)); return r; }
LANEWISE(v_exp, EXP)
LANEWISE(v_log, LOG)
LANEWISE(v_tan, TAN)
LANEWISE(v_asin, ASIN)
LANEWISE(v_acos, ACOS)
LANEWISE(v_atan, ATAN)
LANEWISE(v_sinh, SINH)
LANEWISE(v_cosh, COSH)
LANEWISE(v_tanh, TANH)
INLINE v v_abs(v a) { return size(a); }
INLINE v v_min(v a, v b) { return smaller(a, b); }
INLINE v v_max(v a, v b) { return larger(a, b); }
INLINE v v_sign(v a) { v r; EACH(l) LANE(r, l) = (LANE(a, l) > 0) - (LANE(a, l) < 0); return r; }
INLINE v v_less(v a, v b) { v r; EACH(l) LANE(r, l) = LANE(a, l) < LANE(b, l); return r; }
INLINE v v_less_equal(v a, v b) { v r; EACH(l) LANE(r, l) = LANE(a, l) <= LANE(b, l); return r; }
INLINE v v_where(v c, v a, v b) { return pick(c * c, a, b); }
INLINE v v_power(v a, v b) { v r; EACH(l) LANE(r, l) = POW(LANE(a, l), LANE(b, l)); return r; }

/* sin (turn = 0) and cos (turn = 1) of all lanes at once: pi/2 taken off in two parts, then the polynomials of
   fdlibm (Sun Microsystems 1993) on [-pi/4, pi/4]. Large arguments go to the library, lane by lane. */
#if !defined(QUAD) && defined(__FMA__)
INLINE v circular(v x, int turn)
{
    const v shift = all(0x1.8p52), turns = FMA(x, all(0x1.45f306dc9c883p-1), shift), n = turns - shift;
    const v r = FMA(n, all(-0x1.1a62633145c07p-54), FMA(n, all(-0x1.921fb54442d18p+0), x)), z = r * r;
    v ps = all(1.58969099521155010221e-10), pc = all(-1.13596475577881948265e-11), result;
    ps = FMA(ps, z, all(-2.50507602534068634195e-08));
    pc = FMA(pc, z, all(2.08757232129817482790e-09));
    ps = FMA(ps, z, all(2.75573137070700676789e-06));
    pc = FMA(pc, z, all(-2.75573143513906633035e-07));
    ps = FMA(ps, z, all(-1.98412698298579493134e-04));
    pc = FMA(pc, z, all(2.48015872894767294178e-05));
    ps = FMA(ps, z, all(8.33333333332248946124e-03));
    pc = FMA(pc, z, all(-1.38888888888741095749e-03));
    ps = FMA(ps, z, all(-1.66666666666666324348e-01));
    pc = FMA(pc, z, all(4.16666666666666019037e-02));
    const v half = z * 0.5, w = 1 - half;
    const v s = FMA(r * z, ps, r), c = w + FMA(z * z, pc, (1 - w) - half);
    int far = 0;
    EACH(l) {
        int64_t quarter;
        memcpy(&quarter, (double *)&turns + l, 8);
        quarter += turn;
        double value = quarter & 1 ? LANE(c, l) : LANE(s, l);
        LANE(result, l) = quarter & 2 ? -value : value;
        far |= !(fabs(LANE(x, l)) < 1e5);
    }
    if (far) EACH(l) if (!(fabs(LANE(x, l)) < 1e5)) LANE(result, l) = turn ? cos(LANE(x, l)) : sin(LANE(x, l));
    return result;
}
INLINE v v_sin(v a) { return circular(a, 0); }
INLINE v v_cos(v a) { return circular(a, 1); }
#else
LANEWISE(v_sin, SIN)
LANEWISE(v_cos, COS)
#endif

/* log2 and exp2 good to a few percent, for step sizes only: the exponent and the mantissa read as one number. */
#ifdef QUAD
INLINE v rough_log2(v a) { return log2q(a); }
INLINE v rough_exp2(v a) { return exp2q(a); }
#else
INLINE v rough_log2(v a) {
    v r;
    EACH(l) { int64_t bits; memcpy(&bits, (double *)&a + l, 8); LANE(r, l) = (double)bits * 0x1p-52 - 1023.0; }
    return r;
}
INLINE v rough_exp2(v a) {
    v r;
    EACH(l) { int64_t bits = (int64_t)((LANE(a, l) + 1023.0) * 0x1p52); memcpy((double *)&r + l, &bits, 8); }
    return r;
}
#endif
