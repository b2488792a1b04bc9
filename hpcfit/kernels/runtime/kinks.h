/* Kinks: a step ends where an argument g of sign, abs, min, max or where changes its sign; the path continues
   on the other side. The tangents jump with f: S+ = S- + (f- - f+) dt*, dt* = -(g_x S + g_p) / (dg/dt). Where both
   sides push back, the path slides; where a jump belongs to g, the state jumps. */

#include "slides.h"
#include "landings.h"

#if SURFACES

INLINE int entering(const crew *c, int l) { return KINKS ? LANE(c->mode[0], l) == 0 : c->meets.count[0][l] < 0; }

/* The side of kink j in a lane on g = 0: where the path goes, or which way it slides. */
static void side_on_surface(crew *c, int l, int j)
{
#if KINKS
    real up = drift(c, l, j, 1), down = drift(c, l, j, -1);
    if (up > 0 || down < 0) LANE(c->mode[j], l) = up > 0 ? 1 : -1;
    c->fresh[j][l] = 1;
    if (up < 0 && down > 0) begin_slide(c, l, j);
#else
    (void)c; (void)l; (void)j;
#endif
}

/* Sides of lanes that have just entered: the sign of g, or where it is zero, the side to which the path goes. */
static void choose_sides(crew *c)
{
    EACH(l) if (alive(c, l) && entering(c, l)) {
        v g[KINKS + 1];
        for (int j = 0; j < KINKS; j++) LANE(c->mode[j], l) = 1;
        for (int i = 0; i < SLIDES; i++) LANE(c->mode[KINKS + i], l) = -1;
#if KINKS
        kink_values(c->x, c->p, c->u, c->mode, c->t, g);
#endif
        for (int j = 0; j < KINKS; j++) {
            c->fresh[j][l] = 0;
            if (LANE(g[j], l) != 0) LANE(c->mode[j], l) = LANE(g[j], l) > 0 ? 1 : -1;
        }
        for (int j = 0; j < KINKS; j++) {
            if (begins_on_root(c, l, j, LANE(g[j], l))) continue;
            if (LANE(g[j], l) == 0) side_on_surface(c, l, j);
        }
        begin_rhythms(c, l);
    }
}

#if KINKS
/* How large g and its bend are on the way to the root, for what rounding makes of them. */
static void measure(crew *c, int l, const v *g, int fresh, int m, real h)
{
    real size_of_g = 0, bend = 0;
    for (int k = m; k >= 0; k--) size_of_g = size_of_g * h + (k < fresh ? 0 : FABS(LANE(g[k], l)));
    for (int k = m; k >= 2; k--) bend = bend * h + (real)k * (k - 1) * FABS(LANE(g[k], l));
    c->meets.scale[l] = size_of_g;
    c->meets.bend[l] = bend;
}
#endif

/* The step up to the first surface in each lane; crossed[l] is its number or -1. */
static v first_crossings(const work *job, crew *c, int order, v h, int *crossed)
{
    EACH(l) {
        crossed[l] = -1;
        if (c->stuck[l]) LANE(h, l) = 0;
    }
#if KINKS
    for (int j = 0; j < KINKS; j++) {
        const v *g = c->s + kink_series[j] * STRIDE;
        v reach = all(0);
        for (int k = order - 1; k >= 1; k--) reach = (reach + size(g[k])) * h;
        EACH(l) {
            real sum = LANE(reach, l) + FABS(LANE(g[0], l));
            if (!alive(c, l) || !(sum * 0 == 0) || LANE(reach, l) < FABS(LANE(g[0], l)) || slides_along(c, l, j)) continue;
            real q[ORDER + 2], root;
            int m = c->order.of[l] - 1, fresh = c->fresh[j][l];
            for (int k = fresh; k <= m; k++) q[k - fresh] = LANE(c->mode[j], l) * LANE(g[k], l);
            if (sum == 0) { if (LANE(h, l) > 0 && f_jumps(c, l, j)) { STOP_AT(c, l, UNDECIDED, j); LANE(h, l) = 0; } continue; }
            if (c->stuck[l]) { LANE(h, l) = 0; continue; }
            if (fresh && q[0] < 0) { STOP_AT(c, l, STICKING, j); LANE(h, l) = 0; continue; }
            LANE(h, l) = resolved(job, q, m - fresh, LANE(h, l));
            if (!fresh && q[0] <= 0) root = 0;
            else if (!first_root(q, m - fresh, LANE(h, l), &root)) continue;
            LANE(h, l) = root;
            crossed[l] = j;
            measure(c, l, g, fresh, m, root);
        }
    }
#endif
    c->meets.step = h = first_time(c, first_slide_end(job, c, h, crossed), crossed);
    return h;
}

/* Take one lane across a surface. */
static void cross(const work *job, crew *c, int l, int surface)
{
    if (LANE(c->meets.step, l) > 4 * EPSILON * time_in_view(c, l))   /* others at the same time are still on g = 0 */
        for (int i = 0; i < KINKS; i++) c->fresh[i][l] = 0;
    if (surface >= KINKS + 2 * SLIDES) { at_time(job, c, l, surface - KINKS - 2 * SLIDES); return; }
    if (surface >= KINKS) {
        note_meeting(job, c, l, 2 * surface);
        end_slide(c, l, surface - KINKS);
        return;
    }
#if KINKS
    v before[N], after[N], g[KINKS * (N + NP + 1)];
    slopes(c->x, c->p, c->u, c->mode, c->t, before);
    kink_gradients(c->x, c->p, c->u, c->mode, c->t, g);
    const v *gradient = g + surface * (N + NP + 1);
    const v fall = along(gradient, before);
    note_meeting(job, c, l, 2 * surface + lands(c, l, surface));
    if (lands(c, l, surface)) { at_root(job, c, l, surface, gradient, LANE(fall, l), before); return; }
    LANE(c->mode[surface], l) = -LANE(c->mode[surface], l);
    c->fresh[surface][l] = 1;
    settle_slides(c, l, surface, gradient);
    slopes(c->x, c->p, c->u, c->mode, c->t, after);
    if (grazes(job, c, l, LANE(fall, l)) && differs_in(l, before, after)) STOP_AT(c, l, GRAZING, surface);
    else jump(job, c, l, gradient, LANE(fall, l), before, after);
#endif
}

#else

INLINE void choose_sides(crew *c) { (void)c; }
INLINE v first_crossings(const work *job, crew *c, int order, v h, int *crossed)
{
    (void)job; (void)c; (void)order;
    EACH(l) crossed[l] = -1;
    return h;
}
INLINE void cross(const work *job, crew *c, int l, int surface) { (void)job; (void)c; (void)l; (void)surface; }

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
