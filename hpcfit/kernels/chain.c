/* Linearised chains, W members at a time; n states, q parameters and k rows at a node are compiled in. The same
   mathematics as hpcfit/linear/{scaling,windows,dense}.py, which are the reference.

   At a node, ds_j = T_j (ds_w, dp, 1) with the state of its window w. The rows (A_j 0) T_j + (0 B_j r_j) are rotated
   into a triangle by Householder reflections. Neither T nor the reflections are kept: new residuals pass through all
   of it again, which costs less than to read it from memory. A window closes, for each member by itself, before T
   grows past a limit. */
#include "chain.h"
#include "rotations.h"
#include "crews.h"
#include "condensing.h"
#include "coarse.h"
#include "held.h"
#include "loose.h"

/* Length of an increment in units of the scales: root mean square over the nodes, and all parameters. */
static v length_of(const chain *c, const crew *w)
{
    v states = all(0), parameters = all(0);
    for (long i = 0; i < c->nodes * n; i++) states = FMA(w->ds[i], w->ds[i], states);
    for (int i = 0; i < q; i++) parameters = FMA(w->dp[i], w->dp[i], parameters);
    return v_sqrt(states / (double)c->nodes + parameters);
}

/* The increment in the problem's own units, of the lanes that have a slot. */
static void save_increment(const chain *c, const crew *w, const long *slot, double *nodes, double *parameters)
{
    long z[W], p[W];
    places(slot, c->nodes * n, z);
    places(slot, q, p);
    v values[f];
    for (long j = 0; j < c->nodes; j++) {
        for (int i = 0; i < n; i++) values[i] = w->ds[j * n + i] * w->scale[i];
        save(nodes + j * n, z, n, values);
    }
    for (int i = 0; i < q; i++) values[i] = w->dp[i] * w->scale[n + i];
    save(parameters, p, q, values);
}

/* What later calls need: scales, windows, the inverse of the triangle where there is one window, the condition. */
static void keep_factors(const chain *c, const crew *w, const condensed *s, const long *slot)
{
    long at[W], x[W], p[W];
    v inverse[f * f];
    const v condition = inverted(s->R, f, WIDTH, inverse);
    places(slot, n, x);
    places(slot, q, p);
    places(slot, f * f, at);
    save(c->states, x, n, w->scale);
    save(c->parameters, p, q, w->scale + n);
    save(c->inverse, at, f * f, inverse);
    EACH(l) if (slot[l] >= 0) {
        const int several = s->own[l].count > 0;
        c->windows[slot[l]] = several ? s->own[l].count : 1;
        c->condition[slot[l]] = several ? s->condition[l] : condition[l];
        for (long j = 0; several && j < c->nodes; j++) c->closes[slot[l] * c->nodes + j] = w->closes[j] >> l & 1;
    }
}

/* Scales, factors and the increment of all members. */
void linearise(const chain *c)
{
    const long N = c->nodes;
    crew *w = new_crew(N);
    condensed *s = new_condensed(N);
    for (long first = 0; first < c->members; first += W) {
        long slot[W], r[W], d[W];
        EACH(l) {
            slot[l] = first + l < c->members ? first + l : -1;
            w->member[l] = slot[l] < 0 ? first : slot[l];   /* an empty place repeats the first */
        }
        seat(c, w);
        times(w->node, k, r);
        times(w->link, n, d);
        choose_scales(c, w);
        load_links(c, w);
        condense(c, w, s, c->linked, c->rows, r, c->links, d);
        expand(c, w, s);
        keep_factors(c, w, s, slot);
        save_increment(c, w, slot, c->step_nodes, c->step_parameters);
        const v length = length_of(c, w);
        EACH(l) if (slot[l] >= 0) {
            c->increment[slot[l]] = length[l];
            c->objective[slot[l]] = w->objective[l];
            c->defect[slot[l]] = w->defect[l];
        }
    }
    free_condensed(s);
    free_crew(w);
}

/* Scales and the increment of all members with loose continuity: looseness (members), holds (members, N). */
void weaken(const chain *c, const double *looseness, const double *holds)
{
    crew *w = new_crew(c->nodes);
    v *pivots = aligned_alloc(sizeof(v), c->nodes * n * WIDE * sizeof(v));
    for (long first = 0; first < c->members; first += W) {
        long slot[W], x[W], p[W];
        v strength;
        EACH(l) {
            slot[l] = first + l < c->members ? first + l : -1;
            w->member[l] = slot[l] < 0 ? first : slot[l];
            strength[l] = 1 / looseness[w->member[l]];
        }
        seat(c, w);
        choose_scales(c, w);
        load_links(c, w);
        const v condition = loosen(c, w, strength, holds, pivots), length = length_of(c, w);
        places(slot, n, x);
        places(slot, q, p);
        save(c->states, x, n, w->scale);
        save(c->parameters, p, q, w->scale + n);
        save_increment(c, w, slot, c->step_nodes, c->step_parameters);
        EACH(l) if (slot[l] >= 0) {
            c->condition[slot[l]] = condition[l];
            c->increment[slot[l]] = length[l];
            c->objective[slot[l]] = w->objective[l];
            c->defect[slot[l]] = w->defect[l];
        }
    }
    free(pivots);
    free_crew(w);
}

/* Other residuals (count, ...) of some members. Increments are written where there is room for them; with alpha
   also the length of -J+ F - (1 - alpha) dz. */
void solve(const chain *c, long count, const long *which, const double *rows, const double *links, double *nodes,
           double *parameters, const double *alpha, double *away)
{
    const long N = c->nodes;
    crew *w = new_crew(N);
    condensed *s = new_condensed(N);
    for (long first = 0; first < count; first += W) {
        long slot[W], r[W], d[W], z[W], p[W];
        v rest = all(0), step[f];
        EACH(l) {
            const long own = first + l < count ? first + l : first;
            slot[l] = first + l < count ? own : -1;
            w->member[l] = which[own];
            r[l] = own * N * k;
            d[l] = own * (N - 1) * n;
            if (alpha) rest[l] = alpha[own] - 1;
        }
        seat(c, w);
        load_scales(c, w);
        load_links(c, w);
        condense(c, w, s, c->linked, rows, r, links, d);
        expand(c, w, s);
        if (nodes) save_increment(c, w, slot, nodes, parameters);
        if (!alpha) continue;
        times(w->member, N * n, z);
        times(w->member, q, p);
        for (long j = 0; j < N; j++) {
            load(c->step_nodes + j * n, z, n, step);
            for (int i = 0; i < n; i++) w->ds[j * n + i] = FMA(rest, step[i] * w->unit[i], w->ds[j * n + i]);
        }
        load(c->step_parameters, p, q, step);
        for (int i = 0; i < q; i++) w->dp[i] = FMA(rest, step[i] * w->unit[n + i], w->dp[i]);
        const v length = length_of(c, w);
        EACH(l) if (slot[l] >= 0) away[slot[l]] = length[l];
    }
    free_condensed(s);
    free_crew(w);
}

/* The factor of the covariance of one member's windows and parameters (windows n + q, F), in units of its scales. */
static void factor_of(const chain *c, long m, crew *w, condensed *s, double *K)
{
    const long N = c->nodes;
    if (c->windows[m] == 1) { memcpy(K, c->inverse + m * f * f, f * f * sizeof *K); return; }
    long r[W], d[W];
    EACH(l) { w->member[l] = m; r[l] = m * N * k; d[l] = m * (N - 1) * n; }
    seat(c, w);
    load_scales(c, w);
    load_links(c, w);
    condense(c, w, s, c->linked, c->rows, r, c->links, d);
    put_aside(s->own, s->R, 0, 0, 0);
    between(s->own, c->freedoms, s->x[0], K);
}

/* The factor of the covariance, in the problem's own units, of nodes (count, wanted, n, F) and of the parameters
   (count, q, F) of some members: of all nodes, or of those at which an experiment begins (there, a window does). */
void covariance_factor(const chain *c, long count, const long *which, int all_nodes, double *nodes, double *parameters)
{
    const long N = c->nodes, F = c->freedoms;
    crew *w = new_crew(N);
    condensed *s = new_condensed(N);
    double *here = malloc(2 * n * F * sizeof *here), *next = here + n * F, *K = malloc((N * n + q) * F * sizeof *K);
    long wanted = N;
    if (!all_nodes) for (long j = wanted = 1; j < N; j++) wanted += !c->linked[j - 1];
    for (long at = 0; at < count; at++) {
        const long m = which[at];
        const double *scale = c->states + m * n, *own = c->parameters + m * q, *border = K + c->windows[m] * n * F;
        double *to = nodes + at * wanted * n * F;
        factor_of(c, m, w, s, K);
        memcpy(here, K, n * F * sizeof *here);
        for (long j = 0, window = 0; j < N; j++) {
            if (all_nodes || j == 0 || !c->linked[j - 1])
                for (int i = 0; i < n; i++) for (long d = 0; d < F; d++) *to++ = here[i * F + d] * scale[i];
            if (j == N - 1) break;
            if (c->closes[m * N + j]) memcpy(here, K + ++window * n * F, n * F * sizeof *here);
            else if (all_nodes) {
                const double *G = c->links_by_node + (m * (N - 1) + j) * n * n, *H = c->links_by_parameters + (m * (N - 1) + j) * n * q;
                for (int i = 0; i < n; i++)
                    for (long d = 0; d < F; d++) {
                        double sum = 0;
                        for (int e = 0; e < n; e++) sum += G[i * n + e] * scale[e] * here[e * F + d];
                        for (int e = 0; e < q; e++) sum += H[i * q + e] * own[e] * border[e * F + d];
                        next[i * F + d] = sum / scale[i];
                    }
                memcpy(here, next, n * F * sizeof *here);
            }
        }
        for (int i = 0; i < q; i++)
            for (long d = 0; d < F; d++) parameters[(at * q + i) * F + d] = border[i * F + d] * own[i];
    }
    free(here);
    free(K);
    free_condensed(s);
    free_crew(w);
}
