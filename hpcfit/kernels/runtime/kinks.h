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
    EACH(l) if (alive(c, l) && !c->steps[l] && LANE(c->mode[0], l) == 0) {
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

INLINE real value_at(const real *q, int m, real t)
{
    real r = q[m];
    for (int k = m - 1; k >= 0; k--) r = r * t + q[k];
    return r;
}

/* Smallest t in (0, h] at which q, positive at 0, becomes negative: intervals in which a bound excludes it are
   left out, the others halved, and a monotonic crossing is bisected to rounding. */
static int first_root(const real *q, int m, real h, real *root)
{
    struct { real a, b; } stack[128];
    int depth = 0;
    stack[depth].a = 0;
    stack[depth++].b = h;
    while (depth) {
        real a = stack[--depth].a, b = stack[depth].b, half = (b - a) / 2, middle = a + half, steep = 0, bent = 0, slope = 0;
        for (int k = m; k >= 1; k--) {
            steep = steep * b + k * FABS(q[k]);
            slope = slope * middle + k * q[k];
        }
        for (int k = m; k >= 2; k--) bent = bent * b + (real)k * (k - 1) * FABS(q[k]);
        if (value_at(q, m, middle) > steep * half) continue;
        if (value_at(q, m, middle) > FABS(slope) * half + bent * half * half / 2) continue;
        if (half <= 2 * EPSILON * b || depth > 120) {
            if (value_at(q, m, b) < 0) { *root = b; return 1; }
            continue;
        }
        if (slope + bent * half < 0) {   /* falling all the way: at most one root */
            if (value_at(q, m, b) >= 0) continue;
            for (int i = 0; i < 200 && b - a > EPSILON * b; i++) {
                real t = a + (b - a) / 2;
                if (value_at(q, m, t) > 0) a = t; else b = t;
            }
            *root = b;
            return 1;
        }
        stack[depth].a = middle;
        stack[depth++].b = b;
        stack[depth].a = a;
        stack[depth++].b = middle;
    }
    return 0;
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
            int m = c->order[l] < order ? c->order[l] - 1 : order - 1, fresh = c->fresh[j][l];
            for (int k = fresh; k <= m; k++) q[k - fresh] = LANE(c->mode[j], l) * LANE(g[k], l);
            if (fresh && q[0] < 0) { c->stuck[l] = 1; continue; }
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
    if (!job->by_start) return;
    for (int column = 0; column < N + NP; column++) {
        real shift = column < N ? 0 : LANE(gradient[column], l);
        for (int i = 0; i < N; i++) shift += LANE(gradient[i], l) * LANE(c->S[i][column], l);
        shift = -shift / LANE(fall, l);
        for (int i = 0; i < N; i++) LANE(c->S[i][column], l) += (LANE(before[i], l) - LANE(after[i], l)) * shift;
    }
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
