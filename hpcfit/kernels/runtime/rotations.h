/* Small triangles, W of them at a time, by orthogonal transformations. */

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
