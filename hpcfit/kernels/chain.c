/* Condensing of linearised chains, W members at a time; n, q, k are compiled in. The same mathematics as
   hpcfit/linear/windows.py and dense.py, which are the reference.

   At a node, ds_j = T_j (ds_w, dp) + t_j with the state of its window w. The rows A_j T_j + (0 B_j) are rotated
   into a triangle R by Householder reflections, whose vectors are kept: new residuals pass through them again.
   A window closes, for each member by itself, before T grows past a limit. */
#include "lanes.h"
#include <stdlib.h>

#define n N_STATES
#define q N_PARAMETERS
#define k N_ROWS
#define f (n + q)

/* A member of a chain; its strides are those of numpy, in doubles, so that constant rows need not be copied. */
typedef struct {
    long members, nodes;
    const double *rows_by_node, *rows_by_parameters, *links_by_node, *links_by_parameters;
    long row_strides[4];        /* members and nodes of rows_by_node, of rows_by_parameters */
    const double *states, *parameters;   /* scales (members, n), (members, q) */
    const unsigned char *linked;
    int freedoms;
    double growth;
    double *store;              /* of `store_size` doubles */
    double *coarse;             /* (members, coarse_size) touched by members with several windows */
    int *windows;               /* (members,) how many */
    unsigned char *closes;      /* (groups, nodes) a bit for every lane */
    double *condition;          /* (members,) an upper bound; infinite if there are too many windows */
} chain;

/* What a node keeps, in lanes: G, T, A, the vectors V and factors tau of the reflections. */
#define AT_G 0
#define AT_T (AT_G + n * n)
#define AT_A (AT_T + n * f)
#define AT_V (AT_A + k * n)
#define AT_TAU (AT_V + k * f)
#define PER_NODE (AT_TAU + f)

long store_size(long members, long nodes)
{
    return (members + W - 1) / W * (nodes * PER_NODE + f * f) * W;
}

INLINE v *group_store(const chain *c, long group)
{
    return (v *)c->store + group * (c->nodes * PER_NODE + f * f);
}

INLINE v gathered(const double *from, const long *offsets) { v r; EACH(l) r[l] = from[offsets[l]]; return r; }

/* Rows into the triangle; the reflections stay in `rows` (their vectors) and tau. */
INLINE void rotate(v R[f][f], v rows[k][f], v tau[f])
{
    for (int c = 0; c < f; c++) {
        v below = all(0);
        for (int i = 0; i < k; i++) below = FMA(rows[i][c], rows[i][c], below);
        const v x = R[c][c], length = v_sqrt(FMA(x, x, below));
        v inverse_head, t, beta;
        EACH(l) {
            beta[l] = x[l] > 0 ? -length[l] : length[l];
            const int idle = below[l] == 0;
            t[l] = idle ? 0 : (beta[l] - x[l]) / beta[l];
            inverse_head[l] = idle ? 0 : 1 / (x[l] - beta[l]);
            beta[l] = idle ? x[l] : beta[l];
        }
        tau[c] = t;
        R[c][c] = beta;
        for (int i = 0; i < k; i++) rows[i][c] *= inverse_head;
        for (int d = c + 1; d < f; d++) {
            v s = R[c][d];
            for (int i = 0; i < k; i++) s = FMA(rows[i][c], rows[i][d], s);
            s *= t;
            R[c][d] -= s;
            for (int i = 0; i < k; i++) rows[i][d] = FMA(-s, rows[i][c], rows[i][d]);
        }
    }
}

/* The same reflections on a right-hand side: top (f) and the rows of one node. */
INLINE void reflect(const v *V, const v *tau, v top[f], v rows[k])
{
    for (int c = 0; c < f; c++) {
        v s = top[c];
        for (int i = 0; i < k; i++) s = FMA(V[i * f + c], rows[i], s);
        s *= tau[c];
        top[c] -= s;
        for (int i = 0; i < k; i++) rows[i] = FMA(-s, V[i * f + c], rows[i]);
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

static void factor_group(const chain *c, long group);

/* Triangles of all members; the inverse of the triangle and the condition where there is one window. */
void factor(const chain *c)
{
    for (long group = 0; group * W < c->members; group++) factor_group(c, group);
}

static void factor_group(const chain *c, long group)
{
    const long N = c->nodes, first = group * W;
    long member[W], a[W], b[W], g[W], h[W];
    EACH(l) {
        member[l] = first + l < c->members ? first + l : first;
        a[l] = member[l] * c->row_strides[0];
        b[l] = member[l] * c->row_strides[2];
        g[l] = member[l] * (N - 1) * n * n;
        h[l] = member[l] * (N - 1) * n * q;
    }
    v scale[f], inverse_scale[n], R[f][f], T[n][f];
    EACH(l) {
        for (int i = 0; i < n; i++) scale[i][l] = c->states[member[l] * n + i];
        for (int i = 0; i < q; i++) scale[n + i][l] = c->parameters[member[l] * q + i];
    }
    for (int i = 0; i < n; i++) inverse_scale[i] = 1 / scale[i];
    memset(R, 0, sizeof R);
    memset(T, 0, sizeof T);
    for (int i = 0; i < n; i++) T[i][i] = all(1);
    int count[W];
    unsigned char joined[W][MAX_WINDOWS];
    EACH(l) count[l] = 1;
    v *at = group_store(c, group);
    for (long j = 0; j < N; j++, at += PER_NODE) {
        v rows[k][f];
        memcpy(at + AT_T, T, sizeof T);
        for (int i = 0; i < k; i++) {
            v A[n];
            for (int s = 0; s < n; s++) {
                A[s] = gathered(c->rows_by_node + j * c->row_strides[1] + i * n + s, a) * scale[s];
                at[AT_A + i * n + s] = A[s];
            }
            for (int d = 0; d < f; d++) {
                v sum = d < n ? all(0)
                              : gathered(c->rows_by_parameters + j * c->row_strides[3] + i * q + d - n, b) * scale[d];
                for (int s = 0; s < n; s++) sum = FMA(A[s], T[s][d], sum);
                rows[i][d] = sum;
            }
        }
        rotate(R, rows, at + AT_TAU);
        memcpy(at + AT_V, rows, sizeof rows);
        if (j == N - 1) break;
        v next[n][f], largest = all(0);
        for (int i = 0; i < n; i++) {
            v G[n];
            for (int s = 0; s < n; s++) {
                G[s] = gathered(c->links_by_node + (j * n + i) * n + s, g) * scale[s] * inverse_scale[i];
                at[AT_G + i * n + s] = G[s];
            }
            for (int d = 0; d < f; d++) {
                v sum = d < n ? all(0)
                              : gathered(c->links_by_parameters + (j * n + i) * q + d - n, h) * scale[d] * inverse_scale[i];
                for (int s = 0; s < n; s++) sum = FMA(G[s], T[s][d], sum);
                next[i][d] = sum;
                if (d < n) largest = larger(largest, size(sum));
            }
        }
        unsigned char closing = 0;
        EACH(l) if (!c->linked[j] || !(largest[l] <= c->growth)) {
            closing |= 1u << l;
            double *own = c->coarse + member[l] * COARSE_SIZE;
            if (first + l < c->members && count[l] < MAX_WINDOWS) {
                joined[l][count[l] - 1] = c->linked[j];
                for (int i = 0; i < f; i++) for (int d = 0; d < f; d++) TRIANGLE(own, count[l] - 1)[i * f + d] = R[i][d][l];
                for (int i = 0; i < n; i++) for (int d = 0; d < f; d++) END(own, count[l] - 1)[i * f + d] = next[i][d][l];
            }
            count[l]++;
            for (int i = 0; i < n; i++) for (int d = 0; d < f; d++) next[i][d][l] = i == d;
            for (int i = 0; i < f; i++) for (int d = 0; d < f; d++) R[i][d][l] = 0;
        }
        c->closes[group * N + j] = closing;
        memcpy(T, next, sizeof T);
    }
    v inverse[f][f], norm = all(0), inverse_norm = all(0);
    memset(inverse, 0, sizeof inverse);
    for (int d = 0; d < f; d++)
        for (int i = d; i >= 0; i--) {
            v sum = all(i == d);
            for (int s = i + 1; s <= d; s++) sum = FMA(-R[i][s], inverse[s][d], sum);
            inverse[i][d] = sum / R[i][i];
            norm = FMA(R[i][d], R[i][d], norm);
            inverse_norm = FMA(inverse[i][d], inverse[i][d], inverse_norm);
        }
    memcpy(group_store(c, group) + N * PER_NODE, inverse, sizeof inverse);
    EACH(l) if (first + l < c->members) {
        double *own = c->coarse + member[l] * COARSE_SIZE;
        c->windows[first + l] = count[l];
        c->condition[first + l] = count[l] == 1 ? SQRT(norm[l] * inverse_norm[l]) : INFINITY;
        if (count[l] > 1 && count[l] <= MAX_WINDOWS) {
            for (int i = 0; i < f; i++) for (int d = 0; d < f; d++) TRIANGLE(own, count[l] - 1)[i * f + d] = R[i][d][l];
            factor_coarse(own, count[l], joined[l], c->freedoms, &c->condition[first + l]);
        }
    }
}

/* dz = -J+ F for the residuals of some members, all in units of the scales: rows (count, N, k) and links
   (count, N - 1, n) to nodes (count, N, n) and parameters (count, q). `which` rises. */
static void solve_group(const chain *c, long group, const long *slot, const double *rows, const double *links,
                        double *nodes, double *parameters, v *kept);

void solve(const chain *c, long count, const long *which, const double *rows, const double *links, double *nodes,
           double *parameters)
{
    v *kept = aligned_alloc(sizeof(v), c->nodes * n * sizeof(v));
    for (long at = 0; at < count;) {
        const long group = which[at] / W;
        long slot[W];
        EACH(l) slot[l] = -1;
        for (; at < count && which[at] / W == group; at++) slot[which[at] % W] = at;
        solve_group(c, group, slot, rows, links, nodes, parameters, kept);
    }
    free(kept);
}

static void solve_group(const chain *c, long group, const long *slot, const double *rows, const double *links,
                        double *nodes, double *parameters, v *kept)
{
    const long N = c->nodes;
    const unsigned char *closes = c->closes + group * N;
    v top[f], t[n], x[f];
    double right[W][MAX_WINDOWS * f], gaps[W][MAX_WINDOWS * n], coarse[W][WIDEST];
    int window[W], joints[W];
    EACH(l) window[l] = joints[l] = 0;
    memset(top, 0, sizeof top);
    memset(t, 0, sizeof t);
    const v *at = group_store(c, group);
    for (long j = 0; j < N; j++, at += PER_NODE) {
        v r[k];
        memcpy(kept + j * n, t, sizeof t);
        for (int i = 0; i < k; i++) {
            EACH(l) r[i][l] = slot[l] < 0 ? 0 : rows[(slot[l] * N + j) * k + i];
            for (int s = 0; s < n; s++) r[i] = FMA(at[AT_A + i * n + s], t[s], r[i]);
        }
        reflect(at + AT_V, at + AT_TAU, top, r);
        if (j == N - 1) break;
        v next[n];
        for (int i = 0; i < n; i++) {
            EACH(l) next[i][l] = slot[l] < 0 ? 0 : links[(slot[l] * (N - 1) + j) * n + i];
            for (int s = 0; s < n; s++) next[i] = FMA(at[AT_G + i * n + s], t[s], next[i]);
        }
        EACH(l) if (closes[j] >> l & 1) {
            if (slot[l] >= 0 && window[l] < MAX_WINDOWS - 1) {
                for (int i = 0; i < f; i++) right[l][window[l] * f + i] = top[i][l];
                if (c->linked[j]) { for (int i = 0; i < n; i++) gaps[l][joints[l] * n + i] = next[i][l]; joints[l]++; }
            }
            window[l]++;
            for (int i = 0; i < f; i++) top[i][l] = 0;
            for (int i = 0; i < n; i++) next[i][l] = 0;
        }
        memcpy(t, next, sizeof t);
    }
    const v *inverse = group_store(c, group) + N * PER_NODE;
    for (int i = 0; i < f; i++) {
        x[i] = all(0);
        for (int d = i; d < f; d++) x[i] = FMA(-inverse[i * f + d], top[d], x[i]);
    }
    EACH(l) if (slot[l] >= 0 && window[l] > 0) {
        if (window[l] < MAX_WINDOWS) {
            for (int i = 0; i < f; i++) right[l][window[l] * f + i] = top[i][l];
            solve_coarse(c->coarse + (group * W + l) * COARSE_SIZE, window[l] + 1, joints[l], right[l], gaps[l], coarse[l]);
        } else
            for (long i = 0; i < WIDEST; i++) coarse[l][i] = NAN;
        for (int i = 0; i < n; i++) x[i][l] = coarse[l][i];
        for (int i = 0; i < q; i++)
            x[n + i][l] = coarse[l][(window[l] < MAX_WINDOWS ? window[l] + 1 : MAX_WINDOWS) * n + i];
    }
    EACH(l) window[l] = 0;
    at = group_store(c, group);
    for (long j = 0; j < N; j++, at += PER_NODE) {
        for (int i = 0; i < n; i++) {
            v sum = kept[j * n + i];
            for (int d = 0; d < f; d++) sum = FMA(at[AT_T + i * f + d], x[d], sum);
            EACH(l) if (slot[l] >= 0) nodes[(slot[l] * N + j) * n + i] = sum[l];
        }
        if (j < N - 1 && closes[j])
            EACH(l) if (slot[l] >= 0 && closes[j] >> l & 1 && ++window[l] < MAX_WINDOWS)
                for (int i = 0; i < n; i++) x[i][l] = coarse[l][window[l] * n + i];
    }
    EACH(l) if (slot[l] >= 0)
        for (int i = 0; i < q; i++) parameters[slot[l] * q + i] = x[n + i][l];
}

/* The factor of the covariance of every node (members, N, n, F) and of the parameters (members, q, F). */
void covariance_factor(const chain *c, double *nodes, double *parameters)
{
    const long N = c->nodes, F = c->freedoms;
    double *one = malloc(f * f * sizeof *one);
    for (long m = 0; m < c->members; m++) {
        const long group = m / W, l = m % W;
        const v *at = group_store(c, group), *inverse = at + N * PER_NODE;
        const int count = c->windows[m];
        if (count > MAX_WINDOWS) continue;      /* the reference does it */
        for (long i = 0; i < f * f; i++) one[i] = inverse[i][l];
        const double *K = count == 1 ? one : c->coarse + m * COARSE_SIZE + AT_K, *border = K + count * n * F;
        for (long j = 0, w = 0; j < N; j++, at += PER_NODE) {
            double *to = nodes + (m * N + j) * n * F;
            for (int i = 0; i < n; i++)
                for (long d = 0; d < F; d++) {
                    double sum = 0;
                    for (int s = 0; s < n; s++) sum += at[AT_T + i * f + s][l] * K[(w * n + s) * F + d];
                    for (int s = 0; s < q; s++) sum += at[AT_T + i * f + n + s][l] * border[s * F + d];
                    to[i * F + d] = sum;
                }
            if (j < N - 1 && c->closes[group * N + j] >> l & 1) w++;
        }
        memcpy(parameters + m * q * F, border, q * F * sizeof *border);
    }
    free(one);
}
