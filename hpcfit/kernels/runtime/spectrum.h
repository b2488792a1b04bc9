/* Frames along trajectories of a flow. The step sequence is that of the state and of the size of f_x: it does not
   depend on the tangents that are carried. */

#include "company.h"
#include "frames.h"
#include "roots.h"

/* The state at the end of the step; the rounding of the sum is kept for the next one, as energies drift by it. */
INLINE void move_state(crew *c, int order, v h)
{
    for (int i = 0; i < N; i++) {
        const v *d = c->s + i * STRIDE;
        v sum = d[order];
        for (int k = order - 1; k >= 1; k--) sum = FMA(sum, h, d[k]);
        const v by = FMA(sum, h, c->x_low[i]), x = d[0] + by, back = x - d[0];
        c->x_low[i] = (d[0] - (x - back)) + (by - back);
        c->x[i] = x;
    }
}

#if KINKS
/* The tangents of one lane go to the other side of a kink with this gradient, and the volume with them. */
static void jump(const work *job, crew *c, int l, const v *gradient, real fall, const v *before, const v *after)
{
    (void)job;
    real rise = LANE(gradient[N + NP], l);
    for (int i = 0; i < N; i++) rise += LANE(gradient[i], l) * LANE(after[i], l);
    LANE(c->spread, l) += LOG(FABS(rise / fall));
    for (int place = 0; place < c->places; place++)
        for (int m = 0; m < WIDE; m++) {
            w *V = c->S + c->where[place].first;
            const int stride = c->where[place].stride;
            real shift = 0;
            for (int i = 0; i < N; i++) shift += LANE(gradient[i], l) * LANE(part(V + i * stride, m), l);
            shift = -shift / fall;
            for (int i = 0; i < N; i++) {
                v value = part(V + i * stride, m);
                LANE(value, l) += (LANE(before[i], l) - LANE(after[i], l)) * shift;
                set_part(V + i * stride, m, value);
            }
        }
}
#endif

#include "switching_frames.h"
#include "kinks.h"
#include "course.h"

/* The step that the tangents allow: the exponential of f_x and the truncated f_x itself, whatever is carried. */
static v frame_step(const work *job, const crew *c)
{
    const int order = job->order;
    const v tiny = all((real)1e-290), most = all((real)1e60), one = all(1);
    const v still = job->tangent_reach / larger(jacobian_size(c->s, c->factors, 0), tiny);
    v h = smaller(still, most);
    for (int k = order - 1; k >= order - 2; k--) {
        const v last = jacobian_size(c->s, c->factors, k);
        const v ratio = rough_log2(all(100 * job->tolerance * (k + 1))) - rough_log2(larger(last, tiny));
        h = pick(last, smaller(h, rough_exp2(smaller(ratio * inverse[k + 1], 60 * one))), h);
    }
    return h;
}

/* Integral of the trace of f_x over the step. */
INLINE v trace_integral(const crew *c, int order, v h)
{
#if TRACE_SERIES >= 0
    const v *g = c->s + TRACE_SERIES * STRIDE;
    v sum = g[order - 1] * inverse[order];
    for (int k = order - 2; k >= 0; k--) sum = FMA(sum, h, g[k] * inverse[k + 1]);
    return sum * h;
#else
    (void)order;
    return trace(c->p, c->u) * h;
#endif
}

/* One step of the crew. */
static void step(const work *job, crew *c)
{
    v *s = c->s;
    const int order = job->order;
    int crossed[W];
    for (int i = 0; i < N; i++) s[i * STRIDE] = c->x[i];
    t_[0] = c->t;
    t_[1] = all(1);
    choose_sides(c);
    base_start(s, c->p, c->u, c->mode);
    base_series(s, c->p, c->u, c->mode, order);
    const v reach = c->length - c->at;
    v h = smaller(smaller(state_step(s, order, job->tolerance), frame_step(job, c)), reach);
    h = before_barriers(c, order, first_crossings(job, c, order, h, crossed), crossed);
    const v arrived = at_most(reach, h), next = pick(arrived, c->length, c->at + h);
    h = next - c->at;   /* so that the clock is exact */
    for (int b = 0; b < c->blocks; b++)
        move_block(c->block[b].width, s, c->factors, order, c->d, c->later, h, c->S + c->block[b].first);
    c->spread += trace_integral(c, order, h);
    move_state(c, order, h);
    end_step(job, c, h, next, arrived, crossed);
}
