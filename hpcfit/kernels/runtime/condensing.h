/* From node to node: all rows into one triangle a window, and back to an increment of every node. */

/* What a lane puts aside of its windows. */
typedef struct {
    int count;
    double *rows;              /* (windows, f, WIDTH) triangle and right-hand side, on (s_w, p, 1) */
    double *ends;              /* (windows, n, WIDTH) the next window's state by (s_w, p, 1) */
    unsigned char *joined;     /* (windows) 0: the next window begins another experiment */
} aside;

/* The condensed problem of a crew on its way through the nodes. */
typedef struct {
    v R[f * WIDTH], T[n * WIDTH], rows[TOGETHER * k * WIDTH];
    int waiting;                               /* rows that have not been rotated yet */
    aside own[W];                              /* windows that have ended */
    double *x[W], condition[W];                /* their states, the parameters, and the condition */
} condensed;

static condensed *new_condensed(long N)
{
    condensed *s = aligned_alloc(sizeof(v), sizeof *s);
    EACH(l) {
        s->own[l].rows = malloc(N * (f + n) * WIDTH * sizeof(double));
        s->own[l].ends = s->own[l].rows + N * f * WIDTH;
        s->own[l].joined = malloc(N);
        s->x[l] = malloc((N * n + q) * sizeof(double));
    }
    return s;
}

static void free_condensed(condensed *s)
{
    EACH(l) { free(s->own[l].rows); free(s->own[l].joined); free(s->x[l]); }
    free(s);
}

INLINE void begin_window(condensed *s, int l)
{
    for (int i = 0; i < n; i++) for (int d = 0; d < WIDTH; d++) s->T[i * WIDTH + d][l] = i == d;
    for (int i = 0; i < f * WIDTH; i++) s->R[i][l] = 0;
    for (int i = 0; i < s->waiting * WIDTH; i++) s->rows[i][l] = 0;
}

/* What a lane keeps of a window that ends here: its triangle and right-hand side, and how it meets the next. */
INLINE void put_aside(aside *own, const v *R, const v *next, int l, int linked)
{
    double *rows = own->rows + own->count * f * WIDTH, *end = own->ends + own->count * n * WIDTH;
    for (int i = 0; i < f * WIDTH; i++) rows[i] = R[i][l];
    if (next) for (int i = 0; i < n * WIDTH; i++) end[i] = next[i][l];
    own->joined[own->count++] = linked;
}

/* R with the rows that still wait. */
static void settled(const condensed *s, v *R)
{
    v rows[TOGETHER * k * WIDTH];
    memcpy(R, s->R, sizeof s->R);
    memcpy(rows, s->rows, sizeof rows);
    rotate(R, rows, f, WIDTH, s->waiting);
}

/* The rows of node j by the state of its window: (A_j 0) T_j + (0 B_j r_j). */
static void add_rows(const chain *c, crew *w, condensed *s, long j, const double *rows, const long *r)
{
    v A[k * n], B[k * q + 1], rest[k], *to = s->rows + s->waiting * WIDTH;
    load_shared(c->rows_by_node + j * c->row_strides[1], w->by_node, w->shared, k * n, A);
    if (c->rows_by_parameters)
        load_shared(c->rows_by_parameters + j * c->row_strides[3], w->by_parameters, w->shared, k * q, B);
    load(rows + j * k, r, k, rest);
    for (int i = 0; i < k; i++) {
        w->objective = FMA(rest[i], rest[i], w->objective);
        for (int e = 0; e < n; e++) A[i * n + e] *= w->scale[e];
        for (int e = 0; e < WIDTH; e++) {
            v sum = e < n ? all(0) : e == f ? rest[i] : c->rows_by_parameters ? B[i * q + e - n] * w->scale[e] : all(0);
            for (int m = 0; m < n; m++) sum = FMA(A[i * n + m], s->T[m * WIDTH + e], sum);
            to[i * WIDTH + e] = sum;
        }
    }
    s->waiting += k;
    if (j % TOGETHER == TOGETHER - 1 || j == w->nodes - 1) {
        if (s->waiting == TOGETHER * k) rotate(s->R, s->rows, f, WIDTH, TOGETHER * k);
        else rotate(s->R, s->rows, f, WIDTH, s->waiting);
        s->waiting = 0;
    }
}

/* T of the node after j; returns how far the window has grown. */
static v follow_link(crew *w, condensed *s, long j, const double *links, const long *d)
{
    v next[n * WIDTH], largest = all(0), *gap = w->gaps + j * n;
    const v *link = w->links + j * n * f;
    load(links + j * n, d, n, gap);
    for (int i = 0; i < n; i++) {
        gap[i] *= w->unit[i];
        w->defect = larger(w->defect, size(gap[i]));
        for (int e = 0; e < WIDTH; e++) {
            v sum = e < n ? all(0) : e == f ? gap[i] : link[i * f + e];
            for (int m = 0; m < n; m++) sum = FMA(link[i * f + m], s->T[m * WIDTH + e], sum);
            next[i * WIDTH + e] = sum;
            if (e < n) largest = larger(largest, size(sum));
        }
    }
    memcpy(s->T, next, sizeof next);
    return largest;
}

/* Through all nodes, for residuals whose rows and links begin at r[l] and d[l]. linked: where an experiment ends it is
   0; absent, there is a link from every node. The last window is left in R and T. */
static void condense(const chain *c, crew *w, condensed *s, const unsigned char *linked, const double *rows,
                     const long *r, const double *links, const long *d)
{
    v R[f * WIDTH];    /* the rotations of the others are not brought forward by windows that close */
    memset(w->closes, 0, w->nodes);
    w->objective = w->defect = all(0);
    s->waiting = 0;
    EACH(l) { s->own[l].count = 0; begin_window(s, l); }
    for (long j = 0; j < w->nodes; j++) {
        add_rows(c, w, s, j, rows, r);
        if (j == w->linked) break;
        const v largest = follow_link(w, s, j, links, d);
        const int ends = linked && !linked[j];
        if (j == w->nodes - 1 || (!ends && !any(1 - at_most(largest, all(c->growth))))) continue;
        settled(s, R);
        EACH(l) if (ends || !(largest[l] <= c->growth)) {
            w->closes[j] |= 1u << l;
            put_aside(s->own + l, R, s->T, l, !ends);
            begin_window(s, l);
        }
    }
}
