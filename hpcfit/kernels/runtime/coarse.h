/* Several windows: what is left of them is a short chain, solved one member at a time.

   All window states and the parameters are s_w = S u + sigma and p = P u + pi with free numbers u, n for each
   experiment and q. A link s_w+1 = E (s_w, p) + gap ties u and s_w+1: with ((E_s S + E_p P)^t; -I) = Q (R; 0),
   (u, s_w+1) = Q2 u' - Q1 R^-t m for every u'. So u is replaced by u', window after window; rows follow, and stay a
   triangle. Nothing is squared or inverted on the way, and the work is linear in the number of windows. */

/* Householder reflections of a (rows, pivots of stride columns) in place; further columns up to `columns` follow.
   A vector begins with 1 on the diagonal, which is not kept. */
static void triangulate(double *a, long rows, long pivots, long columns, long stride, double *tau)
{
    for (long c = 0; c < pivots && c < rows; c++) {
        double below = 0;
        for (long i = c + 1; i < rows; i++) below += a[i * stride + c] * a[i * stride + c];
        const double x = a[c * stride + c], length = sqrt(x * x + below), beta = x > 0 ? -length : length;
        tau[c] = below == 0 ? 0 : (beta - x) / beta;
        if (below == 0) continue;
        for (long i = c + 1; i < rows; i++) a[i * stride + c] /= x - beta;
        a[c * stride + c] = beta;
        for (long d = c + 1; d < columns; d++) {
            double s = a[c * stride + d];
            for (long i = c + 1; i < rows; i++) s += a[i * stride + c] * a[i * stride + d];
            s *= tau[c];
            a[c * stride + d] -= s;
            for (long i = c + 1; i < rows; i++) a[i * stride + d] -= s * a[i * stride + c];
        }
    }
}

/* b (rows) becomes Q b, with the reflections of `triangulate` in a (rows, n). */
static void reflected(const double *a, long rows, const double *tau, double *b)
{
    for (long c = n - 1; c >= 0; c--) {
        double s = b[c];
        for (long i = c + 1; i < rows; i++) s += a[i * n + c] * b[i];
        s *= tau[c];
        b[c] -= s;
        for (long i = c + 1; i < rows; i++) b[i] -= s * a[i * n + c];
    }
}

/* One window on the way: u (D) by the next u' (F), and its state by u. */
typedef struct { long D; double *U, *u0, *S, *sigma; } station;

/* to (rows, columns) = a (rows, inner) b (inner, columns); strides are F. */
static void product(const double *a, const double *b, double *to, long rows, long inner, long columns, long F)
{
    for (long i = 0; i < rows; i++)
        for (long d = 0; d < columns; d++) {
            double sum = 0;
            for (long s = 0; s < inner; s++) sum += a[i * F + s] * b[s * F + d];
            to[i * F + d] = sum;
        }
}

/* u by u' and the next state by u', where window w is linked to the next. */
static void tie(const double *end, const double *P, const double *pi, const station *at, station *next, long F, double *work)
{
    const long D = at->D, rows = D + n;
    double *B = work, *tau = B + rows * n, *m = tau + n, *b = m + n;
    for (int i = 0; i < n; i++) {
        m[i] = end[i * WIDTH + f];
        for (int s = 0; s < n; s++) m[i] += end[i * WIDTH + s] * at->sigma[s];
        for (int s = 0; s < q; s++) m[i] += end[i * WIDTH + n + s] * pi[s];
        for (long d = 0; d < D; d++) {
            double sum = 0;
            for (int s = 0; s < n; s++) sum += end[i * WIDTH + s] * at->S[s * F + d];
            for (int s = 0; s < q; s++) sum += end[i * WIDTH + n + s] * P[s * F + d];
            B[d * n + i] = sum;
        }
        for (int s = 0; s < n; s++) B[(D + s) * n + i] = i == s ? -1 : 0;
    }
    triangulate(B, rows, n, n, n, tau);
    memset(b, 0, rows * sizeof *b);
    for (int i = 0; i < n; i++) {      /* R^t g = -m */
        b[i] = -m[i];
        for (int s = 0; s < i; s++) b[i] -= B[s * n + i] * b[s];
        b[i] /= B[i * n + i];
    }
    reflected(B, rows, tau, b);
    memcpy(at->u0, b, D * sizeof *b);
    memcpy(next->sigma, b + D, n * sizeof *b);
    for (long c = 0; c < D; c++) {     /* Q2 */
        memset(b, 0, rows * sizeof *b);
        b[n + c] = 1;
        reflected(B, rows, tau, b);
        for (long i = 0; i < D; i++) at->U[i * F + c] = b[i];
        for (int i = 0; i < n; i++) next->S[i * F + c] = b[D + i];
    }
    next->D = D;
}

/* The next window begins another experiment: its state is n more free numbers. */
static void part(const station *at, station *next, long F)
{
    const long D = at->D;
    for (long i = 0; i < D; i++) for (long d = 0; d < D + n; d++) at->U[i * F + d] = i == d;
    memset(at->u0, 0, D * sizeof *at->u0);
    for (int i = 0; i < n; i++) for (long d = 0; d < D + n; d++) next->S[i * F + d] = d == D + i;
    memset(next->sigma, 0, n * sizeof *next->sigma);
    next->D = D + n;
}

/* Inverse of the upper triangle of a (size, stride) into r (size, size); returns an upper bound of the condition. */
static double invert(const double *a, long size, long stride, double *r)
{
    double norm = 0, inverse_norm = 0;
    memset(r, 0, size * size * sizeof *r);
    for (long d = 0; d < size; d++)
        for (long i = d; i >= 0; i--) {
            double sum = i == d;
            for (long s = i + 1; s <= d; s++) sum -= a[i * stride + s] * r[s * size + d];
            r[i * size + d] = sum / a[i * stride + i];
            norm += a[i * stride + d] * a[i * stride + d];
            inverse_norm += r[i * size + d] * r[i * size + d];
        }
    return sqrt(norm * inverse_norm);
}

/* States of all windows and parameters: x (count n + q), and with K the factor of their covariance (count n + q, F)
   for F free numbers; returns the condition. */
static double between(const aside *a, long F, double *x, double *K)
{
    const long count = a->count, per = F * F + F + n * F + n, most = F + f;
    station *way = malloc((count + 1) * sizeof *way);
    double *room = calloc((count + 1) * per + most * (F + 1) + 2 * q * F + q + F + (F + n) * n + 2 * n + F + n + 2 * F * F, sizeof *room);
    double *T = room + (count + 1) * per, *P = T + most * (F + 1), *moved = P + q * F, *pi = moved + q * F, *tau = pi + q;
    double *work = tau + F, *spare = work + (F + n) * n + 2 * n + F + n, *inverse = spare + F * F;
    for (long w = 0; w <= count; w++) {
        double *own = room + w * per;
        way[w] = (station){f, own, own + F * F, own + F * F + F, own + F * F + F + n * F};
    }
    for (int i = 0; i < n; i++) way[0].S[i * F + i] = 1;
    for (int i = 0; i < q; i++) P[i * F + n + i] = 1;
    long filled = 0;
    for (long w = 0; w < count; w++) {
        const station *at = way + w;
        const double *rows = a->rows + w * f * WIDTH;
        for (int i = 0; i < f; i++) {
            double *to = T + (filled + i) * (F + 1);
            for (long d = 0; d <= F; d++) {
                if (d >= at->D && d < F) { to[d] = 0; continue; }
                double sum = d == F ? rows[i * WIDTH + f] : 0;
                for (int s = 0; s < n; s++) sum += rows[i * WIDTH + s] * (d == F ? at->sigma[s] : at->S[s * F + d]);
                for (int s = 0; s < q; s++) sum += rows[i * WIDTH + n + s] * (d == F ? pi[s] : P[s * F + d]);
                to[d] = sum;
            }
        }
        triangulate(T, filled + f, at->D, F + 1, F + 1, tau);
        filled = filled + f < at->D ? filled + f : at->D;
        for (long i = 0; i < filled; i++) for (long d = 0; d < i; d++) T[i * (F + 1) + d] = 0;
        if (w == count - 1) break;
        if (a->joined[w]) tie(a->ends + w * n * WIDTH, P, pi, at, way + w + 1, F, work);
        else part(at, way + w + 1, F);
        for (long i = 0; i < filled; i++) {    /* rows and parameters by the next u */
            double *row = T + i * (F + 1);
            memcpy(spare, row, at->D * sizeof *row);
            for (long s = 0; s < at->D; s++) row[F] += spare[s] * at->u0[s];
            for (long d = 0; d < way[w + 1].D; d++) {
                row[d] = 0;
                for (long s = 0; s < at->D; s++) row[d] += spare[s] * at->U[s * F + d];
            }
        }
        for (int i = 0; i < q; i++) for (long s = 0; s < at->D; s++) pi[i] += P[i * F + s] * at->u0[s];
        product(P, at->U, moved, q, at->D, way[w + 1].D, F);
        memcpy(P, moved, q * F * sizeof *P);
    }
    const double condition = filled < F ? INFINITY : invert(T, F, F + 1, inverse);
    double *u = work;
    for (long i = 0; i < F; i++) {
        u[i] = 0;
        for (long s = i; s < F; s++) u[i] -= inverse[i * F + s] * T[s * (F + 1) + F];
    }
    for (int i = 0; i < q; i++) {
        x[count * n + i] = pi[i];
        for (long s = 0; s < F; s++) x[count * n + i] += P[i * F + s] * u[s];
    }
    if (K) product(P, inverse, K + count * n * F, q, F, F, F);
    for (long w = count - 1; w >= 0; w--) {
        const station *at = way + w;
        for (int i = 0; i < n; i++) {
            x[w * n + i] = at->sigma[i];
            for (long s = 0; s < at->D; s++) x[w * n + i] += at->S[i * F + s] * u[s];
        }
        if (K) product(at->S, inverse, K + w * n * F, n, at->D, F, F);
        if (w == 0) break;
        const station *before = way + w - 1;
        for (long i = 0; i < before->D; i++) {
            tau[i] = before->u0[i];
            for (long s = 0; s < at->D; s++) tau[i] += before->U[i * F + s] * u[s];
        }
        memcpy(u, tau, before->D * sizeof *u);
        if (K) {
            product(before->U, inverse, spare, before->D, at->D, F, F);
            memcpy(inverse, spare, before->D * F * sizeof *inverse);
        }
    }
    free(room);
    free(way);
    return condition;
}

/* dz in units of the scales: ds_j+1 = G ds_j + H dp + d from the first node of every window. */
static void expand(const chain *c, crew *w, condensed *s)
{
    const long N = c->nodes;
    v x[f];
    substituted(s->R, f, WIDTH, x);
    EACH(l) if (s->own[l].count) {
        put_aside(s->own + l, s->R, 0, l, 0);
        s->condition[l] = between(s->own + l, c->freedoms, s->x[l], 0);
        for (int i = 0; i < n; i++) x[i][l] = s->x[l][i];
        for (int i = 0; i < q; i++) x[n + i][l] = s->x[l][s->own[l].count * n + i];
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
        if (w->closes[j]) EACH(l) if (w->closes[j] >> l & 1 && ++window[l])
            for (int i = 0; i < n; i++) next[i][l] = s->x[l][window[l] * n + i];
    }
}
