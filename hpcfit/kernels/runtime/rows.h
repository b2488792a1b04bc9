/* What the instrument reads against what it should read: rows, gaps between pieces of path, and slopes.

   W points of one member at a time. A point is a time at which there may be data: output 0 of a node is the node
   itself, the others lie inside the interval behind it. The same mathematics as shooting/measurements.py. */
#include "transpose.h"
#include <stdlib.h>

/* The data of all members and what is found out; shooting/compiled.py holds its twin. */
typedef struct {
    long members, nodes, outputs, q;
    long weight_stride;                            /* of members; 0 where all share */
    const double *at_nodes;                        /* (members, nodes, N) */
    const double *ends, *by_start, *by_parameters; /* (members, nodes - 1, outputs, N, 1 or N or q); without slopes: 0 */
    const double *parameters, *times;              /* (members, NP), (nodes, outputs) */
    const double *data, *weights;                  /* (members, nodes, outputs, O) */
    const unsigned char *linked;                   /* (nodes - 1) */
    const long *free;                              /* (q) numbers of the parameters that are unknown */
    double *rows, *links;                          /* (members, nodes, outputs, O), (members, nodes - 1, N) */
    double *rows_by_node, *rows_by_parameters;     /* (members, nodes, outputs, O, N or q); not wanted: 0 */
    unsigned char *finite;                         /* (members) */
} reading;

/* The points of a group of lanes: where their numbers stand. An empty place repeats the first. */
typedef struct { long value[W], slot[W], inside[W], node[W]; } points;

static points at_points(const reading *r, long m, long first)
{
    points at;
    const long T = r->outputs, count = r->nodes * T;
    EACH(l) {
        const long point = first + l < count ? first + l : first, j = T == 1 ? point : point / T, s = point - j * T;
        at.value[l] = m * count + point;
        at.slot[l] = first + l < count ? at.value[l] : -1;
        at.node[l] = m * r->nodes + j;
        at.inside[l] = s > 0 && j < r->nodes - 1 ? (m * (r->nodes - 1) + j) * T + s - 1 : -1;   /* -1: at the node */
    }
    return at;
}

/* to[i] = number i of each lane's block in `inside`; for lanes at their node those of `otherwise`. */
INLINE void load_points(const double *inside, const points *at, long size, const double *otherwise, v *to)
{
    EACH(l) {
        const double *from = at->inside[l] < 0 ? otherwise : inside + at->inside[l] * size;
        for (long i = 0; i < size; i++) to[i][l] = from[i];
    }
}

INLINE void save_points(double *to, const points *at, long size, const v *from)
{
    long place[W];
    EACH(l) place[l] = at->slot[l] < 0 ? -1 : at->slot[l] * size;
    save(to, place, size, from);
}

/* Slopes of W points: of the readings, of the path by node and parameters (and at the node itself), of the rows. */
typedef struct {
    v gx[O * N], gp[O * NP + 1], Phi[N * N], Psi[N * NP + 1], A[O * N], B[O * NP + 1];
    double same[N * N], nothing[N * NP + 1];
} slopes;

static slopes *new_slopes(void)
{
    slopes *s = aligned_alloc(sizeof(v), (sizeof *s + sizeof(v) - 1) / sizeof(v) * sizeof(v));
    memset(s, 0, sizeof *s);
    for (int i = 0; i < N; i++) s->same[i * N + i] = 1;
    return s;
}

/* A and B of W points: weight times the slopes of the readings by node and parameters; no weight: zero. */
static void save_slopes(const reading *r, const points *at, const v *x, const v *p, v t, const v *weight, slopes *w, v *check)
{
    const v *gx = w->gx, *gp = w->gp, *Phi = w->Phi, *Psi = w->Psi;
    v *A = w->A, *B = w->B;
    reading_slopes(x, p, t, w->gx, w->gp);
    load_points(r->by_start, at, N * N, w->same, w->Phi);
    load_points(r->by_parameters, at, N * r->q, w->nothing, w->Psi);
    for (int i = 0; i < O; i++) {
        for (int e = 0; e < N; e++) {
            v sum = all(0);
            for (int s = 0; s < N; s++) sum = FMA(gx[i * N + s], Phi[s * N + e], sum);
            A[i * N + e] = pick(weight[i], weight[i] * sum, all(0));
            *check += A[i * N + e] * 0;
        }
        for (long e = 0; e < r->q; e++) {
            v sum = gp[i * NP + r->free[e]];
            for (int s = 0; s < N; s++) sum = FMA(gx[i * N + s], Psi[s * r->q + e], sum);
            B[i * r->q + e] = pick(weight[i], weight[i] * sum, all(0));
            *check += B[i * r->q + e] * 0;
        }
    }
    save_points(r->rows_by_node, at, O * N, A);
    save_points(r->rows_by_parameters, at, O * r->q, B);
}

/* (g - eta) / sigma (2.6) at W points of a member; 0 where there are no data. */
static void read_points(const reading *r, long m, long first, const v *p, slopes *w, v *check)
{
    const points at = at_points(r, m, first);
    v x[N], g[O], eta[O], weight[O], t;
    long place[W];
    EACH(l) { place[l] = at.node[l] * N; t[l] = r->times[at.value[l] - m * r->nodes * r->outputs]; }
    load(r->at_nodes, place, N, x);
    for (int i = 0; i < N; i++) *check += x[i] * 0;
    if (r->outputs > 1)
        EACH(l) if (at.inside[l] >= 0) for (int i = 0; i < N; i++) x[i][l] = r->ends[at.inside[l] * N + i];
    EACH(l) place[l] = at.value[l] * O;
    load(r->data, place, O, eta);
    EACH(l) place[l] = m * r->weight_stride + (at.value[l] - m * r->nodes * r->outputs) * O;
    load(r->weights, place, O, weight);
    readings(x, p, t, g);
    for (int i = 0; i < O; i++) {
        weight[i] *= at_most(eta[i] * 0, all(0));   /* a value that is missing is NaN */
        g[i] = pick(weight[i], weight[i] * (g[i] - eta[i]), all(0));
        *check += g[i] * 0;
    }
    save_points(r->rows, &at, O, g);
    if (w) save_slopes(r, &at, x, p, t, weight, w, check);
}

/* x(tau_j+1; s_j, p) - s_j+1 (4.5); 0 where an experiment ends. */
static void save_gaps(const reading *r, long m)
{
    for (long j = 0; j < r->nodes - 1; j++) {
        const long link = m * (r->nodes - 1) + j;
        const double *end = r->ends + ((link + 1) * r->outputs - 1) * N, *next = r->at_nodes + (m * r->nodes + j + 1) * N;
        for (int i = 0; i < N; i++) r->links[link * N + i] = r->linked[j] ? end[i] - next[i] : 0;
    }
}

void measure(const reading *r)
{
    slopes *w = r->rows_by_node ? new_slopes() : 0;
    for (long m = 0; m < r->members; m++) {
        v p[NP + 1], check = all(0);
        for (int i = 0; i < NP; i++) p[i] = all(r->parameters[m * NP + i]);
        for (long first = 0; first < r->nodes * r->outputs; first += W) read_points(r, m, first, p, w, &check);
        save_gaps(r, m);
        r->finite[m] = !any(check);
    }
    free(w);
}
