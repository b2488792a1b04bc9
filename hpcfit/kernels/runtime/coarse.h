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
