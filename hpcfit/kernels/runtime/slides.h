/* Sliding: where both sides of a kink push the path back to it, the path goes on along it with the combination of
   f+ and f- that keeps g = 0, until one of them no longer pushes back. */

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

/* Whether f differs at all on the two sides of kink j. */
static int f_jumps(crew *c, int l, int j)
{
    v up[N], down[N], before = c->mode[j];
    LANE(c->mode[j], l) = 1;
    slopes(c->x, c->p, c->u, c->mode, c->t, up);
    LANE(c->mode[j], l) = -1;
    slopes(c->x, c->p, c->u, c->mode, c->t, down);
    c->mode[j] = before;
    for (int i = 0; i < N; i++) if (LANE(up[i], l) != LANE(down[i], l)) return 1;
    return 0;
}

/* The step in which a series tells where its roots are: a state at rest asks for no step, but g may know the time. */
static real resolved(const work *job, const real *q, int m, real h)
{
    const real allowed = 256 * (job->tolerance > EPSILON ? job->tolerance : EPSILON);
    for (int guard = 0; m > 2 && guard < 8; guard++) {
        real sum = 0, power = 1;
        for (int k = 0; k < m - 1; k++, power *= h) sum += FABS(q[k]) * power;
        real last = FABS(q[m - 1]) * power, other = FABS(q[m]) * power * h;
        if (other > last) last = other;
        if (!(last > allowed * sum)) break;
        h *= (real)0.9 * POW(allowed * (sum + last) / last / 2, 1 / (real)m);
    }
    return h;
}

/* More than rounding between f on two sides. */
INLINE int differs_in(int l, const v *before, const v *after)
{
    real most = 0, change = 0;
    for (int i = 0; i < N; i++) {
        real a = FABS(LANE(before[i], l)) + FABS(LANE(after[i], l)), d = FABS(LANE(before[i], l) - LANE(after[i], l));
        most = a > most ? a : most;
        change = d > change ? d : change;
    }
    return change > (real)1e-9 * most;
}

/* A path that touches a surface at almost no speed has no derivatives: rounding of g decides how fast it was. */
INLINE int grazes(const work *job, const crew *c, int l, real fall)
{
    return differentiates(job) && fall * fall <= (real)1e6 * EPSILON * c->meets.scale[l] * c->meets.bend[l];
}

#endif

#if SLIDES

INLINE int slides_along(const crew *c, int l, int j)
{
    return kink_slide[j] >= 0 && LANE(c->mode[KINKS + (kink_slide[j] >= 0 ? kink_slide[j] : 0)], l) > 0;
}

/* The path of one lane slides along kink j from now on, if that is among what it can do. */
static void begin_slide(crew *c, int l, int j)
{
    const int slide = kink_slide[j];
    int able = slide >= 0 && !all_directions(c);
    for (int i = 0; able && i < SLIDES; i++)
        if (i != slide && LANE(c->mode[KINKS + i], l) > 0 && coupled[slide][i]) able = 0;
    if (able) {
        LANE(c->mode[KINKS + slide], l) = 1;
        take_full_order(c, l);   /* the state may rest while what will move it does not */
    } else STOP_AT(c, l, STICKING, j);
}

/* The path of one lane leaves kink j on a side; dg/dt is zero there, or of that side. */
static void leave_slide(crew *c, int l, int slide, real side, int fresh)
{
    LANE(c->mode[KINKS + slide], l) = -1;
    LANE(c->mode[slide_kink[slide]], l) = side;
    c->fresh[slide_kink[slide]][l] = fresh;
}

static void end_slide(crew *c, int l, int number) { leave_slide(c, l, number / 2, number % 2 ? -1 : 1, 2); }

/* After kink j has been crossed: slide along it where its new side pushes back; end slides that no longer hold. */
static void settle_slides(crew *c, int l, int j, const v *gradient)
{
    if (j >= 0) {
        v f[N];
        slopes(c->x, c->p, c->u, c->mode, c->t, f);
        if (LANE(along(gradient, f), l) * LANE(c->mode[j], l) < 0) begin_slide(c, l, j);
    }
    for (int i = 0; i < SLIDES; i++) if (LANE(c->mode[KINKS + i], l) > 0 && slide_kink[i] != j) {
        v d[2 * SLIDES];
        slide_drifts(c->x, c->p, c->u, c->mode, c->t, d);
        real up = LANE(d[2 * i], l), down = LANE(d[2 * i + 1], l);
        if (!(up < 0 && down > 0)) leave_slide(c, l, i, up >= 0 ? 1 : -1, 1);
    }
}

/* The step up to the first end of a slide in each lane. */
static v first_slide_end(const work *job, crew *c, v h, int *crossed)
{
    for (int number = 0; number < 2 * SLIDES; number++) {
        if (drift_series[number] < 0) continue;   /* it stays as it is */
        const v *d = c->s + drift_series[number] * STRIDE;
        EACH(l) if (alive(c, l) && LANE(c->mode[KINKS + number / 2], l) > 0) {
            real q[ORDER + 2], root, side = number % 2 ? 1 : -1;
            int m = c->order.of[l] - 1;
            for (int k = 0; k <= m; k++) q[k] = side * LANE(d[k], l);
            if (!(q[0] * 0 == 0)) continue;
            LANE(h, l) = resolved(job, q, m, LANE(h, l));
            if (q[0] <= 0) root = 0;
            else if (!first_root(q, m, LANE(h, l), &root)) continue;
            LANE(h, l) = root;
            crossed[l] = KINKS + number;
        }
    }
    return h;
}

#elif KINKS

INLINE int slides_along(const crew *c, int l, int j) { (void)c; (void)l; (void)j; return 0; }
INLINE void begin_slide(crew *c, int l, int j) { STOP_AT(c, l, STICKING, j); }
INLINE void end_slide(crew *c, int l, int number) { (void)c; (void)l; (void)number; }
INLINE void settle_slides(crew *c, int l, int j, const v *gradient) { (void)c; (void)l; (void)j; (void)gradient; }
INLINE v first_slide_end(const work *job, crew *c, v h, int *crossed) { (void)job; (void)c; (void)crossed; return h; }

#elif TIMED

INLINE void end_slide(crew *c, int l, int number) { (void)c; (void)l; (void)number; }
INLINE v first_slide_end(const work *job, crew *c, v h, int *crossed) { (void)job; (void)c; (void)crossed; return h; }

#endif
