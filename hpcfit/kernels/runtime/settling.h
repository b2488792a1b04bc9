/* How far a series must go, and how long a step may be. */

#define LOWEST_ORDER 6   /* terms before this one are not looked at */

typedef struct {
    v reach;        /* the longest step that can be asked for */
    v power;        /* reach^k */
    v need;         /* a term below this does not matter */
    v growth;       /* size of f_x times reach; zero without tangents */
    v tangent;      /* growth^k / k!: how large the terms of the tangents are */
    real tolerance, tangent_tolerance;
    int quiet_terms;   /* how many consecutive terms must not matter: one more with tangents */
    v insist;       /* flags: lanes that take the full order in any case */
    v quiet;        /* consecutive terms below need */
    v open;         /* flags: lanes that have not settled */
    v order;        /* of each lane that has settled */
} settling;

INLINE v largest(const v *s, int k)
{
    v q = size(s[k]);
    for (int i = 1; i < N; i++) q = larger(q, size(s[i * STRIDE + k]));
    return q;
}

INLINE void begin_settling(settling *w, const v *s)
{
    w->power = w->reach;
    w->tangent = w->growth;
    w->need = w->tolerance * larger(largest(s, 0), largest(s, 1) * w->reach);
    w->quiet = all(0);
    w->open = 1 - at_most(w->reach, all(0));   /* an empty place needs nothing */
    w->order = 2 * (1 - w->open);
}

/* After coefficient k: true when no lane needs more. A lane has settled when a few consecutive terms do not
   matter even at its longest step (a term of zero proves nothing: t^12 begins with twelve); its order is then its own, whatever its neighbours still need. */
INLINE int settle(settling *w, const v *s, int k)
{
    w->power *= w->reach;
    w->tangent *= w->growth * inverse[k];
    if (k < LOWEST_ORDER) return !any(w->open);
    const v term = largest(s, k) * w->power;
    const v below = at_most(term, w->need) * (1 - at_most(term, all(0))) * at_most(w->tangent, all(w->tangent_tolerance));
    w->quiet = below * (w->quiet + 1);
    const v settles = (w->open - w->open * w->insist) * at_most(all(w->quiet_terms), w->quiet);
    w->order += k * settles;
    w->open -= settles;
    return !any(w->open);
}

/* The step at which the last two terms of the state are as large as allowed (Jorba and Zou 2005), for lanes
   that have not settled: relative to the state or to its change, whichever allows more. */
INLINE v state_step(const v *s, int order, real tolerance)
{
    const v tiny = all((real)1e-290), last = larger(largest(s, order - 1), largest(s, order));
    v q1 = rough_log2(larger(largest(s, order - 1), tiny)), q2 = rough_log2(larger(largest(s, order), tiny));
    v n0 = rough_log2(larger(tolerance * largest(s, 0), tiny)), n1 = rough_log2(larger(tolerance * largest(s, 1), tiny));
    v by_size = smaller((n0 - q1) * inverse[order - 1], (n0 - q2) * inverse[order]);
    v by_change = smaller((n1 - q1) * inverse[order - 2], (n1 - q2) * inverse[order - 1]);
    v h = (real)0.95 * rough_exp2(smaller(larger(by_size, by_change), all(60)));
    return pick(last, h, all(0x1p60));   /* a polynomial, or rest */
}

/* Which lanes end at which order: 1 where order k is the lane's last, where k + 1 is, where k is within it. */
typedef struct {
    int lowest, highest, of[W];
    v last[ORDER + 2], before[ORDER + 2], within[ORDER + 2];
} orders;

INLINE void note_orders(orders *o, const settling *w, int highest)
{
    const v of = w->order + highest * w->open;
    o->lowest = o->highest = highest;
    EACH(l) {
        o->of[l] = (int)LANE(of, l);
        o->lowest = o->of[l] < o->lowest ? o->of[l] : o->lowest;
    }
    for (int k = o->lowest - 1; k <= highest; k++) {
        o->within[k] = at_most(all(k), of);
        o->last[k] = o->within[k] * at_most(of, all(k));
        o->before[k] = at_most(all(k + 1), of) * at_most(of, all(k + 1));
    }
}

/* Largest entries of a column of the tangents at each lane's last two orders; d[k * stride] is its row 0. */
INLINE void column_sizes(const v *d, int width, int stride, const orders *o, v *q1, v *q2)
{
    *q1 = *q2 = all(0);
    for (int k = o->lowest - 1; k <= o->highest; k++) {
        v q = all(0);
        for (int r = 0; r < N; r++) q = larger(size(d[k * stride + r * width]), q);
        *q1 = larger(q * o->before[k], *q1);
        *q2 = larger(q * o->last[k], *q2);
    }
}

/* The step that one column of the tangents allows, given the step h of the state and power = h^order. */
INLINE v tangent_step(const v *d, int width, int stride, const orders *o, v h, v power, real tolerance, v floor)
{
    v n0 = all(0), n1 = all(0), q1, q2;
    for (int r = 0; r < N; r++) {
        n0 = larger(n0, size(d[r * width]));
        n1 = larger(n1, size(d[stride + r * width]));
    }
    column_sizes(d, width, stride, o, &q1, &q2);
    v allowed = tolerance * larger(larger(n0, n1 * h), floor);
    v excess = larger(q1 * power * (1 / (real)32), q2 * power * h), step = h;   /* the error is smaller than the last term */
    if (!any(1 - at_most(excess, allowed))) return step;
    EACH(l) if (LANE(excess, l) > LANE(allowed, l) && LANE(excess, l) * 0 == 0) {
        v ratio = rough_log2(all(LANE(allowed, l) / LANE(excess, l)));
        LANE(step, l) = (real)0.95 * LANE(h, l) * LANE(rough_exp2(ratio * inverse[o->of[l] - 1]), 0);
    }
    return step;
}
