/* Kinks: a step ends where an argument g of sign, abs, min, max or where changes its sign; the path continues
   on the other side. The tangents jump with f: S+ = S- + (f- - f+) dt*, dt* = -(g_x S + g_p) / (dg/dt). */

#if KINKS

INLINE v along(const v *gradient, const v *f)
{
    v slope = gradient[N + NP];
    for (int i = 0; i < N; i++) slope = FMA(gradient[i], f[i], slope);
    return slope;
}

/* dg/dt of kink j in one lane if the path were on the given side. */
static real drift(crew *c, int l, int j, real side)
{
    v f[N], g[KINKS * (N + NP + 1)], before = c->mode[j];
    LANE(c->mode[j], l) = side;
    slopes(c->x, c->p, c->u, c->mode, c->t, f);
    kink_gradients(c->x, c->p, c->u, c->mode, c->t, g);
    c->mode[j] = before;
    return LANE(along(g + j * (N + NP + 1), f), l);
}

/* Sides of lanes that have just entered: the sign of g, or where it is zero, the side to which the path goes. */
static void choose_sides(crew *c)
{
    EACH(l) if (alive(c, l) && LANE(c->mode[0], l) == 0) {
        v g[KINKS];
        for (int j = 0; j < KINKS; j++) LANE(c->mode[j], l) = 1;
        kink_values(c->x, c->p, c->u, c->mode, c->t, g);
        for (int j = 0; j < KINKS; j++) if (LANE(g[j], l) != 0) LANE(c->mode[j], l) = LANE(g[j], l) > 0 ? 1 : -1;
        for (int j = 0; j < KINKS; j++) if (LANE(g[j], l) == 0) {
            real up = drift(c, l, j, 1), down = drift(c, l, j, -1);
            LANE(c->mode[j], l) = up > 0 ? 1 : down < 0 ? -1 : 1;
            if (up < 0 && down > 0) c->stuck[l] = 1;
        }
        for (int j = 0; j < KINKS; j++) c->fresh[j][l] = LANE(g[j], l) == 0;
    }
}

/* The step up to the first kink in each lane; crossed[l] is that kink or -1. */
static v first_crossings(crew *c, int order, v h, int *crossed)
{
    EACH(l) crossed[l] = -1;
    for (int j = 0; j < KINKS; j++) {
        const v *g = c->s + kink_series[j] * STRIDE;
        v reach = all(0);
        for (int k = order - 1; k >= 1; k--) reach = (reach + size(g[k])) * h;
        EACH(l) {
            real sum = LANE(reach, l) + FABS(LANE(g[0], l));
            if (!alive(c, l) || !(sum * 0 == 0) || LANE(reach, l) < FABS(LANE(g[0], l))) continue;
            real q[ORDER + 2], root;
            int m = c->order.of[l] - 1, fresh = c->fresh[j][l];
            for (int k = fresh; k <= m; k++) q[k - fresh] = LANE(c->mode[j], l) * LANE(g[k], l);
            if (c->stuck[l] || (fresh && q[0] < 0)) { c->stuck[l] = 1; LANE(h, l) = 0; continue; }
            if (!fresh && q[0] <= 0) { LANE(h, l) = 0; crossed[l] = j; continue; }
            if (first_root(q, m - fresh, LANE(h, l), &root)) { LANE(h, l) = root; crossed[l] = j; }
        }
    }
    return h;
}

/* Take one lane to the other side of kink j. */
static void cross(const work *job, crew *c, int l, int j)
{
    v before[N], after[N], g[KINKS * (N + NP + 1)];
    slopes(c->x, c->p, c->u, c->mode, c->t, before);
    kink_gradients(c->x, c->p, c->u, c->mode, c->t, g);
    const v *gradient = g + j * (N + NP + 1);
    v fall = along(gradient, before);
    LANE(c->mode[j], l) = -LANE(c->mode[j], l);
    slopes(c->x, c->p, c->u, c->mode, c->t, after);
    for (int i = 0; i < KINKS; i++) c->fresh[i][l] = 0;
    c->fresh[j][l] = 1;
    jump(job, c, l, gradient, LANE(fall, l), before, after);
}

#else

INLINE void choose_sides(crew *c) { (void)c; }
INLINE v first_crossings(crew *c, int order, v h, int *crossed)
{
    (void)c; (void)order;
    EACH(l) crossed[l] = -1;
    return h;
}
INLINE void cross(const work *job, crew *c, int l, int j) { (void)job; (void)c; (void)l; (void)j; }

#endif

/* Barriers: arguments of roots and powers must stay positive, or the series would go on along another branch.
   The step ends at the barrier; what comes then is not finite, and is reported. */
static v before_barriers(crew *c, int order, v h, int *crossed)
{
#if BARRIERS
    for (int j = 0; j < BARRIERS; j++) {
        const v *g = c->s + barrier_series[j] * STRIDE;
        v reach = all(0);
        for (int k = order - 1; k >= 1; k--) reach = (reach + size(g[k])) * h;
        EACH(l) {
            real q[ORDER + 2], root;
            if (!alive(c, l) || !(LANE(reach, l) >= LANE(g[0], l)) || !(LANE(reach, l) * 0 == 0)) continue;
            int m = c->order.of[l] - 1;
            for (int k = 0; k <= m; k++) q[k] = LANE(g[k], l);
            if (first_root(q, m, LANE(h, l), &root)) { LANE(h, l) = root; crossed[l] = -1; }
        }
    }
#else
    (void)c; (void)order; (void)crossed;
#endif
    return h;
}
