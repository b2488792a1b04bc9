/* Bundles of trajectories with their frames. W trajectories form a crew that takes its steps together; one that has
   come to the end of its blocks, or has failed, makes room for the next. Where a crew and a half would leave places
   empty at the end, trajectories take turns block by block. */
#include <stdlib.h>

#include "surfaces.h"
#include "wide.h"
#include "bundle.h"

typedef struct { int of[W]; } orders_of;

typedef struct {
    long lane[W], number[W];                   /* lane -1: nobody; number: of the block, in this call */
    v occupied;                                /* flags: somebody is here */
    v x[N], x_low[N];                          /* the state, with what its last bits cannot hold */
    v p[NP + 1], u[UNIFORMS + 1], mode[MODES], factors[PRODUCTS + 1];
    v t, t0, t0_low;                           /* the time, and that of the begin of the block */
    v at, since, length;                       /* since the begin of the block: now, when last orthonormal, its end */
    v steps, spread;                           /* spread: integral of the trace */
    v volume, volume_powers, flat;             /* of maps: what has been noted of |det|; flags: it was zero */
    orders_of order;
    v s[SERIES * STRIDE];
    int fresh[KINKS + 1][W], stuck[W], crowded[W];
    long *queue, head, waiting;                /* [n_lanes] a ring of those without a place */
    long behind;                               /* blocks that have ended, of all lanes */
    int turns;                                 /* whether a place is given up at the end of a block */
#if SURFACES
    meetings meets;
#endif
    int tangents, places, blocks;
    struct { int first, width; } *block;       /* places that are moved together */
    struct { int first, stride; } *where;      /* of each place in S */
    w *S, *d, *later;                          /* S[block][row][place] */
    v *gathered, *powers, q[N];                /* [tangents] of the lengths */
} crew;

INLINE int alive(const crew *c, int l) { return c->lane[l] >= 0; }

#include "orthonormal.h"

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
    LANE(c->at, l) = job->carrying ? get(job->reached, c->lane[l]) : 0;
    LANE(c->since, l) = LANE(c->at, l);
    LANE(c->length, l) = job->block;
    LANE(c->t, l) = LANE(c->t0, l) + (LANE(c->at, l) + LANE(c->t0_low, l));
    for (int i = 0; i < N; i++) LANE(c->x_low[i], l) = 0;
    LANE(c->spread, l) = LANE(c->volume_powers, l) = LANE(c->flat, l) = 0;
    LANE(c->volume, l) = NOTHING_NOTED;
    for (int k = 0; k < c->tangents; k++) {
        LANE(c->gathered[k], l) = NOTHING_NOTED;
        LANE(c->powers[k], l) = 0;
    }
    for (int j = 0; j < KINKS; j++) { LANE(c->mode[j], l) = 0; c->fresh[j][l] = 0; }
#if TIMED
    c->meets.count[0][l] = -1;
#endif
    c->stuck[l] = c->crowded[l] = 0;
}

static void leave(const work *job, crew *c, int l, int outcome)
{
    const long lane = c->lane[l];
    job->outcome[lane] = outcome;
    job->done[lane] = c->number[l];
    if (outcome != RUNNING && outcome != FINISHED) c->behind += job->blocks - c->number[l];
    job->steps[lane] = (long)LANE(c->steps, l);
    put(job->last_time, lane, LANE(c->t, l));
    for (int i = 0; i < N; i++) put(job->states, lane * N + i, LANE(c->x[i], l));
    if (job->carrying) put(job->reached, lane, LANE(c->at, l));
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
static int enter(const work *job, crew *c)
{
    int at_work = 0, entered = 0;
    EACH(l) {
        if (!alive(c, l) && c->waiting) {
            const long lane = c->lane[l] = c->queue[c->head];
            c->head = (c->head + 1) % job->n_lanes;
            c->waiting--;
            entered = 1;
            c->number[l] = job->done[lane];
            LANE(c->occupied, l) = 1;
            LANE(c->steps, l) = job->steps[lane];
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

/* A run that is stopped here and goes on later must have the same bits: numbers become what memory can hold. */
INLINE void only_what_is_stored(crew *c)
{
#ifdef QUAD
    double pair[2];
    for (int i = 0; i < N; i++) { put(pair, 0, c->x[i]); c->x[i] = get(pair, 0); }
    for (int i = 0; i < N * c->places; i++) { put(pair, 0, c->S[i]); c->S[i] = get(pair, 0); }
#else
    (void)c;
#endif
}

/* Logarithm of the growth of volumes since the begin of the block. */
INLINE real volume_growth(const crew *c, int l)
{
    const real noted_volume = noted(LANE(c->volume, l), LANE(c->volume_powers, l));
    return LANE(c->flat, l) ? -INFINITY : LANE(c->spread, l) + noted_volume;
}

/* Write the sums of a block that has ended, and begin the next one. */
static void end_block(const work *job, crew *c, int l)
{
    const long place = c->lane[l] * job->blocks + c->number[l];
    for (int k = 0; k < c->tangents; k++)
        put(job->logarithms, place * c->tangents + k, noted(LANE(c->gathered[k], l), LANE(c->powers[k], l)));
    put(job->divergence, place, volume_growth(c, l));
    only_what_is_stored(c);
    c->behind++;
    if (++c->number[l] == job->blocks) leave(job, c, l, FINISHED);
    else if (c->turns && c->waiting) {
        c->queue[(c->head + c->waiting++) % job->n_lanes] = c->lane[l];
        leave(job, c, l, RUNNING);
    } else begin_block(job, c, l);
}

/* Memory of a crew for so many tangents: blocks of places as wide as registers and caches like. */
static void *rows_of(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes / 64 + 1) * 64);
    if (memory) memset(memory, 0, bytes);
    return memory;
}

static int furnish(crew *c, int tangents, long n_lanes)
{
    const int places = (tangents + WIDE - 1) / WIDE, count = (places + WIDEST - 1) / WIDEST;
    c->tangents = tangents;
    c->places = places;
    c->blocks = count;
    c->queue = rows_of(n_lanes * sizeof *c->queue);
    c->block = rows_of(count * sizeof *c->block);
    c->where = rows_of(places * sizeof *c->where);
    c->S = rows_of((size_t)N * places * sizeof(w));
    c->d = rows_of((size_t)(ORDER + 1) * ROWS * WIDEST * sizeof(w));
    c->later = rows_of((size_t)N * TOGETHER * WIDEST * sizeof(w));
    c->gathered = rows_of(tangents * sizeof(v));
    c->powers = rows_of(tangents * sizeof(v));
    if (!(c->queue && c->block && c->where && c->S && c->d && c->later && c->gathered && c->powers)) return 0;
    for (long lane = 0; lane < n_lanes; lane++) c->queue[lane] = lane;
    c->waiting = n_lanes;
    c->turns = n_lanes % W != 0;
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
    void *memory[] = {c->queue, c->block, c->where, c->S, c->d, c->later, c->gathered, c->powers};
    for (int i = 0; i < 8; i++) free(memory[i]);
    free(c);
}
