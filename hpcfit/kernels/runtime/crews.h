/* Members of a chain in lanes: their units, and their links in these units. */

INLINE void times(const long *member, long stride, long *at) { EACH(l) at[l] = member[l] * stride; }

/* Where those lanes save that have a place of their own. */
INLINE void places(const long *slot, long stride, long *at) { EACH(l) at[l] = slot[l] < 0 ? -1 : slot[l] * stride; }

/* The block of numbers of every lane; where all lanes share it, read once. */
INLINE void load_shared(const double *from, const long *at, int shared, int count, v *to)
{
    if (shared) for (int i = 0; i < count; i++) to[i] = all(from[i]);
    else load(from, at, count, to);
}

/* W stretches of nodes at a time, whole members or segments of one: where they are, their units, and their links in
   these units, (G H) at every node. */
typedef struct {
    long member[W];
    long nodes, linked;        /* how many nodes each has, and how many links */
    long node[W], link[W];     /* the first of them in the arrays of all */
    long by_node[W], by_parameters[W];     /* and where their A and B begin */
    int shared;                /* all have the same A and B */
    v scale[f], unit[f];
    v *links;                  /* (N - 1, n, f) */
    v *gaps;                   /* (N - 1, n) d of the residuals at hand */
    v *ds, dp[q + 1];          /* (N, n), (q) increment */
    unsigned char *closes;     /* (N) a bit for every lane */
    v objective, defect;
} crew;

static crew *new_crew(long N)
{
    crew *c = aligned_alloc(sizeof(v), sizeof *c);
    c->links = aligned_alloc(sizeof(v), N * (n * f + n + n) * sizeof(v));
    c->gaps = c->links + N * n * f;
    c->ds = c->gaps + N * n;
    c->closes = malloc(N);
    return c;
}

/* Every lane has a member. */
static void seat(const chain *c, crew *w)
{
    w->nodes = c->nodes;
    w->linked = c->nodes - 1;
    w->shared = c->row_strides[0] == 0 && c->row_strides[2] == 0;
    times(w->member, w->nodes, w->node);
    times(w->member, w->linked, w->link);
    times(w->member, c->row_strides[0], w->by_node);
    times(w->member, c->row_strides[2], w->by_parameters);
}

static void free_crew(crew *c) { free(c->links); free(c->closes); free(c); }

/* Natural units (scaling.py): a state counts in its root mean square; a parameter in what moves an interval's
   end by a unit. */
static void choose_scales(const chain *c, crew *w)
{
    const long N = c->nodes;
    const double links = N > 1 ? N - 1 : 1;
    long z[W], d[W], h[W];
    times(w->member, N * n, z);
    times(w->member, (N - 1) * n, d);
    times(w->member, (N - 1) * n * q, h);
    v departed[n], arrived[n], moved[n * q + 1], x[n], gap[n], H[n * q + 1], largest = all(0);
    for (int i = 0; i < n; i++) departed[i] = arrived[i] = all(0);
    for (int i = 0; i < n * q; i++) moved[i] = all(0);
    for (long j = 0; j < N; j++) {
        load(c->at_nodes + j * n, z, n, x);
        for (int i = 0; i < n; i++) departed[i] = FMA(x[i], x[i], departed[i]);
        if (j == 0) continue;
        load(c->links + (j - 1) * n, d, n, gap);
        for (int i = 0; i < n; i++) { const v end = gap[i] + x[i]; arrived[i] = FMA(end, end, arrived[i]); }
        load(c->links_by_parameters + (j - 1) * n * q, h, n * q, H);
        for (int i = 0; i < n * q; i++) moved[i] = FMA(H[i], H[i], moved[i]);
    }
    for (int i = 0; i < n; i++) {
        w->scale[i] = v_sqrt(0.5 * (departed[i] / (double)N + arrived[i] / links));
        largest = larger(largest, w->scale[i]);
    }
    for (int i = 0; i < n; i++) {
        w->scale[i] = larger(w->scale[i], SMALLEST_PART * largest);
        w->scale[i] = pick(w->scale[i], w->scale[i], all(1));
        w->unit[i] = 1 / w->scale[i];
    }
    for (int p = 0; p < q; p++) {
        v sum = all(0), own;
        for (int i = 0; i < n; i++) sum = FMA(moved[i * q + p] * w->unit[i], w->unit[i], sum);
        EACH(l) own[l] = c->at_parameters[w->member[l] * q + p];
        w->scale[n + p] = pick(sum, v_sqrt(links / sum), larger(size(own), all(1)));
        w->unit[n + p] = 1 / w->scale[n + p];
    }
}

static void load_scales(const chain *c, crew *w)
{
    long s[W], p[W];
    times(w->member, n, s);
    times(w->member, q, p);
    load(c->states, s, n, w->scale);
    load(c->parameters, p, q, w->scale + n);
    for (int i = 0; i < f; i++) w->unit[i] = 1 / w->scale[i];
}

static void load_links(const chain *c, crew *w)
{
    long g[W], h[W];
    times(w->link, n * n, g);
    times(w->link, n * q, h);
    v G[n * n], H[n * q + 1];
    for (long j = 0; j < w->linked; j++) {
        v *to = w->links + j * n * f;
        load(c->links_by_node + j * n * n, g, n * n, G);
        load(c->links_by_parameters + j * n * q, h, n * q, H);
        for (int i = 0; i < n; i++) {
            for (int s = 0; s < n; s++) to[i * f + s] = G[i * n + s] * w->scale[s] * w->unit[i];
            for (int s = 0; s < q; s++) to[i * f + n + s] = H[i * q + s] * w->scale[n + s] * w->unit[i];
        }
    }
}
