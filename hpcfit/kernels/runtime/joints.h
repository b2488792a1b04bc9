/* Neighbours become one, W pairs at a time; trees of them are in linear/tree.py. */

/* Exact continuity. A block has f free numbers u: its rows T u + t, its first state A u + alpha, the state after it
   C u + gamma, and the parameters P u + pi, in this order with WIDTH columns. */
#define BLOCK (f + n + n + q)

/* Householder reflections of a (rows, f) in place; a vector begins with 1 on the diagonal, which is not kept. */
static void reflections(v *a, int rows, v *tau)
{
    for (int c = 0; c < f; c++) {
        v below = all(0);
        for (int i = c + 1; i < rows; i++) below = FMA(a[i * f + c], a[i * f + c], below);
        const v x = a[c * f + c], length = v_sqrt(FMA(x, x, below)), beta = pick(x, -length, length);
        const v head = pick(below, 1 / (x - beta), all(0));
        tau[c] = pick(below, (beta - x) / beta, all(0));
        a[c * f + c] = pick(below, beta, x);
        for (int i = c + 1; i < rows; i++) a[i * f + c] *= head;
        for (int d = c + 1; d < f; d++) {
            v s = a[c * f + d];
            for (int i = c + 1; i < rows; i++) s = FMA(a[i * f + c], a[i * f + d], s);
            s *= tau[c];
            a[c * f + d] -= s;
            for (int i = c + 1; i < rows; i++) a[i * f + d] = FMA(-s, a[i * f + c], a[i * f + d]);
        }
    }
}

/* Column `column` of b (rows, WIDTH) becomes Q times itself. */
static void reflect_column(const v *a, int rows, const v *tau, v *b, int column)
{
    for (int c = f - 1; c >= 0; c--) {
        v s = b[c * WIDTH + column];
        for (int i = c + 1; i < rows; i++) s = FMA(a[i * f + c], b[i * WIDTH + column], s);
        s *= tau[c];
        b[c * WIDTH + column] -= s;
        for (int i = c + 1; i < rows; i++) b[i * WIDTH + column] = FMA(-s, a[i * f + c], b[i * WIDTH + column]);
    }
}

/* to (rows, WIDTH) = a (rows, WIDTH) after u = U u' + u0, (U u0) (f, WIDTH). */
static void substitute(const v *a, const v *U, int rows, v *to)
{
    for (int i = 0; i < rows; i++)
        for (int d = 0; d < WIDTH; d++) {
            v sum = d == f ? a[i * WIDTH + f] : all(0);
            for (int s = 0; s < f; s++) sum = FMA(a[i * WIDTH + s], U[s * WIDTH + d], sum);
            to[i * WIDTH + d] = sum;
        }
}

/* The state after the left is the first of the right, and both have the same parameters: K (u1, u2) + kappa = 0. With
   K^t = Q (R; 0), (u1, u2) = Q2 u' - Q1 R^-t kappa satisfies that for every u'. way (2 f, WIDTH): (u1, u2) by (u', 1). */
static void join(const v *left, const v *right, v *to, v *way, v *K, v *rows)
{
    v tau[f], kappa[f];
    const v *end = left + (f + n) * WIDTH, *begin = right + f * WIDTH;
    for (int i = 0; i < f; i++) {
        const v *one = i < n ? end + i * WIDTH : left + (f + n + i) * WIDTH;
        const v *two = i < n ? begin + i * WIDTH : right + (f + n + i) * WIDTH;
        for (int s = 0; s < f; s++) { K[s * f + i] = one[s]; K[(f + s) * f + i] = -two[s]; }
        kappa[i] = one[f] - two[f];
    }
    reflections(K, 2 * f, tau);
    for (int i = 0; i < 2 * f * WIDTH; i++) way[i] = all(0);
    for (int i = 0; i < f; i++) {      /* R^t g = -kappa */
        v g = -kappa[i];
        for (int s = 0; s < i; s++) g = FMA(-K[s * f + i], way[s * WIDTH + f], g);
        way[i * WIDTH + f] = g / K[i * f + i];
        way[(f + i) * WIDTH + i] = all(1);
    }
    for (int d = 0; d < WIDTH; d++) reflect_column(K, 2 * f, tau, way, d);
    substitute(left, way, f, rows);
    substitute(right, way + f * WIDTH, f, rows + f * WIDTH);
    for (int i = 0; i < f * WIDTH; i++) to[i] = all(0);
    rotate(to, rows, f, WIDTH, 2 * f);
    substitute(left + f * WIDTH, way, n, to + f * WIDTH);
    substitute(right + (f + n) * WIDTH, way + f * WIDTH, n, to + (f + n) * WIDTH);
    substitute(left + (f + n + n) * WIDTH, way, q, to + (f + n + n) * WIDTH);
}

/* The blocks of W pairs from `first` on; an empty place repeats the first of them. */
static void load_pairs(long first, long count, const long *left, const long *right, long size_of_block,
                       const double *blocks, v *one, v *two)
{
    long l_at[W], r_at[W];
    EACH(l) {
        const long own = first + l < count ? first + l : first;
        l_at[l] = left[own] * size_of_block;
        r_at[l] = right[own] * size_of_block;
    }
    load(blocks, l_at, size_of_block, one);
    load(blocks, r_at, size_of_block, two);
}

/* blocks (., BLOCK, WIDTH): pairs left[i], right[i] become into[i]; ways (count, 2 f, WIDTH). */
void join_exact(long count, const long *left, const long *right, const long *into, double *blocks, double *ways)
{
    const long size_of_block = BLOCK * WIDTH, size_of_way = 2 * f * WIDTH;
    v *room = aligned_alloc(sizeof(v), (3 * size_of_block + 2 * size_of_way + 2 * f * f) * sizeof(v));
    v *one = room, *two = one + size_of_block, *to = two + size_of_block, *way = to + size_of_block;
    v *rows = way + size_of_way, *K = rows + size_of_way;
    for (long first = 0; first < count; first += W) {
        long to_at[W], way_at[W];
        load_pairs(first, count, left, right, size_of_block, blocks, one, two);
        EACH(l) {
            to_at[l] = first + l < count ? into[first + l] * size_of_block : -1;
            way_at[l] = first + l < count ? (first + l) * size_of_way : -1;
        }
        join(one, two, to, way, K, rows);
        save(blocks, to_at, size_of_block, to);
        save(ways, way_at, size_of_way, way);
    }
    free(room);
}

/* Weak continuity. A block is rows on its first node, the node after it, the parameters and 1 (SPAN - 1, SPAN); the
   node b between two blocks is eliminated, ways (count, n, BROAD): its pivots on b, a, c, p, 1. */
void join_weak(long count, const long *left, const long *right, const long *into, double *blocks, double *ways)
{
    const long height = SPAN - 1, size_of_block = height * SPAN, size_of_way = n * BROAD;
    v *room = aligned_alloc(sizeof(v), (2 * size_of_block + 2 * height * BROAD + (BROAD - 1) * BROAD) * sizeof(v));
    v *one = room, *two = one + size_of_block, *rows = two + size_of_block, *R = rows + 2 * height * BROAD;
    for (long first = 0; first < count; first += W) {
        long to_at[W], way_at[W];
        load_pairs(first, count, left, right, size_of_block, blocks, one, two);
        EACH(l) {
            to_at[l] = first + l < count ? into[first + l] * size_of_block : -1;
            way_at[l] = first + l < count ? (first + l) * size_of_way : -1;
        }
        for (long i = 0; i < 2 * height * BROAD; i++) rows[i] = all(0);
        for (long i = 0; i < (BROAD - 1) * BROAD; i++) R[i] = all(0);
        for (long i = 0; i < height; i++) {
            const v *a = one + i * SPAN, *b = two + i * SPAN;
            v *upper = rows + i * BROAD, *lower = rows + (height + i) * BROAD;
            for (int s = 0; s < n; s++) { upper[n + s] = a[s]; upper[s] = a[n + s]; lower[s] = b[s]; lower[n + n + s] = b[n + s]; }
            for (int s = n + n; s < SPAN; s++) { upper[n + s] = a[s]; lower[n + s] = b[s]; }
        }
        rotate(R, rows, BROAD - 1, BROAD, 2 * height);
        for (long i = 0; i < height; i++) for (int s = 0; s < SPAN; s++) one[i * SPAN + s] = R[(n + i) * BROAD + n + s];
        save(blocks, to_at, size_of_block, one);
        save(ways, way_at, size_of_way, R);
    }
    free(room);
}
