/* The tangents of one step: d[k][row][column] for a block of columns at a time, so that a block stays in the
   fast caches; then its values at every output inside the step and at its end. */

#define D_STRIDE(width) (ROWS * (width))

INLINE const v *source_of(const crew *c, int row, int column)
{
    if (column < N || !NP) return 0;
    int number = source_series[row * NP + column - N];
    return number == -1 ? 0 : number >= 0 ? c->s + number * STRIDE : c->held + (-2 - number) * STRIDE;
}

/* Values of `count` neighbouring polynomials; eight at a time stay in registers. */
INLINE void horner_many(const v *d, int stride, int order, int count, v h, v *to)
{
    int j = 0;
    for (; j + 8 <= count; j += 8) horner(d + j, stride, order, 8, h, to + j);
    for (; j + 4 <= count; j += 4) horner(d + j, stride, order, 4, h, to + j);
    for (; j < count; j++) horner(d + j, stride, order, 1, h, to + j);
}

/* The largest step that a block of columns allows. */
INLINE v block_step(const work *job, const crew *c, int block, v h, v power)
{
    int width = blocks[block].width;
    v step = h, span = all(0);
    for (int i = 0; i < N; i++) span = larger(span, larger(size(c->x[i]), size(c->s[i * STRIDE + 1]) * h));
    for (int j = 0; j < width; j++) {
        int column = blocks[block].first + j;
        v floor = (real)1e-3 * (column < N ? all(1) : span * c->natural[column < N ? 0 : column - N]);
        v one = tangent_step(c->d + j, width, D_STRIDE(width), &c->order, h, power, job->tangent_tolerance, floor);
        step = smaller(step, one);
    }
    return step;
}

/* h^(order - 1), each lane with its own order. */
INLINE v power_before(const crew *c, v h)
{
    v power;
    EACH(l) {
        real r = 1, b = LANE(h, l);
        for (int k = c->order.of[l] - 1; k; k >>= 1, b *= b) if (k & 1) r *= b;
        LANE(power, l) = r;
    }
    return power;
}

/* Take over a shorter step; returns 1 if a lane should rather try again with the full order. */
INLINE int shorten(const work *job, crew *c, v step, v *h, int *crossed)
{
    int again = 0;
    EACH(l) if (LANE(step, l) < LANE(*h, l)) {
        crossed[l] = -1;
        if (c->order.of[l] < job->order) { LANE(c->insist, l) = 1; again = 1; }
    }
    *h = step;
    return again;
}

INLINE int differs(v a, v b)
{
    int any = 0;
    EACH(l) any |= LANE(a, l) != LANE(b, l) && LANE(a, l) == LANE(a, l);
    return any;
}

#if QUADRATURE

static const real node[QUADRATURE_NODES] = NODES, weight[QUADRATURE_NODES] = WEIGHTS;

/* Tangents at h into the step: Phi S by start, Phi (S + integral of Phi^-1 f_p) by parameters. */
static void tangents_at(crew *c, int order, v h, v (*T)[N + NP + 1])
{
    v sum[N * NP], x[N], F[N * N], inverted[N * N], g[N * NP];
    for (int j = 0; j < N * NP; j++) sum[j] = all(0);
    for (int q = 0; q < QUADRATURE_NODES; q++) {
        v at = h * node[q], scale = h * weight[q];
        for (int i = 0; i < N; i++) horner(c->s + i * STRIDE, 1, order, 1, at, x + i);
        horner_many(c->d, D_STRIDE(N), order, N * N, at, F);
        invert(F, inverted);
        parameter_slopes(x, c->p, c->u, c->mode, c->t + at, g);
        for (int i = 0; i < N; i++) for (int m = 0; m < N; m++) inverted[i * N + m] *= scale;
        accumulate(inverted, g, sum);
    }
    horner_many(c->d, D_STRIDE(N), order, N * N, h, F);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N + NP; j++) {
            v value = all(0);
            for (int m = 0; m < N; m++) {
                v part = j < N ? c->S[m][j] : c->S[m][j] + sum[m * NP + (j < N ? 0 : j - N)];
                value = FMA(F[i * N + m], part, value);
            }
            T[i][j] = value;
        }
}

/* Tangents at the end of the step, which may become shorter; 0: a lane needs series of a higher order. */
static int move_tangents(const work *job, crew *c, int order, v *h, int *crossed)
{
    const v *source[N * WIDEST] = {0};
    v (*T)[N + NP + 1] = c->T;
    jacobian_series(c->s, c->p, c->u, c->mode, order);
    for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) c->d[i * N + j] = all(i == j);
    tangent_block(c->s, c->p, c->u, order, N, c->d, source);
    if (shorten(job, c, block_step(job, c, 0, *h, power_before(c, *h)), h, crossed)) return 0;
    forget(c, c->d, D_STRIDE(N), N * N);
    long rounds = count_due(job, c, *h);
    for (long r = 0; r < rounds; r++) {
        tangents_at(c, order, place_of(job, c, r), T);
        EACH(l) if (r < c->due[l]) write_columns(job, c, l, c->next[l] + r, 0, N + NP, T[0], N + NP + 1);
    }
    tangents_at(c, order, *h, T);
    memcpy(c->S, T, sizeof c->S);
    return 1;
}

#else

/* Tangents at the end of the step, which may become shorter; 0: a lane needs series of a higher order. */
static int move_tangents(const work *job, crew *c, int order, v *h, int *crossed)
{
    v (*T)[N + NP + 1] = c->T, values[N * WIDEST];
    const v *source[N * WIDEST];
    jacobian_series(c->s, c->p, c->u, c->mode, order);
    const v asked = *h, power = power_before(c, asked);   /* every block judges the step that the state asks for */
    int stale = 0;
again:;
    long rounds = count_due(job, c, *h);
    for (int b = 0; b < BLOCKS; b++) {
        int first = blocks[b].first, width = blocks[b].width, stride = D_STRIDE(width);
        for (int i = 0; i < N; i++) for (int j = 0; j < width; j++) {
            c->d[i * width + j] = c->S[i][first + j];
            source[i * width + j] = source_of(c, i, first + j);
        }
        tangent_block(c->s, c->p, c->u, order, width, c->d, source);
        v step = smaller(block_step(job, c, b, asked, power), *h);
        if (differs(step, *h)) {
            if (shorten(job, c, step, h, crossed)) return 0;
            rounds = count_due(job, c, *h);
            stale = b;   /* the blocks before this one have taken a longer step */
        }
        forget(c, c->d, stride, N * width);
        for (long r = 0; r < rounds; r++) {
            horner_many(c->d, stride, order, N * width, place_of(job, c, r), values);
            EACH(l) if (r < c->due[l]) write_columns(job, c, l, c->next[l] + r, first, width, values, width);
        }
        horner_many(c->d, stride, order, N * width, *h, values);
        for (int i = 0; i < N; i++) for (int j = 0; j < width; j++) T[i][first + j] = values[i * width + j];
    }
    if (stale) { stale = 0; goto again; }
    memcpy(c->S, T, sizeof c->S);
    return 1;
}

#endif

#if KINKS
/* The tangents of one lane go to the other side of a kink with this gradient. */
static void jump(const work *job, crew *c, int l, const v *gradient, real fall, const v *before, const v *after)
{
    if (!job->by_start) return;
    for (int column = 0; column < N + NP; column++) {
        real shift = column < N ? 0 : LANE(gradient[column], l);
        for (int i = 0; i < N; i++) shift += LANE(gradient[i], l) * LANE(c->S[i][column], l);
        shift = -shift / fall;
        for (int i = 0; i < N; i++) LANE(c->S[i][column], l) += (LANE(before[i], l) - LANE(after[i], l)) * shift;
    }
}
#endif
