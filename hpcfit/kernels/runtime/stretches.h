/* Weak continuity inside segments: columns are s_j, a, p, 1 on the way, with a the first node of the segment. */

#define SPAN (n + n + q + 1)           /* columns s_j, a, p, 1; or a, c, p, 1 */
#define BROAD (n + n + n + q + 1)      /* columns s_j, s_j+1, a, p, 1; or b, a, c, p, 1 */
#define SMALLEST_HOLD 1e-8             /* keeps a state that neither data nor links see where it is */

/* The rows of node j, on s_j or, with first = 1, on a: its data, and what holds it where it is. */
static void stretch_rows(const chain *c, crew *w, long j, int first, const double *rows, const long *r, v hold, v *to)
{
    const int own = first ? n : 0;
    v A[k * n], B[k * q + 1], rest[k];
    load_shared(c->rows_by_node + j * c->row_strides[1], w->by_node, w->shared, k * n, A);
    if (c->rows_by_parameters)
        load_shared(c->rows_by_parameters + j * c->row_strides[3], w->by_parameters, w->shared, k * q, B);
    load(rows + j * k, r, k, rest);
    for (int i = 0; i < (k + n) * SPAN; i++) to[i] = all(0);
    for (int i = 0; i < k; i++) {
        v *row = to + i * SPAN;
        w->objective = FMA(rest[i], rest[i], w->objective);
        for (int s = 0; s < n; s++) row[own + s] = A[i * n + s] * w->scale[s];
        if (c->rows_by_parameters) for (int s = 0; s < q; s++) row[n + n + s] = B[i * q + s] * w->scale[n + s];
        row[n + n + q] = rest[i];
    }
    for (int i = 0; i < n; i++) to[(k + i) * SPAN + own + i] = hold;
}

/* The link from node j to the next, times `strength`, on s_j, s_j+1, a, p, 1; with first = 1, s_j is a. */
static void stretch_link(crew *w, long j, int first, const double *links, const long *d, v strength, v *to)
{
    const v *link = w->links + j * n * f;
    v gap[n];
    load(links + j * n, d, n, gap);
    for (int i = 0; i < n * BROAD; i++) to[i] = all(0);
    for (int i = 0; i < n; i++) {
        v *row = to + i * BROAD;
        gap[i] *= w->unit[i];
        w->defect = larger(w->defect, size(gap[i]));
        for (int s = 0; s < n; s++) row[(first ? n + n : 0) + s] = strength * link[i * f + s];
        row[n + i] = -strength;
        for (int s = 0; s < q; s++) row[n + n + n + s] = strength * link[i * f + n + s];
        row[BROAD - 1] = strength * gap[i];
    }
}

/* Eliminates the nodes of a crew but the first; rows on a, c, p, 1 are left, with c the first node of the next. */
static void stretch(const chain *c, crew *w, const double *holds, v strength, const double *rows, const double *links, v *pivots, v *left)
{
    long r[W], d[W];
    times(w->node, k, r);
    times(w->link, n, d);
    v R[(SPAN - 1) * SPAN], own[(k + n) * SPAN], link[n * BROAD], hold;
    memset(R, 0, sizeof R);
    w->objective = w->defect = all(0);
    for (long j = 0; j < w->nodes; j++) {
        v *P = pivots + j * n * BROAD;
        EACH(l) hold[l] = holds[w->node[l] + j];
        stretch_rows(c, w, j, j == 0, rows, r, larger(hold, all(SMALLEST_HOLD)), own);
        rotate(R, own, SPAN - 1, SPAN, k + n);
        for (int i = 0; i < n; i++) {      /* s_j leaves */
            for (int s = 0; s < n; s++) { P[i * BROAD + s] = R[i * SPAN + s]; P[i * BROAD + n + s] = all(0); }
            for (int s = n; s < SPAN; s++) P[i * BROAD + n + s] = R[i * SPAN + s];
            for (int s = 0; s < SPAN; s++) R[i * SPAN + s] = all(0);
        }
        if (j == w->linked) break;
        stretch_link(w, j, j == 0, links, d, strength, link);
        if (j) rotate(P, link, n, BROAD, n);
        for (int i = 0; i < n; i++) for (int s = 0; s < SPAN; s++) own[i * SPAN + s] = link[i * BROAD + n + s];
        rotate(R, own, SPAN - 1, SPAN, n);
    }
    for (int i = 0; i < (SPAN - 1) * SPAN; i++) left[i] = all(0);
    v turned[(SPAN - 1) * SPAN];
    for (int i = 0; i < SPAN - 1; i++) {
        for (int s = 0; s < n; s++) { turned[i * SPAN + s] = R[i * SPAN + n + s]; turned[i * SPAN + n + s] = R[i * SPAN + s]; }
        for (int s = n + n; s < SPAN; s++) turned[i * SPAN + s] = R[i * SPAN + s];
    }
    rotate(left, turned, SPAN - 1, SPAN, SPAN - 1);
}

/* How many numbers the pivots of all crews take. */
long stretch_pivots(const seats *g)
{
    long total = 0;
    for (long at = 0; at < g->count; at += alike(g, at)) total += g->nodes[g->order[at]] * n * BROAD * W;
    return total;
}

/* All segments: rows on their first node, the next segment's and the parameters, left (segments, SPAN - 1, SPAN). */
void stretch_segments(const chain *c, const seats *g, const double *looseness, const double *holds, double *pivots,
                      double *left, double *objective, double *defect)
{
    crew *w = new_crew(longest(g) + 1);
    v *P = (v *)pivots, rest[(SPAN - 1) * SPAN];
    for (long at = 0, taken; at < g->count; at += taken) {
        long slot[W], to[W];
        taken = seat_segments(c, g, at, w, slot);
        load_scales(c, w);
        load_links(c, w);
        stretch(c, w, holds, all(1 / looseness[0]), c->rows, c->links, P, rest);
        places(slot, (SPAN - 1) * SPAN, to);
        save(left, to, (SPAN - 1) * SPAN, rest);
        EACH(l) if (slot[l] >= 0) { objective[slot[l]] = w->objective[l]; defect[slot[l]] = w->defect[l]; }
        P += w->nodes * n * BROAD;
    }
    free_crew(w);
}

/* And back: ds of all nodes (N, n) in units of the scales, from those of the first nodes of the segments and of the
   ones after them (segments, n) and dp (q). */
void unstretch_segments(const chain *c, const seats *g, const double *pivots, const double *first, const double *next,
                        const double *parameters, double *nodes)
{
    crew *w = new_crew(longest(g) + 1);
    const v *P = (const v *)pivots;
    for (long at = 0, taken; at < g->count; at += taken) {
        long slot[W], from[W], to[W];
        v a[n], after[n], here[n];
        taken = seat_segments(c, g, at, w, slot);
        EACH(l) from[l] = (slot[l] < 0 ? slot[0] : slot[l]) * n;
        EACH(l) to[l] = slot[l] < 0 ? -1 : w->node[l] * n;
        load(first, from, n, a);
        load(next, from, n, after);
        for (long j = w->nodes - 1; j > 0; j--) {
            const v *own = P + j * n * BROAD;
            for (int i = n - 1; i >= 0; i--) {
                const v *row = own + i * BROAD;
                v sum = -row[BROAD - 1];
                for (int s = 0; s < q; s++) sum = FMA(-row[n + n + n + s], all(parameters[s]), sum);
                for (int s = 0; s < n; s++) sum = FMA(-row[n + n + s], a[s], FMA(-row[n + s], after[s], sum));
                for (int s = i + 1; s < n; s++) sum = FMA(-row[s], here[s], sum);
                here[i] = sum / row[i];
            }
            save(nodes + j * n, to, n, here);
            memcpy(after, here, sizeof after);
        }
        save(nodes, to, n, a);
        P += w->nodes * n * BROAD;
    }
    free_crew(w);
}
