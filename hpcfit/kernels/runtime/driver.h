/* Lanes through time. W lanes form a crew that takes its steps together; a lane that has finished or failed
   makes room for the next one. Outputs are written lane by lane. */

#define MOST_CROWDED 64   /* crossings in a row with steps below the floor */
enum { RUNNING = 0, FINISHED = 1, NOT_FINITE = 2, STEP_FLOOR = 3, STEP_BUDGET = 4, STICKING = 5 };

#include "surfaces.h"
#include "work.h"
#ifndef QUAD
#include "transpose.h"
#endif

typedef struct {
    long lane[W], next[W], steps[W], due[W];   /* lane -1: nobody; due: outputs inside the present step */
    long times[W];                             /* where the times of the lane begin */
    v x[N], S[N][N + NP + 1], p[NP + 1], u[UNIFORMS + 1], mode[MODES];
    v t, t_low;                                /* the time, with what its last bit cannot hold */
    v end;
    orders order;
    v insist;                                  /* flags: the tangents need the full order */
    v natural[NP + 1];                         /* 1 / |parameter|, or 1 */
    v s[SERIES * STRIDE];
    int fresh[KINKS + 1][W], stuck[W], crowded[W];         /* fresh: the path has just crossed this kink */
#if SURFACES
    meetings meets;
#endif
    real side[EVENTS + 1][W];                  /* of each event's g: 0 where it is not known yet */
    int met[EVENTS + 1][W];                    /* met: the path is on g = 0 */
    v held[HELD * STRIDE];
    v d[WIDEST * ROWS * STRIDE], T[N][N + NP + 1];
} crew;

INLINE int alive(const crew *c, int l) { return c->lane[l] >= 0; }
INLINE v since(const crew *c, v time) { return (time - c->t) - c->t_low; }

static void write_state(const work *job, const crew *c, int l, long output, const v *x)
{
    long point = point_of(job, c->lane[l], output);
    for (int i = 0; i < N; i++) put(job->states, point * N + i, LANE(x[i], l));
}

/* Columns first .. first + width - 1 of the tangents; row i begins at values[i * stride]. */
static void write_columns(const work *job, const crew *c, int l, long output, int first, int width, const v *values, int stride)
{
    long point = point_of(job, c->lane[l], output);
    int by_start = first < N ? (first + width < N ? width : N - first) : 0;
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < by_start; j++) put(job->by_start, (point * N + i) * N + first + j, LANE(values[i * stride + j], l));
        for (int j = by_start; j < width; j++) put(job->by_parameters, (point * N + i) * NP + first + j - N, LANE(values[i * stride + j], l));
    }
}

static void write_end(const work *job, const crew *c, int l, long output)
{
    write_state(job, c, l, output, c->x);
    if (job->by_start) write_columns(job, c, l, output, 0, N + NP, c->S[0], N + NP + 1);
}

static void leave(const work *job, crew *c, int l, int outcome)
{
    long lane = c->lane[l];
    job->outcome[lane] = outcome;
    job->steps[lane] = c->steps[l];
    if (job->last_time) {
        put(job->last_time, lane, LANE(c->t, l));
        for (int i = 0; i < N; i++) put(job->last_state, lane * N + i, LANE(c->x[i], l));
    }
    for (long output = c->next[l]; outcome != FINISHED && output < job->n_times; output++) write_nothing(job, lane, output);
    c->lane[l] = -1;
}

/* A lane in a place of the crew, before its first step; its numbers are read elsewhere. */
INLINE void take_place(const work *job, crew *c, int l, long lane)
{
    c->lane[l] = lane;
    c->next[l] = 1;
    c->steps[l] = 0;
    c->times[l] = times_of(job, lane);
    LANE(c->t, l) = get(job->times, c->times[l]);
    LANE(c->t_low, l) = 0;
    LANE(c->end, l) = get(job->times, c->times[l] + job->n_times - 1);
    c->stuck[l] = c->crowded[l] = 0;
    LANE(c->insist, l) = 0;
    for (int j = 0; j < EVENTS; j++) c->side[j][l] = c->met[j][l] = 0;
    if (EVENTS && job->event_counts) job->event_counts[lane] = 0;
    for (int j = 0; j < KINKS; j++) { LANE(c->mode[j], l) = 0; c->fresh[j][l] = 0; }
#if TIMED
    c->meets.count[0][l] = -1;
#endif
}

#ifndef QUAD
/* The same in one go where all places change: short intervals, one step each, begin and end together. */
static int enter_together(const work *job, crew *c, long *queue)
{
    long x[W], p[W];
    if (!job->first || job->n_times == 1 || *queue + W > job->n_lanes) return 0;
    EACH(l) if (alive(c, l)) return 0;
    EACH(l) {
        x[l] = start_of(job, *queue);
        p[l] = parameters_of(job, *queue);
        take_place(job, c, l, (*queue)++);
    }
    load(job->starts, x, N, c->x);
    load(job->parameters, p, NP, c->p);
    for (int j = 0; j < NP; j++) c->natural[j] = pick(size(c->p[j]), 1 / size(c->p[j]), all(1));
    for (int i = 0; i < N; i++) for (int j = 0; j < N + NP; j++) c->S[i][j] = all(i == j);
    return 1;
}

static int leave_together(const work *job, crew *c, v h, v reach, v check)
{
    long x[W], s[W], p[W];
    v block[N * (N > NP ? N : NP)];
    if (any(1 - at_most(reach, h)) || any(check)) return 0;
    EACH(l) {
        if (!alive(c, l) || c->stuck[l]) return 0;
        const long point = point_of(job, c->lane[l], c->next[l] + c->due[l]);
        x[l] = point * N;
        s[l] = point * N * N;
        p[l] = point * N * NP;
    }
    save(job->states, x, N, c->x);
    if (job->by_start) {
        for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) block[i * N + j] = c->S[i][j];
        save(job->by_start, s, N * N, block);
        for (int i = 0; i < N; i++) for (int j = 0; j < NP; j++) block[i * NP + j] = c->S[i][N + j];
        save(job->by_parameters, p, N * NP, block);
    }
    c->t = c->end;
    EACH(l) { c->steps[l]++; leave(job, c, l, FINISHED); }
    return 1;
}
#else
static int enter_together(const work *job, crew *c, long *queue) { (void)job; (void)c; (void)queue; return 0; }
static int leave_together(const work *job, crew *c, v h, v reach, v check) { (void)job; (void)c; (void)h; (void)reach; (void)check; return 0; }
#endif

/* Give every free place of the crew to the next lane; returns how many lanes are at work. */
static int enter(const work *job, crew *c, long *queue)
{
    int at_work = 0, entered = enter_together(job, c, queue);
    EACH(l) {
        while (!alive(c, l) && *queue < job->n_lanes) {
            long lane = (*queue)++;
            entered = 1;
            take_place(job, c, l, lane);
            for (int i = 0; i < N; i++) LANE(c->x[i], l) = get(job->starts, start_of(job, lane) + i);
            for (int j = 0; j < NP; j++) {
                real p = get(job->parameters, parameters_of(job, lane) + j);
                LANE(c->p[j], l) = p;
                LANE(c->natural[j], l) = p != 0 ? 1 / FABS(p) : 1;
            }
            for (int i = 0; i < N; i++)
                for (int j = 0; j < N + NP; j++) LANE(c->S[i][j], l) = i == j;
            if (!job->first) write_end(job, c, l, 0);
            if (job->n_times == 1) leave(job, c, l, FINISHED);
        }
        at_work += alive(c, l);
        if (!alive(c, l)) LANE(c->end, l) = LANE(c->t, l);   /* an empty place takes no steps */
    }
    if (entered) {
        uniforms(c->p, c->u);
        if (NP) hold(c->p, c->u, c->held);
    }
    return at_work;
}

/* sum of d[k * stride] h^k for `count` neighbours */
INLINE void horner(const v *d, int stride, int order, int count, v h, v *to)
{
    for (int j = 0; j < count; j++) to[j] = d[order * stride + j];
    for (int k = order - 1; k >= 0; k--)
        for (int j = 0; j < count; j++) to[j] = FMA(to[j], h, d[k * stride + j]);
}

/* Coefficients beyond a lane's own order are not the lane's: they are set to zero. */
INLINE void forget(const crew *c, v *d, int stride, int count)
{
    for (int k = c->order.lowest + 1; k <= c->order.highest; k++)
        for (int j = 0; j < count; j++) d[k * stride + j] = pick(c->order.within[k], d[k * stride + j], all(0));
}

/* How far output `number` of lane l is from the present time. */
INLINE real ahead(const work *job, const crew *c, int l, long number)
{
    return (get(job->times, c->times[l] + number) - LANE(c->t, l)) - LANE(c->t_low, l);
}

/* How many outputs of each lane lie inside the step. */
INLINE long count_due(const work *job, crew *c, v h)
{
    long most = 0;
    EACH(l) {
        c->due[l] = 0;
        if (!alive(c, l)) continue;
        while (c->next[l] + c->due[l] < job->n_times && ahead(job, c, l, c->next[l] + c->due[l]) < LANE(h, l)) c->due[l]++;
        most = c->due[l] > most ? c->due[l] : most;
    }
    return most;
}

/* Where in the step the r-th output of each lane lies. */
INLINE v place_of(const work *job, const crew *c, long r)
{
    v at = all(0);
    EACH(l) if (r < c->due[l]) LANE(at, l) = ahead(job, c, l, c->next[l] + r);
    return at;
}

static void write_inside(const work *job, crew *c, int order, long rounds)
{
    for (long r = 0; r < rounds; r++) {
        v at = place_of(job, c, r), x[N];
        for (int i = 0; i < N; i++) horner(c->s + i * STRIDE, 1, order, 1, at, x + i);
        EACH(l) if (r < c->due[l]) write_state(job, c, l, c->next[l] + r, x);
    }
}

#include "tangents.h"
#include "roots.h"
#include "switching.h"
#include "kinks.h"
#include "events.h"

/* Zero where a lane's state and tangents are finite, NaN elsewhere. */
static v not_a_number(const work *job, const crew *c)
{
    v state = all(0), row[N];
    for (int i = 0; i < N; i++) state += c->x[i] * 0;
    for (int i = 0; i < N; i++) row[i] = all(0);
    if (job->by_start)
        for (int j = 0; j < N + NP; j++) for (int i = 0; i < N; i++) row[i] += c->S[i][j] * 0;
    for (int i = 0; i < N; i++) state += row[i];
    return state;
}

/* Move the clock, write what is due, take out lanes that have finished or cannot go on. */
static void end_step(const work *job, crew *c, v h, v reach, const int *crossed)
{
    v sum = c->t + h, rest = c->t_low + ((c->t - (sum - (sum - c->t))) + (h - (sum - c->t)));
    v check = not_a_number(job, c) + h * 0;
    if (leave_together(job, c, h, reach, check)) return;
    EACH(l) {
        if (!alive(c, l)) continue;
        real step = LANE(h, l);
        if (LANE(check, l) != 0) {   /* not finite: the lane stays where it was */
            for (int i = 0; i < N; i++) LANE(c->x[i], l) = LANE(c->s[i * STRIDE], l);
            leave(job, c, l, NOT_FINITE);
            continue;
        }
        int arrived = step >= LANE(reach, l) && !c->stuck[l];
        int tiny = step < job->floor * FABS(LANE(c->end, l));
        LANE(c->t, l) = arrived ? LANE(c->end, l) : LANE(sum, l);
        LANE(c->t_low, l) = arrived ? 0 : LANE(rest, l);
        c->next[l] += c->due[l];
        c->steps[l]++;
        if (arrived) {
            write_end(job, c, l, c->next[l]);
            leave(job, c, l, FINISHED);
        } else if (c->stuck[l]) leave(job, c, l, c->stuck[l]);
        else if (crossed[l] >= 0) {
            cross(job, c, l, crossed[l]);
            c->crowded[l] = tiny ? c->crowded[l] + 1 : 0;   /* crossings that pile up never end (Zeno) */
            if (c->crowded[l] > MOST_CROWDED) leave(job, c, l, ZENO | (crossed[l] + 1) << 8);
        } else {
            for (int j = 0; j < KINKS; j++) c->fresh[j][l] = 0;
            if (tiny) leave(job, c, l, STEP_FLOOR);
        }
        if (alive(c, l) && c->steps[l] >= job->max_steps) leave(job, c, l, STEP_BUDGET);
    }
}

/* The series of the crew and the step that its states allow; returns the highest order. */
static int expand(const work *job, crew *c, settling *settled, v *h)
{
    v *s = c->s;
    settled->insist = c->insist;
    base_start(s, c->p, c->u, c->mode);
    settled->growth = job->by_start ? jacobian_start(s, c->p, c->u, c->mode) * settled->reach : all(0);
    int order = base_series(s, c->p, c->u, c->mode, settled, job->order);
    *h = settled->reach;
    if (any(settled->open)) *h = pick(settled->open, state_step(s, order, job->tolerance), *h);
    note_orders(&c->order, settled, order);
    for (int i = 0; i < N; i++) forget(c, s + i * STRIDE, 1, 1);
    *h = smaller(*h, settled->reach);
    return order;
}

/* One step of the crew. */
static void step(const work *job, crew *c)
{
    v *s = c->s, h;
    int order, crossed[W], again;
    for (int i = 0; i < N; i++) s[i * STRIDE] = c->x[i];
    t_[0] = c->t;
    t_[1] = all(1);
    settling settled = {
        .reach = since(c, c->end),
        .tolerance = job->tolerance,
        .tangent_tolerance = job->tangent_tolerance,
        .quiet_terms = job->by_start ? 3 : 2,
    };
    choose_sides(c);
    do {
        order = expand(job, c, &settled, &h);
        h = before_barriers(c, order, first_crossings(job, c, order, h, crossed), crossed);
        again = job->by_start && !move_tangents(job, c, order, &h, crossed);
    } while (again);
    write_inside(job, c, order, count_due(job, c, h));
    find_events(job, c, h);
    for (int i = 0; i < N; i++) horner(s + i * STRIDE, 1, order, 1, h, c->x + i);
    end_step(job, c, h, settled.reach, crossed);
}

/* Finished lanes, and the time that the first lane at work has covered. */
static void tell(const work *job, const crew *c, long queue)
{
    EACH(l) if (alive(c, l)) {
        real first = get(job->times, c->times[l]), part = (LANE(c->t, l) - first) / (LANE(c->end, l) - first);
        *job->covered = (double)((queue - 1 + part) / job->n_lanes);
        return;
    }
}

int propagate(const work *job)
{
    static __thread crew storage;   /* zero at the start, also where series are never written */
    crew *c = &storage;
    __asm__("" : "+r"(c));          /* or its address would be asked for again and again */
    long queue = 0;
    EACH(l) c->lane[l] = -1;
    while (enter(job, c, &queue) && !(job->stop && *job->stop)) {
        step(job, c);
        if (job->covered) tell(job, c, queue);
    }
    return 0;
}
