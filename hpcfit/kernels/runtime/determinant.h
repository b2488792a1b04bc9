/* Determinants of larger matrices: elimination with pivots, lane by lane. */

static real determinant_of(real *a)
{
    real product = 1;
    for (int k = 0; k < N; k++) {
        int best = k;
        for (int i = k + 1; i < N; i++) if (FABS(a[i * N + k]) > FABS(a[best * N + k])) best = i;
        if (!(FABS(a[best * N + k]) > 0)) return a[best * N + k] * 0;
        if (best != k) product = -product;
        for (int j = k; j < N; j++) { real other = a[k * N + j]; a[k * N + j] = a[best * N + j]; a[best * N + j] = other; }
        product *= a[k * N + k];
        for (int i = k + 1; i < N; i++) {
            const real factor = a[i * N + k] / a[k * N + k];
            for (int j = k + 1; j < N; j++) a[i * N + j] -= factor * a[k * N + j];
        }
    }
    return product;
}

static v determinant(const v *J)
{
    v result;
    EACH(l) {
        real a[N * N];
        for (int i = 0; i < N * N; i++) a[i] = LANE(J[i], l);
        LANE(result, l) = determinant_of(a);
    }
    return result;
}
