/* Weak continuity (weak.py): links are rows like the data, with a standard deviation. Node after node is eliminated
   by orthogonal transformations; what is left of each is kept for the way back. Linear in the number of nodes. */

#define REST (n + q + 1)           /* columns s_j, p, 1 */
#define WIDE (n + n + q + 1)       /* columns s_j, s_j+1, p, 1 */
#define SMALLEST_HOLD 1e-8         /* keeps a state that neither data nor links see where it is */

/* The rows of a node: its data, and what holds it where it is. */
static void node_rows(const chain *c, crew *w, long j, const long *r, v hold, v *to)
{
    v A[k * n], B[k * q + 1], rest[k];
    load_shared(c->rows_by_node + j * c->row_strides[1], w->by_node, w->shared, k * n, A);
    if (c->rows_by_parameters)
        load_shared(c->rows_by_parameters + j * c->row_strides[3], w->by_parameters, w->shared, k * q, B);
    load(c->rows + j * k, r, k, rest);
    for (int i = 0; i < k; i++) {
        w->objective = FMA(rest[i], rest[i], w->objective);
        for (int s = 0; s < n; s++) to[i * REST + s] = A[i * n + s] * w->scale[s];
        for (int s = 0; s < q; s++) to[i * REST + n + s] = c->rows_by_parameters ? B[i * q + s] * w->scale[n + s] : all(0);
        to[i * REST + n + q] = rest[i];
    }
    for (int i = 0; i < n; i++)
        for (int s = 0; s < REST; s++) to[(k + i) * REST + s] = i == s ? hold : all(0);
}

/* The link from a node to the next, times `strength`. */
static void link_rows(const chain *c, crew *w, long j, const long *d, v strength, v *to)
{
    const v *link = w->links + j * n * f;
    v gap[n];
    load(c->links + j * n, d, n, gap);
    for (int i = 0; i < n; i++) {
        gap[i] *= w->unit[i];
        w->defect = larger(w->defect, size(gap[i]));
        for (int s = 0; s < n; s++) {
            to[i * WIDE + s] = strength * link[i * f + s];
            to[i * WIDE + n + s] = i == s ? -strength : all(0);
        }
        for (int s = 0; s < q; s++) to[i * WIDE + n + n + s] = strength * link[i * f + n + s];
        to[i * WIDE + n + n + q] = strength * gap[i];
    }
}

/* Along the chain and back: the increment of a crew, in units of its scales; returns the condition of dp. */
static v loosen(const chain *c, crew *w, v strength, const double *holds, v *pivots)
{
    const long N = c->nodes;
    long r[W], d[W];
    times(w->node, k, r);
    times(w->link, n, d);
    v R[(n + q) * REST], rows[(k + n) * REST], links[n * WIDE], next[n * REST], inverse[q * q + 1], hold;
    memset(R, 0, sizeof R);
    w->objective = w->defect = all(0);
    for (long j = 0; j < N; j++) {
        v *P = pivots + j * n * WIDE;
        EACH(l) hold[l] = holds[w->node[l] + j];
        node_rows(c, w, j, r, larger(hold, all(SMALLEST_HOLD)), rows);
        rotate(R, rows, n + q, REST, k + n);
        for (int i = 0; i < n; i++) {
            for (int s = 0; s < n; s++) { P[i * WIDE + s] = R[i * REST + s]; P[i * WIDE + n + s] = all(0); }
            for (int s = 0; s <= q; s++) P[i * WIDE + n + n + s] = R[i * REST + n + s];
        }
        memset(next, 0, sizeof next);
        if (j < N - 1 && c->linked[j]) {
            link_rows(c, w, j, d, strength, links);
            rotate(P, links, n, WIDE, n);
            for (int i = 0; i < n; i++) for (int s = 0; s < REST; s++) rows[i * REST + s] = links[i * WIDE + n + s];
            rotate(next, rows, n, REST, n);
        }
        memcpy(R, next, sizeof next);
    }
    const v condition = inverted(R + n * REST + n, q, REST, inverse);
    substituted(R + n * REST + n, q, REST, w->dp);
    for (long j = N - 1; j >= 0; j--) {
        const v *P = pivots + j * n * WIDE;
        v *here = w->ds + j * n;
        for (int i = n - 1; i >= 0; i--) {
            v sum = -P[i * WIDE + n + n + q];
            for (int s = 0; s < q; s++) sum = FMA(-P[i * WIDE + n + n + s], w->dp[s], sum);
            if (j < N - 1) for (int s = 0; s < n; s++) sum = FMA(-P[i * WIDE + n + s], here[n + s], sum);
            for (int s = i + 1; s < n; s++) sum = FMA(-P[i * WIDE + s], here[s], sum);
            here[i] = sum / P[i * WIDE + i];
        }
    }
    return condition;
}
