/* Series of the frame V' = f_x V, a block of places at a time: d[k][row][place], k = 0 .. order.

   Rows are tables: convolutions (a series of f_x with a row of V or a fixed combination of rows) and products (a
   number with a row of V). The sums of TOGETHER orders are kept in registers while the coefficients that all of
   them need pass once; what the orders need of each other follows. */

/* Combinations of rows at order k. */
INLINE void combine(w *e, const int width)
{
    for (int j = 0; j < COMBINATIONS; j++) {
        w *to = e + (N + j) * width;
        const term *first = terms + combination_terms[j], *end = terms + combination_terms[j + 1];
        for (int c = 0; c < width; c++) to[c] = spread(all((real)first->factor)) * e[first->row * width + c];
        for (const term *t = first + 1; t < end; t++)
            for (int c = 0; c < width; c++) to[c] = FMAW(spread(all((real)t->factor)), e[t->row * width + c], to[c]);
    }
}

/* a + products of row r with the coefficients e of one order, divided by the next order. */
INLINE void finish_row(const v *factors, int r, int k, w *e, const w *a, const int width)
{
    w sum[8];
    for (int c = 0; c < width; c++) sum[c] = a[c];
    for (int q = row_products[r]; q < row_products[r + 1]; q++) {
        const w factor = spread(factors[products[q].number]);
        for (int c = 0; c < width; c++) sum[c] = FMAW(factor, e[products[q].row * width + c], sum[c]);
    }
    for (int c = 0; c < width; c++) e[(ROWS + r) * width + c] = sum[c] * spread(all(inverse[k + 1]));
}

/* Order k0 + 1 of row r, and what orders up to k0 contribute to the next ones. */
INLINE void first_of_group(const v *s, const v *factors, int r, int k0, w *d, w *later, const int width)
{
    const int stride = ROWS * width;
    w a[TOGETHER * 8];
#pragma GCC unroll 32
    for (int i = 0; i < TOGETHER * width; i++) a[i] = spread(all(0));
    for (int q = row_convolutions[r]; q < row_convolutions[r + 1]; q++) {
        const v *g = s + convolutions[q].series * STRIDE + k0;
        const w *e = d + convolutions[q].place * width;
        for (int j = 0; j <= k0; j++, g--, e += stride) {
#pragma GCC unroll 8
            for (int i = 0; i < TOGETHER; i++) {
                const w f = spread(g[i]);
#pragma GCC unroll 8
                for (int c = 0; c < width; c++) a[i * width + c] = FMAW(f, e[c], a[i * width + c]);
            }
        }
    }
    finish_row(factors, r, k0, d + k0 * stride, a, width);
#pragma GCC unroll 32
    for (int i = width; i < TOGETHER * width; i++) later[r * (TOGETHER - 1) * width + i - width] = a[i];
}

/* Order k0 + i + 1 of row r, with what the orders of the same group contribute. */
INLINE void next_of_group(const v *s, const v *factors, int r, int k0, int i, w *d, const w *later, const int width)
{
    const int stride = ROWS * width;
    w a[8];
    for (int c = 0; c < width; c++) a[c] = later[(r * (TOGETHER - 1) + i - 1) * width + c];
    for (int q = row_convolutions[r]; q < row_convolutions[r + 1]; q++) {
        const v *g = s + convolutions[q].series * STRIDE + i - 1;
        const w *e = d + (k0 + 1) * stride + convolutions[q].place * width;
        for (int j = 0; j < i; j++, e += stride)
            for (int c = 0; c < width; c++) a[c] = FMAW(spread(g[-j]), e[c], a[c]);
    }
    finish_row(factors, r, k0 + i, d + (k0 + i) * stride, a, width);
}

INLINE void frame_series(const v *s, const v *factors, int order, w *d, w *later, const int width)
{
    for (int k0 = 0; k0 < order; k0 += TOGETHER) {
        combine(d + k0 * ROWS * width, width);
        for (int r = 0; r < N; r++) first_of_group(s, factors, r, k0, d, later, width);
#pragma GCC unroll 8
        for (int i = 1; i < TOGETHER; i++) {
            combine(d + (k0 + i) * ROWS * width, width);
            for (int r = 0; r < N; r++) next_of_group(s, factors, r, k0, i, d, later, width);
        }
    }
}

/* The block at the end of the step: sum of d[k] h^k, eight numbers at a time. */
INLINE void frame_end(const w *d, int order, v h, w *S, const int width)
{
    const w step = spread(h);
    for (int j = 0; j < N * width; j += 8) {
        const int count = N * width - j < 8 ? N * width - j : 8;
        w sum[8];
        for (int i = 0; i < count; i++) sum[i] = d[order * ROWS * width + j + i];
        for (int k = order - 1; k >= 0; k--)
            for (int i = 0; i < count; i++) sum[i] = FMAW(sum[i], step, d[k * ROWS * width + j + i]);
        for (int i = 0; i < count; i++) S[j + i] = sum[i];
    }
}

/* One block of places over the step h. */
#define MOVE(width)                                                                                              \
    static __attribute__((noinline)) void move_##width(const v *s, const v *factors, int order, w *d, w *later, v h, w *S) \
    {                                                                                                            \
        memcpy(d, S, N * width * sizeof(w));                                                                     \
        frame_series(s, factors, order, d, later, width);                                                        \
        frame_end(d, order, h, S, width);                                                                        \
    }
#define CHOOSE(width) case width: move_##width(s, factors, order, d, later, h, S); break;

WIDTHS(MOVE)

static void move_block(int width, const v *s, const v *factors, int order, w *d, w *later, v h, w *S)
{
    switch (width) { WIDTHS(CHOOSE) }
}

/* Largest sum of |f_x| along a row at order k. */
static v jacobian_size(const v *s, const v *factors, int k)
{
    v norm = all(0);
    for (int r = 0; r < N; r++) {
        v sum = all(0);
        for (int q = row_convolutions[r]; q < row_convolutions[r + 1]; q++)
            sum += size(s[convolutions[q].series * STRIDE + k]) * (real)convolutions[q].weight;
        for (int q = row_products[r]; !k && q < row_products[r + 1]; q++) sum += size(factors[products[q].number]);
        norm = larger(norm, sum);
    }
    return norm;
}
