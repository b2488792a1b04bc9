/* Linearised chains, W members at a time; n states, q parameters and k rows at a node are compiled in. The same
   mathematics as hpcfit/linear/{scaling,windows,dense}.py, which are the reference.

   At a node, ds_j = T_j (ds_w, dp, 1) with the state of its window w. The rows (A_j 0) T_j + (0 B_j r_j) are rotated
   into a triangle by Householder reflections. Neither T nor the reflections are kept: new residuals pass through all
   of it again, which costs less than to read it from memory. A window closes, for each member by itself, before T
   grows past a limit. */
#include "lanes.h"
#include "transpose.h"
#include <stdlib.h>

#define n N_STATES
#define q N_PARAMETERS
#define k N_ROWS
#define f (n + q)
#define WIDTH (f + 1)                          /* unknowns and right-hand side */
#define TOGETHER (k < 16 ? 16 / k : 1)         /* nodes whose rows are rotated at once: roots and quotients take long */
#define SMALLEST_PART 1e-3                     /* of the largest state: the unit of a state that is (still) zero */

/* The problem where its members are, and what is found out about it; linear/compiled.py holds its twin. */
typedef struct {
    long members, nodes;
    const double *at_nodes, *at_parameters;                    /* z (members, N, n), (members, q) */
    const double *rows_by_node, *rows_by_parameters;           /* A, B (members, N, k, n or q); no B: zero */
    long row_strides[4];                                       /* of members and nodes in A and B: 0 where all share */
    const double *links_by_node, *links_by_parameters;         /* G, H (members, N - 1, n, n or q) */
    const double *rows, *links;                                /* F(z) (members, N, k), (members, N - 1, n) */
    const unsigned char *linked;
    int freedoms;
    double growth;
    double *states, *parameters;                               /* scales (members, n), (members, q) */
    double *step_nodes, *step_parameters;                      /* dz = -J+ F (members, N, n), (members, q) */
    double *increment, *objective, *defect;                    /* (members,) length of dz, ||F1||^2, largest |F2| */
    double *inverse;                                           /* (members, f, f) of the triangle, where windows are one */
    double *coarse;                                            /* (members, coarse_size) touched where they are several */
    int *windows;                                              /* (members,) how many */
    unsigned char *closes;                                     /* (members, N) 1 where a window ends; zero before */
    double *condition;                                         /* (members,) an upper bound; infinite: too many windows */
} chain;

INLINE void times(const long *member, long stride, long *at) { EACH(l) at[l] = member[l] * stride; }

/* Where those lanes save that have a place of their own. */
INLINE void places(const long *slot, long stride, long *at) { EACH(l) at[l] = slot[l] < 0 ? -1 : slot[l] * stride; }

/* The block of numbers of every lane; where all members share it, read once. */
INLINE void load_shared(const double *from, const long *member, long stride, int count, v *to)
{
    if (stride == 0) { for (int i = 0; i < count; i++) to[i] = all(from[i]); return; }
    long at[W];
    times(member, stride, at);
    load(from, at, count, to);
}

/* Householder reflections: `count` rows of `width` into the upper triangle R, column after column for the first
   `pivots`. What is then left in the rows is of no use. */
INLINE void rotate(v *R, v *rows, int pivots, int width, int count)
{
    for (int c = 0; c < pivots; c++) {
        v below = all(0), more = all(0);
        for (int i = 0; i < count; i++)
            if (i % 2) more = FMA(rows[i * width + c], rows[i * width + c], more);
            else below = FMA(rows[i * width + c], rows[i * width + c], below);
        below += more;
        const v x = R[c * width + c], length = v_sqrt(FMA(x, x, below)), beta = pick(x, -length, length);
        const v t = pick(below, (beta - x) / beta, all(0));   /* nothing to do where nothing is below */
        const v inverse_head = pick(below, 1 / (x - beta), all(0));
        R[c * width + c] = pick(below, beta, x);
        for (int i = 0; i < count; i++) rows[i * width + c] *= inverse_head;
        for (int d = c + 1; d < width; d++) {
            v s = R[c * width + d], u = all(0);
            for (int i = 0; i < count; i++)
                if (i % 2) u = FMA(rows[i * width + c], rows[i * width + d], u);
                else s = FMA(rows[i * width + c], rows[i * width + d], s);
            s = t * (s + u);
            R[c * width + d] -= s;
            for (int i = 0; i < count; i++) rows[i * width + d] = FMA(-s, rows[i * width + c], rows[i * width + d]);
        }
    }
}

/* Inverse (size, size) of the upper triangle of R (size, width); returns an upper bound of the condition. */
INLINE v inverted(const v *R, int size, int width, v *inverse)
{
    v norm = all(0), inverse_norm = all(0);
    for (int d = 0; d < size; d++) {
        for (int i = size - 1; i > d; i--) inverse[i * size + d] = all(0);
        for (int i = d; i >= 0; i--) {
            v sum = all(i == d);
            for (int s = i + 1; s <= d; s++) sum = FMA(-R[i * width + s], inverse[s * size + d], sum);
            inverse[i * size + d] = sum / R[i * width + i];
            norm = FMA(R[i * width + d], R[i * width + d], norm);
            inverse_norm = FMA(inverse[i * size + d], inverse[i * size + d], inverse_norm);
        }
    }
    return v_sqrt(norm * inverse_norm);
}

/* x (size) = -R^-1 times the right-hand side, which is column `size` of R. */
INLINE void substituted(const v *R, int size, int width, v *x)
{
    for (int i = size - 1; i >= 0; i--) {
        v sum = -R[i * width + size];
        for (int s = i + 1; s < size; s++) sum = FMA(-R[i * width + s], x[s], sum);
        x[i] = sum / R[i * width + i];
    }
}

/* Several windows: the dense problem between them, one member at a time. */

/* Householder QR of a (rows, cols) in place; a vector begins with 1 on the diagonal, which is not kept. */
static void triangulate(double *a, long rows, long cols, double *tau)
{
    for (long c = 0; c < cols; c++) {
        double below = 0;
        for (long i = c + 1; i < rows; i++) below += a[i * cols + c] * a[i * cols + c];
        const double x = a[c * cols + c], length = sqrt(x * x + below), beta = x > 0 ? -length : length;
        tau[c] = below == 0 ? 0 : (beta - x) / beta;
        if (below == 0) continue;
        for (long i = c + 1; i < rows; i++) a[i * cols + c] /= x - beta;
        a[c * cols + c] = beta;
        for (long d = c + 1; d < cols; d++) {
            double s = a[c * cols + d];
            for (long i = c + 1; i < rows; i++) s += a[i * cols + c] * a[i * cols + d];
            s *= tau[c];
            a[c * cols + d] -= s;
            for (long i = c + 1; i < rows; i++) a[i * cols + d] -= s * a[i * cols + c];
        }
    }
}

/* The orthogonal matrix of `triangulate` (rows, width), its first columns. */
static void orthogonal(const double *a, long rows, long cols, const double *tau, double *Q, long width)
{
    for (long i = 0; i < rows * width; i++) Q[i] = i / width == i % width;
    for (long c = cols - 1; c >= 0; c--)
        for (long d = 0; d < width; d++) {
            double s = Q[c * width + d];
            for (long i = c + 1; i < rows; i++) s += a[i * cols + c] * Q[i * width + d];
            s *= tau[c];
            Q[c * width + d] -= s;
            for (long i = c + 1; i < rows; i++) Q[i * width + d] -= s * a[i * cols + c];
        }
}

/* Inverse of the upper triangle of a (cols, cols leading) into r (cols, cols). */
static void invert(const double *a, long cols, double *r)
{
    memset(r, 0, cols * cols * sizeof *r);
    for (long d = 0; d < cols; d++)
        for (long i = d; i >= 0; i--) {
            double sum = i == d;
            for (long s = i + 1; s <= d; s++) sum -= a[i * cols + s] * r[s * cols + d];
            r[i * cols + d] = sum / a[i * cols + i];
        }
}

/* What a member with several windows keeps: triangles and ends of its windows; P and S of
   x = x0 - S (c + R x0), x0 = -P e: window states and parameters x by right-hand sides c and gaps e; and K, the
   factor of the covariance of x. */
#define TRIANGLE(m, w) ((m) + (w) * f * f)
#define END(m, w) ((m) + MAX_WINDOWS * f * f + (w) * n * f)
#define AT_P (MAX_WINDOWS * (f * f + n * f))
#define WIDEST (MAX_WINDOWS * n + q)
#define AT_S (AT_P + WIDEST * MAX_WINDOWS * n)
#define AT_K (AT_S + WIDEST * MAX_WINDOWS * f)
#define COARSE_SIZE (AT_K + WIDEST * WIDEST)

long coarse_size(void) { return COARSE_SIZE; }

/* The links between windows satisfied by Q1, R; the rest a least squares problem in the columns of Q2. */
static void factor_coarse(double *own, int count, const unsigned char *joined, int freedoms, double *condition)
{
    int joints = 0;
    for (int w = 0; w < count - 1; w++) joints += joined[w];
    const long X = count * n + q, C = joints * n, F = X - C, rows = count * f;
    if (F != freedoms) { *condition = INFINITY; return; }
    double *room = calloc(X * C + X * X + rows * F + F * F + rows * F + 2 * C * C + C + F, sizeof *room);
    double *Ct = room, *Q = Ct + X * C, *J = Q + X * X, *inverse = J + rows * F, *thin = inverse + F * F;
    double *Rinv = thin + rows * F, *triangle = Rinv + C * C, *tau = triangle + C * C, *K = own + AT_K;
    for (int w = 0, at = 0; w < count - 1; w++) {
        if (!joined[w]) continue;
        for (int i = 0; i < n; i++, at++) {
            for (int d = 0; d < n; d++) Ct[(w * n + d) * C + at] = END(own, w)[i * f + d];
            for (int d = 0; d < q; d++) Ct[(count * n + d) * C + at] = END(own, w)[i * f + n + d];
            Ct[((w + 1) * n + i) * C + at] = -1;
        }
    }
    triangulate(Ct, X, C, tau);
    orthogonal(Ct, X, C, tau, Q, X);
    for (long i = 0; i < C; i++) for (long d = i; d < C; d++) triangle[i * C + d] = Ct[i * C + d];
    invert(triangle, C, Rinv);
    double *P = own + AT_P;
    for (long i = 0; i < X; i++)      /* P = Q1 R^-t */
        for (long d = 0; d < C; d++) {
            double sum = 0;
            for (long s = d; s < C; s++) sum += Q[i * X + s] * Rinv[d * C + s];
            P[i * C + d] = sum;
        }
    for (int w = 0; w < count; w++)   /* rows of window w by the columns of Q2 */
        for (int i = 0; i < f; i++)
            for (long d = 0; d < F; d++) {
                double sum = 0;
                for (int s = i; s < f; s++)
                    sum += TRIANGLE(own, w)[i * f + s] * Q[(s < n ? w * n + s : count * n + s - n) * X + C + d];
                J[(w * f + i) * F + d] = sum;
            }
    triangulate(J, rows, F, tau);
    orthogonal(J, rows, F, tau, thin, F);
    invert(J, F, inverse);
    double norm = 0, inverse_norm = 0;
    for (long i = 0; i < F; i++)
        for (long d = i; d < F; d++) {
            norm += J[i * F + d] * J[i * F + d];
            inverse_norm += inverse[i * F + d] * inverse[i * F + d];
        }
    *condition = sqrt(norm * inverse_norm);
    for (long i = 0; i < X; i++)      /* K = Q2 R2^-1 */
        for (long d = 0; d < F; d++) {
            double sum = 0;
            for (long s = 0; s <= d; s++) sum += Q[i * X + C + s] * inverse[s * F + d];
            K[i * F + d] = sum;
        }
    double *S = own + AT_S;
    for (long i = 0; i < X; i++)
        for (long d = 0; d < rows; d++) {
            double sum = 0;
            for (long s = 0; s < F; s++) sum += K[i * F + s] * thin[d * F + s];
            S[i * rows + d] = sum;
        }
    free(room);
}

/* x (count n + q) from right-hand sides (count, f) and gaps (joints, n). */
static void solve_coarse(const double *own, int count, int joints, const double *right, const double *gaps, double *x)
{
    const long X = count * n + q, C = joints * n, rows = count * f;
    double shifted[MAX_WINDOWS * f];
    for (long i = 0; i < X; i++) {
        double sum = 0;
        for (long d = 0; d < C; d++) sum -= own[AT_P + i * C + d] * gaps[d];
        x[i] = sum;
    }
    for (int w = 0; w < count; w++)
        for (int i = 0; i < f; i++) {
            double sum = right[w * f + i];
            for (int s = i; s < f; s++) sum += TRIANGLE(own, w)[i * f + s] * x[s < n ? w * n + s : count * n + s - n];
            shifted[w * f + i] = sum;
        }
    for (long i = 0; i < X; i++)
        for (long d = 0; d < rows; d++) x[i] -= own[AT_S + i * rows + d] * shifted[d];
}

/* W members at a time: which they are, their units, and their links in these units, (G H) at every node. */
typedef struct {
    long member[W];
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
    times(w->member, (c->nodes - 1) * n * n, g);
    times(w->member, (c->nodes - 1) * n * q, h);
    v G[n * n], H[n * q + 1];
    for (long j = 0; j < c->nodes - 1; j++) {
        v *to = w->links + j * n * f;
        load(c->links_by_node + j * n * n, g, n * n, G);
        load(c->links_by_parameters + j * n * q, h, n * q, H);
        for (int i = 0; i < n; i++) {
            for (int s = 0; s < n; s++) to[i * f + s] = G[i * n + s] * w->scale[s] * w->unit[i];
            for (int s = 0; s < q; s++) to[i * f + n + s] = H[i * q + s] * w->scale[n + s] * w->unit[i];
        }
    }
}

/* The condensed problem of a crew on its way through the nodes. */
typedef struct {
    v R[f * WIDTH], T[n * WIDTH], rows[TOGETHER * k * WIDTH];
    int waiting;                               /* rows that have not been rotated yet */
    int windows[W], joints[W];
    unsigned char joined[W][MAX_WINDOWS];
    double right[W][MAX_WINDOWS * f], gaps[W][MAX_WINDOWS * n];
} condensed;

INLINE void begin_window(condensed *s, int l)
{
    for (int i = 0; i < n; i++) for (int d = 0; d < WIDTH; d++) s->T[i * WIDTH + d][l] = i == d;
    for (int i = 0; i < f * WIDTH; i++) s->R[i][l] = 0;
    for (int i = 0; i < s->waiting * WIDTH; i++) s->rows[i][l] = 0;
}

/* What a lane keeps of a window that ends here: its triangle and right-hand side, and how it meets the next. */
INLINE void put_aside(condensed *s, const v *R, const v *next, int l, int linked, double *own)
{
    const int number = s->windows[l]++;
    if (number >= MAX_WINDOWS) return;
    for (int i = 0; i < f; i++) {
        for (int d = 0; d < f; d++) TRIANGLE(own, number)[i * f + d] = R[i * WIDTH + d][l];
        s->right[l][number * f + i] = R[i * WIDTH + f][l];
    }
    if (!next) return;
    s->joined[l][number] = linked;
    for (int i = 0; i < n; i++) {
        for (int d = 0; d < f; d++) END(own, number)[i * f + d] = next[i * WIDTH + d][l];
        if (linked) s->gaps[l][s->joints[l] * n + i] = next[i * WIDTH + f][l];
    }
    s->joints[l] += linked;
}

/* Some lanes close their windows behind node j; the rotations of the others are not brought forward by that. */
static void close_windows(const chain *c, const crew *w, condensed *s, const v *next, v largest, long j)
{
    v R[f * WIDTH], rows[TOGETHER * k * WIDTH];
    memcpy(R, s->R, sizeof R);
    memcpy(rows, s->rows, sizeof rows);
    rotate(R, rows, f, WIDTH, s->waiting);
    EACH(l) if (!c->linked[j] || !(largest[l] <= c->growth)) {
        w->closes[j] |= 1u << l;
        put_aside(s, R, next, l, c->linked[j], c->coarse + w->member[l] * COARSE_SIZE);
    }
}

/* Through all nodes, for residuals whose rows and links begin at r[l] and d[l]. */
static void condense(const chain *c, crew *w, condensed *s, const double *rows, const long *r, const double *links, const long *d)
{
    const long N = c->nodes;
    memset(w->closes, 0, N);
    w->objective = w->defect = all(0);
    s->waiting = 0;
    EACH(l) { s->windows[l] = s->joints[l] = 0; begin_window(s, l); }
    for (long j = 0; j < N; j++) {
        v A[k * n], B[k * q + 1], rest[k], *to = s->rows + s->waiting * WIDTH;
        load_shared(c->rows_by_node + j * c->row_strides[1], w->member, c->row_strides[0], k * n, A);
        if (c->rows_by_parameters)
            load_shared(c->rows_by_parameters + j * c->row_strides[3], w->member, c->row_strides[2], k * q, B);
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
        if (j % TOGETHER == TOGETHER - 1 || j == N - 1) {
            if (s->waiting == TOGETHER * k) rotate(s->R, s->rows, f, WIDTH, TOGETHER * k);
            else rotate(s->R, s->rows, f, WIDTH, s->waiting);
            s->waiting = 0;
        }
        if (j == N - 1) break;
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
        if (c->linked[j] && !any(1 - at_most(largest, all(c->growth)))) continue;
        close_windows(c, w, s, next, largest, j);
        EACH(l) if (w->closes[j] >> l & 1) begin_window(s, l);
    }
}

/* dz in units of the scales: ds_j+1 = G ds_j + H dp + d from the first node of every window. */
static void expand(const chain *c, crew *w, condensed *s)
{
    const long N = c->nodes;
    double coarse[W][WIDEST];
    v x[f];
    substituted(s->R, f, WIDTH, x);
    EACH(l) if (s->windows[l] > 0) {
        const int count = s->windows[l] + 1;
        put_aside(s, s->R, 0, l, 0, c->coarse + w->member[l] * COARSE_SIZE);
        if (count <= MAX_WINDOWS)
            solve_coarse(c->coarse + w->member[l] * COARSE_SIZE, count, s->joints[l], s->right[l], s->gaps[l], coarse[l]);
        for (int i = 0; i < n; i++) x[i][l] = count <= MAX_WINDOWS ? coarse[l][i] : NAN;
        for (int i = 0; i < q; i++) x[n + i][l] = count <= MAX_WINDOWS ? coarse[l][count * n + i] : NAN;
    }
    for (int i = 0; i < q; i++) w->dp[i] = x[n + i];
    for (int i = 0; i < n; i++) w->ds[i] = x[i];
    int window[W];
    EACH(l) window[l] = 0;
    for (long j = 0; j < N - 1; j++) {
        const v *here = w->ds + j * n, *link = w->links + j * n * f;
        v *next = w->ds + (j + 1) * n;
        for (int i = 0; i < n; i++) {
            next[i] = w->gaps[j * n + i];
            for (int m = 0; m < n; m++) next[i] = FMA(link[i * f + m], here[m], next[i]);
            for (int m = 0; m < q; m++) next[i] = FMA(link[i * f + n + m], w->dp[m], next[i]);
        }
        if (w->closes[j]) EACH(l) if (w->closes[j] >> l & 1 && ++window[l] < MAX_WINDOWS)
            for (int i = 0; i < n; i++) next[i][l] = coarse[l][window[l] * n + i];
    }
}

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

/* What later calls need: scales, the inverse of the triangle or the factors between windows, and the condition. */
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
        const long m = slot[l];
        const int count = s->windows[l] + 1;
        c->windows[m] = count;
        c->condition[m] = count == 1 ? condition[l] : INFINITY;
        if (count == 1) continue;
        for (long j = 0; j < c->nodes; j++) c->closes[m * c->nodes + j] = w->closes[j] >> l & 1;
        if (count > MAX_WINDOWS) continue;
        double *own = c->coarse + m * COARSE_SIZE;
        for (int i = 0; i < f; i++)
            for (int d = 0; d < f; d++) TRIANGLE(own, count - 1)[i * f + d] = s->R[i * WIDTH + d][l];
        factor_coarse(own, count, s->joined[l], c->freedoms, &c->condition[m]);
    }
}

/* Scales, factors and the increment of all members. */
void linearise(const chain *c)
{
    const long N = c->nodes;
    crew *w = new_crew(N);
    condensed *s = aligned_alloc(sizeof(v), sizeof *s);
    for (long first = 0; first < c->members; first += W) {
        long slot[W], r[W], d[W];
        EACH(l) {
            slot[l] = first + l < c->members ? first + l : -1;
            w->member[l] = slot[l] < 0 ? first : slot[l];   /* an empty place repeats the first */
        }
        times(w->member, N * k, r);
        times(w->member, (N - 1) * n, d);
        choose_scales(c, w);
        load_links(c, w);
        condense(c, w, s, c->rows, r, c->links, d);
        keep_factors(c, w, s, slot);
        expand(c, w, s);
        save_increment(c, w, slot, c->step_nodes, c->step_parameters);
        const v length = length_of(c, w);
        EACH(l) if (slot[l] >= 0) {
            c->increment[slot[l]] = length[l];
            c->objective[slot[l]] = w->objective[l];
            c->defect[slot[l]] = w->defect[l];
        }
    }
    free(s);
    free_crew(w);
}

/* Other residuals (count, ...) of some members. Increments are written where there is room for them; with alpha
   also the length of -J+ F - (1 - alpha) dz. */
void solve(const chain *c, long count, const long *which, const double *rows, const double *links, double *nodes,
           double *parameters, const double *alpha, double *away)
{
    const long N = c->nodes;
    crew *w = new_crew(N);
    condensed *s = aligned_alloc(sizeof(v), sizeof *s);
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
        load_scales(c, w);
        load_links(c, w);
        condense(c, w, s, rows, r, links, d);
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
    free(s);
    free_crew(w);
}

/* The factor of the covariance, in the problem's own units, of nodes (count, wanted, n, F) and of the parameters
   (count, q, F) of some members: of all nodes, or of those at which an experiment begins (there, a window does). */
void covariance_factor(const chain *c, long count, const long *which, int all_nodes, double *nodes, double *parameters)
{
    const long N = c->nodes, F = c->freedoms;
    double *here = malloc(2 * n * F * sizeof *here), *next = here + n * F;
    long wanted = N;
    if (!all_nodes) for (long j = wanted = 1; j < N; j++) wanted += !c->linked[j - 1];
    for (long at = 0; at < count; at++) {
        const long m = which[at];
        if (c->windows[m] > MAX_WINDOWS) continue;      /* the reference does it */
        const double *scale = c->states + m * n, *own = c->parameters + m * q;
        const double *K = c->windows[m] > 1 ? c->coarse + m * COARSE_SIZE + AT_K : c->inverse + m * f * f;
        const double *border = K + c->windows[m] * n * F;
        double *to = nodes + at * wanted * n * F;
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
                        for (int s = 0; s < n; s++) sum += G[i * n + s] * scale[s] * here[s * F + d];
                        for (int s = 0; s < q; s++) sum += H[i * q + s] * own[s] * border[s * F + d];
                        next[i * F + d] = sum / scale[i];
                    }
                memcpy(here, next, n * F * sizeof *here);
            }
        }
        for (int i = 0; i < q; i++)
            for (long d = 0; d < F; d++) parameters[(at * q + i) * F + d] = border[i * F + d] * own[i];
    }
    free(here);
}

/* Nodes held where they are: the dp that minimises B dp + r and w (H dp + d), with the columns scaled by their
   size, and the present misfit. precision (n): w. */
#define BORDER (q + 1)
#define LINKS_TOGETHER (n < 16 ? 16 / n : 1)

void hold(const chain *c, const double *precision, double *misfit, double *step)
{
    const long N = c->nodes;
    for (long first = 0; first < c->members; first += W) {
        long member[W], slot[W], r[W], d[W], h[W], p[W];
        EACH(l) { slot[l] = first + l < c->members ? first + l : -1; member[l] = slot[l] < 0 ? first : slot[l]; }
        times(member, N * k, r);
        times(member, (N - 1) * n, d);
        times(member, (N - 1) * n * q, h);
        v total = all(0), width[q + 1], rest[k], gap[n], H[n * q + 1], B[k * q + 1];
        v R[BORDER * BORDER], rows[k * BORDER], links[LINKS_TOGETHER * n * BORDER], inverse[q * q + 1], dp[q + 1];
        for (int i = 0; i < q; i++) width[i] = all(0);
        for (int pass = 0; pass < 2; pass++) {     /* the sizes of the columns, then the triangle */
            int waiting = 0;
            for (int i = 0; i < BORDER * BORDER; i++) R[i] = all(0);
            for (long j = 0; j < N; j++) {
                load(c->rows + j * k, r, k, rest);
                if (pass == 0) for (int i = 0; i < k; i++) total = FMA(rest[i], rest[i], total);
                if (c->rows_by_parameters) {
                    load_shared(c->rows_by_parameters + j * c->row_strides[3], member, c->row_strides[2], k * q, B);
                    for (int i = 0; i < k; i++) {
                        rows[i * BORDER + q] = rest[i];
                        for (int s = 0; s < q; s++)
                            if (pass == 0) width[s] = FMA(B[i * q + s], B[i * q + s], width[s]);
                            else rows[i * BORDER + s] = B[i * q + s] * width[s];
                    }
                    if (pass) rotate(R, rows, q, BORDER, k);
                }
                if (j == N - 1) break;
                load(c->links + j * n, d, n, gap);
                load(c->links_by_parameters + j * n * q, h, n * q, H);
                for (int i = 0; i < n; i++) {
                    v *to = links + (waiting + i) * BORDER;
                    to[q] = gap[i] * precision[i];
                    if (pass == 0) total = FMA(to[q], to[q], total);
                    for (int s = 0; s < q; s++) {
                        to[s] = H[i * q + s] * precision[i];
                        if (pass == 0) width[s] = FMA(to[s], to[s], width[s]);
                        else to[s] *= width[s];
                    }
                }
                waiting = pass ? waiting + n : 0;
                if (waiting == LINKS_TOGETHER * n) { rotate(R, links, q, BORDER, LINKS_TOGETHER * n); waiting = 0; }
            }
            if (waiting) rotate(R, links, q, BORDER, waiting);
            if (pass == 0) for (int s = 0; s < q; s++) width[s] = pick(width[s], 1 / v_sqrt(width[s]), all(1));
        }
        const v condition = inverted(R, q, BORDER, inverse);
        substituted(R, q, BORDER, dp);
        for (int i = 0; i < q; i++) dp[i] *= width[i];
        EACH(l) if (slot[l] >= 0) { misfit[slot[l]] = total[l]; c->condition[slot[l]] = condition[l]; }
        places(slot, q, p);
        save(step, p, q, dp);
    }
}
