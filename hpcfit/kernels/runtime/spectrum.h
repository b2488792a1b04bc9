/* Frames carried along trajectories. W trajectories form a crew that takes its steps together; one that has come to
   the end of its blocks, or has failed, makes room for the next. The step sequence is that of the state and of the
   size of f_x: it does not depend on the tangents that are carried. */
#include <stdlib.h>

#define MOST_CROWDED 64   /* crossings in a row with steps below the floor */

#include "wide.h"
#include "bundle.h"

typedef struct { int of[W]; } orders_of;

typedef struct {
    long lane[W], number[W];                   /* lane -1: nobody; number: of the block, in this call */
    v occupied;                                /* flags: somebody is here */
    v x[N], p[NP + 1], u[UNIFORMS + 1], mode[KINKS + 1], factors[PRODUCTS + 1];
    v t, t0, t0_low;                           /* the time, and that of the begin of the block */
    v at, since, length;                       /* since the begin of the block: now, when last orthonormal, its end */
    v steps, spread;                           /* spread: integral of the trace */
    orders_of order;
    v s[SERIES * STRIDE];
    int fresh[KINKS + 1][W], stuck[W], crowded[W];
    int tangents, places, blocks;
    struct { int first, width; } *block;       /* places that are moved together */
    struct { int first, stride; } *where;      /* of each place in S */
    w *S, *d, *later;                          /* S[block][row][place] */
    v *gathered, *powers, q[N];                /* [tangents] of the lengths */
} crew;

INLINE int alive(const crew *c, int l) { return c->lane[l] >= 0; }

#include "frames.h"
#include "orthonormal.h"
#include "roots.h"

INLINE void horner(const v *d, int order, v h, v *to)
{
    *to = d[order];
    for (int k = order - 1; k >= 0; k--) *to = FMA(*to, h, d[k]);
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

#include "kinks.h"

/* A lane at the begin of its next block, of which nothing but state and frame is known. */
static void begin_block(const work *job, crew *c, int l)
{
    const double number = (double)(job->first_block + c->number[l]);
#ifdef QUAD
    c->t0 = (real)job->begin + (real)number * job->block;
    c->t0_low = 0;
#else
    const double product = number * job->block, rest = fma(number, job->block, -product);
    const double sum = product + job->begin, other = sum - product;
    LANE(c->t0, l) = sum;
    LANE(c->t0_low, l) = ((product - (sum - other)) + (job->begin - other)) + rest;
#endif
    LANE(c->at, l) = job->alone ? get(job->reached, c->lane[l]) : 0;
    LANE(c->since, l) = LANE(c->at, l);
    LANE(c->length, l) = job->block;
    LANE(c->t, l) = LANE(c->t0, l) + (LANE(c->at, l) + LANE(c->t0_low, l));
    LANE(c->spread, l) = 0;
    for (int k = 0; k < c->tangents; k++) {
#ifdef QUAD
        LANE(c->gathered[k], l) = 0;
#else
        LANE(c->gathered[k], l) = 1;
#endif
        LANE(c->powers[k], l) = 0;
    }
    for (int j = 0; j < KINKS; j++) { LANE(c->mode[j], l) = 0; c->fresh[j][l] = 0; }
    c->stuck[l] = c->crowded[l] = 0;
}

static void leave(const work *job, crew *c, int l, int outcome)
{
    const long lane = c->lane[l];
    job->outcome[lane] = outcome;
    job->done[lane] = c->number[l];
    job->steps[lane] = (long)LANE(c->steps, l);
    put(job->last_time, lane, LANE(c->t, l));
    for (int i = 0; i < N; i++) put(job->states, lane * N + i, LANE(c->x[i], l));
    if (job->alone) put(job->reached, lane, LANE(c->at, l));
    for (int k = 0; k < c->tangents; k++) {
        const w *V = c->S + c->where[k / WIDE].first;
        for (int i = 0; i < N; i++)
            put(job->frames, (lane * N + i) * c->tangents + k, LANE(part(V + i * c->where[k / WIDE].stride, k % WIDE), l));
    }
    c->lane[l] = -1;
    LANE(c->occupied, l) = 0;
    LANE(c->length, l) = LANE(c->at, l);   /* an empty place takes no steps */
}

/* Give every free place of the crew to the next trajectory; returns how many are at work. */
static int enter(const work *job, crew *c, long *queue)
{
    int at_work = 0, entered = 0;
    EACH(l) {
        if (!alive(c, l) && *queue < job->n_lanes) {
            const long lane = c->lane[l] = (*queue)++;
            entered = 1;
            c->number[l] = 0;
            LANE(c->occupied, l) = 1;
            LANE(c->steps, l) = 0;
            for (int i = 0; i < N; i++) LANE(c->x[i], l) = get(job->states, lane * N + i);
            for (int j = 0; j < NP; j++) LANE(c->p[j], l) = get(job->parameters, lane * NP + j);
            for (int k = 0; k < c->tangents; k++)
                for (int i = 0; i < N; i++) {
                    w *V = c->S + c->where[k / WIDE].first + i * c->where[k / WIDE].stride;
                    v value = part(V, k % WIDE);
                    LANE(value, l) = get(job->frames, (lane * N + i) * c->tangents + k);
                    set_part(V, k % WIDE, value);
                }
            begin_block(job, c, l);
        }
        at_work += alive(c, l);
    }
    if (entered) {
        uniforms(c->p, c->u);
        row_factors(c->p, c->u, c->factors);
    }
    return at_work;
}

/* Write the sums of a block that has ended, and begin the next one. */
static void end_block(const work *job, crew *c, int l)
{
    const long place = c->lane[l] * job->blocks + c->number[l];
    for (int k = 0; k < c->tangents; k++)
        put(job->logarithms, place * c->tangents + k, noted(LANE(c->gathered[k], l), LANE(c->powers[k], l)));
    put(job->divergence, place, LANE(c->spread, l));
    if (++c->number[l] == job->blocks) leave(job, c, l, FINISHED);
    else begin_block(job, c, l);
}

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

/* Lanes for which something is to be done after the step: one by one. */
static void attend(const work *job, crew *c, v h, v check, v arrived, const int *crossed)
{
    EACH(l) {
        if (!alive(c, l)) continue;
        const int tiny = LANE(h, l) < job->floor * job->block;
        if (LANE(check, l) != 0) {   /* not finite: the lane stays where it was */
            for (int i = 0; i < N; i++) LANE(c->x[i], l) = LANE(c->s[i * STRIDE], l);
            leave(job, c, l, NOT_FINITE);
        } else if (c->stuck[l]) leave(job, c, l, STICKING);
        else if (LANE(arrived, l)) continue;
        else if (crossed[l] >= 0) {
            cross(job, c, l, crossed[l]);
            c->crowded[l] = tiny ? c->crowded[l] + 1 : 0;   /* crossings that pile up never end (Zeno) */
            if (c->crowded[l] > MOST_CROWDED) leave(job, c, l, STICKING);
        } else {
            for (int j = 0; j < KINKS; j++) c->fresh[j][l] = 0;
            if (tiny) leave(job, c, l, STEP_FLOOR);
        }
    }
}

/* Orthonormalise where it is time; end blocks; stop lanes that have taken too many steps. */
static void settle_frames(const work *job, crew *c, v due, v arrived)
{
    v bad = all(0);
    if (!job->alone) {
        bad = orthonormalise(c, due);
        c->since = pick(due, c->at, c->since);
    }
    if (!job->alone && !any((bad + arrived) * c->occupied)) return;
    EACH(l) {
        if (!alive(c, l) || !LANE(due, l)) continue;
        if (LANE(bad, l)) leave(job, c, l, TANGENTS_LOST);
        else if (job->alone) {
            put(job->divergence, c->lane[l], LANE(c->spread, l));
            leave(job, c, l, FINISHED);
        } else if (LANE(arrived, l)) end_block(job, c, l);
    }
}

/* Move the clock, then what follows from it. */
static void end_step(const work *job, crew *c, v h, v next, v arrived, const int *crossed)
{
    v check = h * 0;
    for (int i = 0; i < N; i++) check += c->x[i] * 0;
    c->at = pick(1 - at_most(check, all(0)) - at_most(all(0), check), c->at, next);
    c->t = c->t0 + (c->at + c->t0_low);
    c->steps += 1;
    const v tiny = at_most(h, all(job->floor * job->block)) * (1 - arrived);
    if (KINKS || any((check + tiny) * c->occupied)) attend(job, c, h, check, arrived, crossed);
    v due = larger(arrived, at_most(all(job->interval), c->at - c->since)) * c->occupied;
    if (any(due)) settle_frames(job, c, due, arrived);
    const v spent = at_most(all(job->max_steps), c->steps) * c->occupied;
    if (any(spent)) EACH(l) if (alive(c, l) && LANE(spent, l)) leave(job, c, l, STEP_BUDGET);
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
    h = before_barriers(c, order, first_crossings(c, order, h, crossed), crossed);
    const v arrived = at_most(reach, h), next = pick(arrived, c->length, c->at + h);
    h = next - c->at;   /* so that the clock is exact */
    for (int b = 0; b < c->blocks; b++)
        move_block(c->block[b].width, s, c->factors, order, c->d, c->later, h, c->S + c->block[b].first);
    c->spread += trace_integral(c, order, h);
    for (int i = 0; i < N; i++) horner(s + i * STRIDE, order, h, c->x + i);
    end_step(job, c, h, next, arrived, crossed);
}

/* Memory of a crew for so many tangents: blocks of places as wide as registers and caches like. */
static void *rows_of(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (memory) memset(memory, 0, bytes);
    return memory;
}

static int furnish(crew *c, int tangents, int order)
{
    const int places = (tangents + WIDE - 1) / WIDE, count = (places + WIDEST - 1) / WIDEST;
    c->tangents = tangents;
    c->places = places;
    c->blocks = count;
    c->block = rows_of(count * sizeof *c->block);
    c->where = rows_of(places * sizeof *c->where);
    c->S = rows_of((size_t)N * places * sizeof(w));
    c->d = rows_of((size_t)(order + 1) * ROWS * WIDEST * sizeof(w));
    c->later = rows_of((size_t)N * TOGETHER * WIDEST * sizeof(w));
    c->gathered = rows_of(tangents * sizeof(v));
    c->powers = rows_of(tangents * sizeof(v));
    if (!(c->block && c->where && c->S && c->d && c->later && c->gathered && c->powers)) return 0;
    for (int b = 0, place = 0; b < count; b++) {
        const int width = places / count + (b < places % count);
        c->block[b].first = place * N;
        c->block[b].width = width;
        for (int i = 0; i < width; i++, place++) {
            c->where[place].first = c->block[b].first + i;
            c->where[place].stride = width;
        }
    }
    return 1;
}

static void clear(crew *c)
{
    void *memory[] = {c->block, c->where, c->S, c->d, c->later, c->gathered, c->powers};
    for (int i = 0; i < 7; i++) free(memory[i]);
    free(c);
}

static void tell(const work *job, const crew *c, long queue)
{
    EACH(l) if (alive(c, l)) {
        const double part = (c->number[l] + (double)(LANE(c->at, l) / LANE(c->length, l))) / job->blocks;
        *job->covered = (queue - W * (W <= queue) + part * (W <= queue ? W : queue)) / job->n_lanes;
        return;
    }
}

int grow(const work *job)
{
    crew *c = rows_of(sizeof(crew));
    if (!c) return 1;
    const int failed = !furnish(c, (int)job->tangents, job->order);
    long queue = 0;
    EACH(l) c->lane[l] = -1;
    for (int l = 0; l < W; l++) c->order.of[l] = job->order;
    while (!failed && enter(job, c, &queue) && !(job->stop && *job->stop)) {
        step(job, c);
        if (job->covered) tell(job, c, queue);
    }
    clear(c);
    return failed;
}
