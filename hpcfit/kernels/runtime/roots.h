/* Roots of a polynomial inside a step. */

INLINE real value_at(const real *q, int m, real t)
{
    real r = q[m];
    for (int k = m - 1; k >= 0; k--) r = r * t + q[k];
    return r;
}

/* Smallest t in (0, h] at which q, positive at 0, becomes negative: intervals in which a bound excludes it are
   left out, the others halved, and a monotonic crossing is bisected to rounding. */
static int first_root(const real *q, int m, real h, real *root)
{
    struct { real a, b; } stack[128];
    int depth = 0;
    real total = 0;
    for (int k = m; k >= 0; k--) total = total * h + FABS(q[k]);
    if (!(total > 0) || !(total * 0 == 0)) return 0;   /* zero all along, or not finite */
    stack[depth].a = 0;
    stack[depth++].b = h;
    while (depth) {
        real a = stack[--depth].a, b = stack[depth].b, half = (b - a) / 2, middle = a + half, steep = 0, bent = 0, slope = 0;
        for (int k = m; k >= 1; k--) {
            steep = steep * b + k * FABS(q[k]);
            slope = slope * middle + k * q[k];
        }
        for (int k = m; k >= 2; k--) bent = bent * b + (real)k * (k - 1) * FABS(q[k]);
        if (value_at(q, m, middle) > steep * half) continue;
        if (value_at(q, m, middle) > FABS(slope) * half + bent * half * half / 2) continue;
        if (half <= 2 * EPSILON * b || depth > 120) {
            if (value_at(q, m, b) < 0) { *root = b; return 1; }
            continue;
        }
        if (slope + bent * half < 0) {   /* falling all the way: at most one root */
            if (value_at(q, m, b) >= 0) continue;
            for (int i = 0; i < 200 && b - a > EPSILON * b; i++) {
                real t = a + (b - a) / 2;
                if (value_at(q, m, t) > 0) a = t; else b = t;
            }
            *root = b;
            return 1;
        }
        stack[depth].a = middle;
        stack[depth++].b = b;
        stack[depth].a = a;
        stack[depth++].b = middle;
    }
    return 0;
}
