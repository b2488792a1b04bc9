/* Gram-Schmidt with the columns in their order (Benettin et al. 1980): modified, all later columns at once. */

#ifdef QUAD
#define NOTHING_NOTED 0
#else
#define NOTHING_NOTED 1
#endif

/* |column|^2, gathered as a product and the powers of two that were taken out of it; 128 bits: as a sum of logarithms. */
INLINE void note(v *gathered, v *powers, v square, v due)
{
#ifdef QUAD
    (void)powers;
    if (due > 0) *gathered += LOG(square);
#else
    v product = pick(due, *gathered * square, *gathered), power;
    EACH(l) {
        int64_t bits;
        memcpy(&bits, (double *)&product + l, 8);
        LANE(power, l) = (double)((bits >> 52) - 1023);
        bits = (bits & 0x000fffffffffffff) | 0x3ff0000000000000;
        memcpy((double *)&product + l, &bits, 8);
    }
    *gathered = product;
    *powers += power;
#endif
}

/* What has been noted: the logarithm of the length. */
INLINE real noted(real gathered, real powers)
{
#ifdef QUAD
    (void)powers;
    return gathered / 2;
#else
    return 0.5 * (log(gathered) + powers * 0x1.62e42fefa39efp-1);
#endif
}

INLINE v usable(v square) { return at_most(all((real)1e-280), square) * at_most(square, all((real)1e280)); }

/* Take the direction q, that of column k, out of the columns behind it. */
static void remove_direction(crew *c, const v *q, int k, v due)
{
    for (int place = (k + 1) / WIDE; place < c->places; place++) {
        w *V = c->S + c->where[place].first, dot = spread(all(0));
        const int stride = c->where[place].stride;
        for (int i = 0; i < N; i++) dot = FMAW(spread(q[i]), V[i * stride], dot);
#ifdef COLUMNS
        (void)due;
        flags later = {0};   /* the columns before q keep their bits */
        for (int m = 0; m < WIDE; m++) later[m] = -(place * WIDE + m > k);
        for (int i = 0; i < N; i++) {
            const w changed = FMAW(-dot, spread(q[i]), V[i * stride]);
            V[i * stride] = (w)(((flags)changed & later) | ((flags)V[i * stride] & ~later));
        }
#else
        for (int i = 0; i < N; i++) V[i * stride] = pick(due, FMAW(-dot, q[i], V[i * stride]), V[i * stride]);
#endif
    }
}

/* Orthonormalise the frames of the lanes whose flag `due` is set; returns flags of those where it is not possible. */
static v orthonormalise(crew *c, v due)
{
    v bad = all(0);
    for (int k = 0; k < c->tangents; k++) {
        w *V = c->S + c->where[k / WIDE].first;
        const int stride = c->where[k / WIDE].stride;
        v square = all(0);
        for (int i = 0; i < N; i++) {
            c->q[i] = part(V + i * stride, k % WIDE);
            square = FMA(c->q[i], c->q[i], square);
        }
        const v scale = 1 / v_sqrt(square);
        bad = larger(bad, due * (1 - usable(square)));
        for (int i = 0; i < N; i++) {
            const v scaled = c->q[i] * scale;
            set_part(V + i * stride, k % WIDE, pick(due, scaled, c->q[i]));
            c->q[i] = scaled;
        }
        note(c->gathered + k, c->powers + k, square, due);
        remove_direction(c, c->q, k, due);
    }
    return bad;
}
