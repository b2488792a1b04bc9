/* Series of the frame V' = f_x V, a block of places at a time: d[row][k][place], k = 0 .. order.

   Rows are tables: convolutions (a series of f_x with a row of V or a fixed combination of rows) and products (a
   number with a row of V). The sums of TOGETHER orders are kept in registers while the coefficients that all of
   them need pass once; what the orders need of each other follows. The order is a multiple of TOGETHER. */

#define EVERY _Pragma("GCC unroll 32")
#if N <= 6   /* the tables become constants of the code */
#define ROWWISE _Pragma("GCC unroll 8")
#else
#define ROWWISE
#endif
#define FEW _Pragma("GCC unroll 4")

#define AT(row, k) (((row) * DEPTH + (k)) * width)

/* Combinations of rows at order k. */
INLINE void combine(w *d, int k, const int width)
{
    for (int j = 0; j < COMBINATIONS; j++) {
        w a[WIDEST];
        EVERY for (int c = 0; c < width; c++) a[c] = spread(all(0));
        FEW for (int q = 0; q < TERMS_OF(j); q++) {
            const w factor = spread(all((real)TERM(j, q).factor)), *e = d + (TERM(j, q).row + k) * width;
            EVERY for (int c = 0; c < width; c++) a[c] = FMAW(factor, e[c], a[c]);
        }
        EVERY for (int c = 0; c < width; c++) d[AT(N + j, k) + c] = a[c];
    }
}

/* Order k + 1 of row r from the sum of its convolutions: products, and the factor of integration. */
INLINE void finish_row(const v *factors, int r, int k, w *d, w *a, const int width)
{
    const w scale = spread(all(inverse[k + 1]));
    FEW for (int q = 0; q < PRODUCTS_OF(r); q++) {
        const w factor = spread(factors[PRODUCT(r, q).number]), *e = d + (PRODUCT(r, q).row + k) * width;
        EVERY for (int c = 0; c < width; c++) a[c] = FMAW(factor, e[c], a[c]);
    }
    EVERY for (int c = 0; c < width; c++) d[AT(r, k + 1) + c] = a[c] * scale;
}

/* Order k0 + 1 of row r, and what the orders up to k0 contribute to the next ones. */
INLINE void first_of_group(const v *s, const v *factors, int r, int k0, w *d, w *later, const int width)
{
    w a[TOGETHER * WIDEST];
    EVERY for (int i = 0; i < TOGETHER * width; i++) a[i] = spread(all(0));
    FEW for (int q = 0; q < CONVOLUTIONS_OF(r); q++) {
        const v *g = s + CONVOLUTION(r, q).series + k0;
        const w *e = d + CONVOLUTION(r, q).place * width;
        for (int j = 0; j < k0; j += TOGETHER, g -= TOGETHER, e += TOGETHER * width)
            EVERY for (int m = 0; m < TOGETHER; m++) {
                w f[TOGETHER];
                EVERY for (int i = 0; i < TOGETHER; i++) f[i] = spread(g[i - m]);
                EVERY for (int c = 0; c < width; c++) {
                    const w x = in_register(e[m * width + c]);
                    EVERY for (int i = 0; i < TOGETHER; i++) a[i * width + c] = FMAW(f[i], x, a[i * width + c]);
                }
            }
        EVERY for (int c = 0; c < width; c++) {
            const w x = in_register(e[c]);
            EVERY for (int i = 0; i < TOGETHER; i++) a[i * width + c] = FMAW(spread(g[i]), x, a[i * width + c]);
        }
    }
    finish_row(factors, r, k0, d, a, width);
    EVERY for (int i = width; i < TOGETHER * width; i++) later[r * (TOGETHER - 1) * width + i - width] = a[i];
}

/* Order k0 + i + 1 of row r, with what the orders k0 + 1 .. k0 + i contribute. */
INLINE void next_of_group(const v *s, const v *factors, int r, int k0, const int i, w *d, const w *later, const int width)
{
    w a[WIDEST];
    EVERY for (int c = 0; c < width; c++) a[c] = later[(r * (TOGETHER - 1) + i - 1) * width + c];
    FEW for (int q = 0; q < CONVOLUTIONS_OF(r); q++) {
        const v *g = s + CONVOLUTION(r, q).series + i;
        const w *e = d + (CONVOLUTION(r, q).place + k0) * width;
        EVERY for (int m = 1; m <= i; m++) {
            const w f = spread(g[-m]);
            EVERY for (int c = 0; c < width; c++) a[c] = FMAW(f, e[m * width + c], a[c]);
        }
    }
    finish_row(factors, r, k0 + i, d, a, width);
}

INLINE void frame_series(const v *s, const v *factors, int order, w *d, w *later, const int width)
{
    for (int k0 = 0; k0 < order; k0 += TOGETHER) {
        combine(d, k0, width);
        ROWWISE for (int r = 0; r < N; r++) first_of_group(s, factors, r, k0, d, later, width);
        EVERY for (int i = 1; i < TOGETHER; i++) {
            combine(d, k0 + i, width);
            ROWWISE for (int r = 0; r < N; r++) next_of_group(s, factors, r, k0, i, d, later, width);
        }
    }
}

/* The block at the end of the step: sum of d[k] h^k, a few rows at a time. */
INLINE void frame_end(const w *d, int order, v h, w *S, const int width)
{
    enum { AT_ONCE = WIDEST > 4 ? 1 : 8 / WIDEST };
    const w step = spread(h);
    for (int r = 0; r < N; r += AT_ONCE) {
        w sum[AT_ONCE * WIDEST];
        EVERY for (int i = 0; i < AT_ONCE; i++)
            EVERY for (int c = 0; c < width; c++) sum[i * width + c] = d[AT(r + i < N ? r + i : r, order) + c];
        for (int k = order - 1; k >= 0; k--)
            EVERY for (int i = 0; i < AT_ONCE; i++)
                EVERY for (int c = 0; c < width; c++)
                    sum[i * width + c] = FMAW(sum[i * width + c], step, d[AT(r + i < N ? r + i : r, k) + c]);
        for (int i = 0; i < AT_ONCE && r + i < N; i++)
            for (int c = 0; c < width; c++) S[(r + i) * width + c] = sum[i * width + c];
    }
}

/* One block of places over the step h. */
INLINE void move_places(const v *s, const v *factors, int order, w *d, w *later, v h, w *S, const int width)
{
    for (int r = 0; r < N; r++) memcpy(d + AT(r, 0), S + r * width, width * sizeof(w));
    frame_series(s, factors, order, d, later, width);
    frame_end(d, order, h, S, width);
}

#define MOVE(count)                                                                                              \
    static __attribute__((noinline)) void move_##count(const v *s, const v *factors, int order, w *d, w *later, v h, w *S) \
    {                                                                                                            \
        move_places(s, factors, order, d, later, h, S, count);                                                   \
    }
#define CHOOSE(count) case count: move_##count(s, factors, order, d, later, h, S); break;

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
        for (int q = 0; q < CONVOLUTIONS_OF(r); q++)
            sum += size(s[CONVOLUTION(r, q).series + k]) * (real)CONVOLUTION(r, q).weight;
        for (int q = 0; !k && q < PRODUCTS_OF(r); q++) sum += size(factors[PRODUCT(r, q).number]);
        norm = larger(norm, sum);
    }
    return norm;
}
